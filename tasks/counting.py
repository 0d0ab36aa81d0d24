"""Count a symbol of a string: the simplest test of keeping a number that grows with the string.

    a b a c ? a  ->  2

A Transformer can count by averaging (Bhattamishra et al. 2020, arXiv 2009.11264). All compositions of a string are
equally likely, so counts range from zero to the whole string. The query is drawn independently, so the string does not
predict it. `length` is the number of symbols without the query.
"""

from random import Random
from string import ascii_lowercase
from typing import ClassVar

from pydantic import Field

from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, Lengths


class Counting(Generated):
    """Map a string and a symbol to the number of times that it occurs; an example is at the top of this file."""

    schemes: ClassVar = {"occurrences": "how often the queried symbol occurs in a string"}

    class Config(GeneratedConfig):
        split: str = "occurrences"
        train_length: Lengths = "1-40"
        test_length: Lengths = "41-50,51-60"
        symbols: int = Field(3, ge=2, le=26, description="number of letters in the alphabet")

    config: Config

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        """Draw a string whose composition is uniform over all compositions, and whose order is uniform given it.

        Normalised exponential weights are a uniform point of the simplex; draws with these weights form a Polya urn.
        """
        symbols = ascii_lowercase[: self.config.symbols]
        string = random.choices(symbols, [random.expovariate(1) for _ in symbols], k=length)
        query = random.choice(symbols)
        count = string.count(query)
        return Drawn((*string, "?", query), tuple(str(count)), {"count": count})
