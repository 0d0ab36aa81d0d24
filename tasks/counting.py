"""Count the symbols of a string in three ways: the simplest tests of keeping a number that grows with the string.

    a b a c ? a  ->  2          (occurrences)
    a b b a b    ->  odd        (parity)
    a c a b      ->  a          (majority)

A Transformer can count by averaging (Bhattamishra et al. 2020, arXiv 2009.11264), but no fixed Transformer computes
parity at every length (Hahn 2020, TACL). Recurrent networks learn parity beyond the train lengths, networks with
attention do not (Deletang et al. 2022, arXiv 2207.02098). `length` is the number of symbols without the query.

In `occurrences` all compositions of a string are equally likely, so counts range from zero to the whole string. The
query is drawn independently, so the string does not predict it. In `parity` and `majority` all answers are equally
frequent, and there are no ties. With `data.scratchpad`, the target of `parity` first has the parity of every prefix
(Anil et al. 2022, arXiv 2207.04901).
"""

from itertools import accumulate
from random import Random
from string import ascii_lowercase
from typing import ClassVar

from pydantic import Field

from tfstudy.tasks.base import Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, LengthRange, LengthRanges


def spread(random: Random, symbols: str, length: int) -> Tokens:
    """Draw a string whose composition is uniform over all compositions, and whose order is uniform given it.

    Normalised exponential weights are a uniform point of the simplex; draws with these weights form a Polya urn.
    """
    return tuple(random.choices(symbols, [random.expovariate(1) for _ in symbols], k=length))


class Counting(Generated):
    """Map a string to a fact about its counts; examples are at the top of this file."""

    schemes: ClassVar = {
        "occurrences": "how often the queried symbol occurs in a string",
        "parity": "whether a string of two symbols has an odd or an even number of b",
        "majority": "the most frequent symbol of a string",
    }
    with_steps = ("parity",)

    class Config(GeneratedConfig):
        split: str = "occurrences"
        train_length: LengthRange = "1-40"
        test_length: LengthRanges = "41-50,51-60"
        symbols: int = Field(3, ge=2, le=26, description="number of letters in the alphabet (occurrences, majority)")

    config: Config

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        symbols = ascii_lowercase[: self.config.symbols]
        if self.config.split == "occurrences":
            string, query = spread(random, symbols, length), random.choice(symbols)
            count = string.count(query)
            return Drawn((*string, "?", query), tuple(str(count)), {"count": count})
        if self.config.split == "majority":
            return majority(random, symbols, length)
        string = tuple(random.choices("ab", k=length))  # both parities are equally frequent
        counts = [*accumulate(int(symbol == "b") for symbol in string)]
        steps = tuple("odd" if count % 2 else "even" for count in counts)
        return Drawn(string, steps[-1:], {"count": counts[-1], "answer": steps[-1]}, steps)


def majority(random: Random, symbols: str, length: int) -> Drawn | None:
    """Map a string to its most frequent symbol, with its lead as the tag `margin`; return None for a tie.

    In half of the strings all symbols are equally likely, so close counts are common; the others have any composition.
    """
    close = random.random() < 0.5
    string = tuple(random.choices(symbols, k=length)) if close else spread(random, symbols, length)
    (second, _), (first, answer) = sorted((string.count(symbol), symbol) for symbol in symbols)[-2:]
    return Drawn(string, (answer,), {"margin": first - second, "answer": answer}) if first > second else None
