"""Sort letters (bucket sort, as in Delétang et al. 2022, arXiv 2207.02098) or numbers of several digits.

    c a b a            ->  a a b c              (symbols)
    4 2 , 7 , 1 0 5    ->  7 , 4 2 , 1 0 5      (numbers)

To sort letters, a model has to count each letter and to know the order of the alphabet. Numbers are compared by their
number of digits and then by their digits from the left, so a model must find where each number ends. `length` is the
number of items in the list.
"""

from collections.abc import Sequence
from random import Random
from string import ascii_lowercase
from typing import ClassVar

from pydantic import Field

from tfstudy.tasks.base import Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, random_number

SEPARATOR = ","


class Sorting(Generated):
    """Map a list to its items in ascending order; examples are at the top of this file."""

    schemes: ClassVar = {
        "symbols": "letters",
        "numbers": "numbers of several digits, one token per digit",
    }

    class Config(GeneratedConfig):
        split: str = "symbols"
        symbols: int = Field(20, ge=2, le=26, description="number of letters in the alphabet (symbols)")
        digits: int = Field(3, ge=1, le=9, description="maximum number of digits (numbers)")

    config: Config

    def tokens(self, text: str) -> Tokens:
        """Return each character except spaces as a token: `42,7` and `4 2 , 7` are the same."""
        return tuple("".join(text.split()))

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        if self.config.split == "symbols":
            return self._symbols(random, length)
        return self._numbers(random, length)

    def _symbols(self, random: Random, length: int) -> Drawn:
        """Draw a uniform string; one letter is drawn before the others, as in all earlier versions."""
        letters = ascii_lowercase[: self.config.symbols]
        first = random.choice(letters)
        string = random.choices(letters, k=length - 1)
        string.insert(random.randrange(length), first)
        return Drawn(tuple(string), tuple(sorted(string)), {"duplicates": _duplicates(string)})

    def _numbers(self, random: Random, length: int) -> Drawn:
        """Draw a list: the digits of its largest number are uniform, those of other numbers uniform up to that number.

        So slices by digits have equal size, and lists mix short and long numbers.
        """
        digits = random.randint(1, self.config.digits)
        numbers = [random_number(random, digits)]
        numbers += [random_number(random, random.randint(1, digits)) for _ in range(length - 1)]
        random.shuffle(numbers)
        return Drawn(_tokens(numbers), _tokens(sorted(numbers)), {"digits": digits, "duplicates": _duplicates(numbers)})


def _tokens(numbers: Sequence[int]) -> Tokens:
    return tuple(SEPARATOR.join(map(str, numbers)))


def _duplicates(items: Sequence[object]) -> str:
    return "yes" if len(set(items)) < len(items) else "no"
