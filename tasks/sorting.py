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

from tfstudy.errors import UserError
from tfstudy.tasks.base import Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, random_number

SEPARATOR = ","
UNSEEN = "test_vocabulary"  # test split of the train lengths; each list has an item larger than those of training


class Sorting(Generated):
    """Map a list to its items in ascending order; examples are at the top of this file."""

    version = 1
    schemes: ClassVar = {
        "symbols": "letters; `data.test_symbols` adds a test split with letters that never occur in training",
        "numbers": "numbers, one token per digit; `data.test_digits` adds a test split with longer numbers",
    }

    class Config(GeneratedConfig):
        split: str = Field("symbols", description="symbols or numbers")
        symbols: int = Field(20, ge=2, le=26, description="number of letters in the alphabet (symbols)")
        test_symbols: int = Field(
            0,
            ge=0,
            le=26,
            description="size of the larger alphabet of the split test_vocabulary; 0: no split (symbols)",
        )
        digits: int = Field(3, ge=1, le=9, description="maximum number of digits (numbers)")
        test_digits: int = Field(
            0, ge=0, le=12, description="maximum digits in the split test_vocabulary; 0: no split (numbers)"
        )

    config: Config

    def check(self) -> None:
        super().check()
        key, train, test = self._limits()
        if 0 < test <= train:
            raise UserError(f"data.test_{key} must be 0 or more than data.{key} ({train}), but is {test}")

    def extra_tests(self) -> Sequence[str]:
        return (UNSEEN,) if self._limits()[2] else ()

    def vocabulary(self) -> tuple[set[str], set[str]]:
        """Return the tokens of train and the letters of `test_vocabulary`, whose embeddings stay untrained."""
        source, target = super().vocabulary()
        extra = set(ascii_lowercase[: self.config.test_symbols]) if self.config.split == "symbols" else set()
        return source | extra, target | extra

    def tokens(self, text: str) -> Tokens:
        """Return each character except spaces as a token: `42,7` and `4 2 , 7` are the same."""
        return tuple("".join(text.split()))

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        _, train, test = self._limits()
        smallest, largest = (train + 1, test) if split == UNSEEN else (1, train)
        draw_list = _symbols if self.config.split == "symbols" else _numbers
        return draw_list(random, length, smallest, largest)

    def _limits(self) -> tuple[str, int, int]:
        """Return the config key of the sizes of items, and the largest in train and in `test_vocabulary` (0: none)."""
        config = self.config
        if config.split == "symbols":
            return "symbols", config.symbols, config.test_symbols
        return "digits", config.digits, config.test_digits


def _symbols(random: Random, length: int, smallest: int, largest: int) -> Drawn:
    """Draw a uniform string of the first `largest` letters; one of them is at least the letter number `smallest`."""
    letters = ascii_lowercase[:largest]
    large = random.choice(letters[smallest - 1 :])
    string = random.choices(letters, k=length - 1)
    string.insert(random.randrange(length), large)
    return Drawn(tuple(string), tuple(sorted(string)), {"duplicates": _duplicates(string)})


def _numbers(random: Random, length: int, smallest: int, largest: int) -> Drawn:
    """Draw a list: the digits of its largest number are uniform, those of other numbers uniform up to that number.

    So slices by digits have equal size, and lists mix short and long numbers.
    """
    digits = random.randint(smallest, largest)
    numbers = [random_number(random, digits)]
    numbers += [random_number(random, random.randint(1, digits)) for _ in range(length - 1)]
    random.shuffle(numbers)
    return Drawn(_tokens(numbers), _tokens(sorted(numbers)), {"digits": digits, "duplicates": _duplicates(numbers)})


def _tokens(numbers: Sequence[int]) -> Tokens:
    return tuple(SEPARATOR.join(map(str, numbers)))


def _duplicates(items: Sequence[object]) -> str:
    return "yes" if len(set(items)) < len(items) else "no"
