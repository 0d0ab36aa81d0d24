"""Sort letters (bucket sort, as in Delétang et al. 2022, arXiv 2207.02098).

    c a b a  ->  a a b c

A model has to count each letter and to know the order of the alphabet. `length` is the number of letters.
"""

from random import Random
from string import ascii_lowercase
from typing import ClassVar

from pydantic import Field

from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig


class Sorting(Generated):
    """Map a list to its items in ascending order; an example is at the top of this file."""

    schemes: ClassVar = {"symbols": "letters"}
    by_character = True

    class Config(GeneratedConfig):
        split: str = "symbols"
        symbols: int = Field(20, ge=2, le=26, description="number of letters in the alphabet")

    config: Config

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        """Draw a uniform string; one letter is drawn before the others, as in all earlier versions."""
        letters = ascii_lowercase[: self.config.symbols]
        first = random.choice(letters)
        string = random.choices(letters, k=length - 1)
        string.insert(random.randrange(length), first)
        duplicates = "yes" if len({*string}) < length else "no"
        return Drawn(tuple(string), tuple(sorted(string)), {"duplicates": duplicates})
