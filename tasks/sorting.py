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
from typing import Literal, NamedTuple

from pydantic import Field

from tfstudy.errors import UserError
from tfstudy.tasks.base import Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, random_number

SPLIT_SCHEMES = {
    "symbols": "letters; `data.test_symbols` adds a test split with letters that never occur in training",
    "numbers": "numbers, one token per digit; `data.test_digits` adds a test split with longer numbers",
}
SEPARATOR = ","
UNSEEN = "test_vocabulary"  # test split of the train lengths; each list has an item larger than those of training


class SizeLimits(NamedTuple):
    """Maximum size of an item in train and in the split `test_vocabulary`: digits, or letters of the alphabet."""

    key: str  # the config key: symbols or digits
    train: int
    test: int  # 0: no such split


class Sizes(NamedTuple):
    """Bounds on the largest item of a list: digits of a number, or position of a letter in the alphabet from 1."""

    minimum: int
    maximum: int


class Sorting(Generated):
    """Map a list to its items in ascending order; examples are at the top of this file."""

    version = 1

    class Config(GeneratedConfig):
        split: str = Field("symbols", description="symbols or numbers")
        duplicates: Literal["allowed", "never"] = Field(
            "allowed", description="whether an item may occur more than once in a list"
        )
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

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return SPLIT_SCHEMES

    def check(self) -> None:
        super().check()
        key, train, test = self._limits()
        if 0 < test <= train:
            raise UserError(f"data.test_{key} must be 0 or more than data.{key} ({train}), but is {test}")
        items = train if key == "symbols" else 10**train  # number of different items
        longest = max(span.last for span in self.all_spans)
        if self.config.duplicates == "never" and longest > items:
            raise UserError(
                f"data.duplicates is 'never', but lists of {longest} items need more than the {items} different items "
                f"of data.{key}={train}"
            )

    def extra_tests(self) -> Sequence[str]:
        return (UNSEEN,) if self._limits().test else ()

    def vocabulary(self) -> tuple[set[str], set[str]]:
        """Return the tokens of train and the letters of `test_vocabulary`, whose embeddings stay untrained."""
        source, target = super().vocabulary()
        extra = set(ascii_lowercase[: self.config.test_symbols]) if self.config.split == "symbols" else set()
        return source | extra, target | extra

    def tokens(self, text: str) -> Tokens:
        """Return each character except spaces as a token: `42,7` and `4 2 , 7` are the same."""
        return tuple("".join(text.split()))

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        _, train, test = self._limits()
        sizes = Sizes(train + 1, test) if split == UNSEEN else Sizes(1, train)
        distinct = self.config.duplicates == "never"
        if self.config.split == "symbols":
            return _symbols(random, length, sizes, distinct)
        return _numbers(random, length, sizes, distinct)

    def _limits(self) -> SizeLimits:
        config = self.config
        if config.split == "symbols":
            return SizeLimits("symbols", config.symbols, config.test_symbols)
        return SizeLimits("digits", config.digits, config.test_digits)


def _symbols(random: Random, length: int, sizes: Sizes, distinct: bool) -> Drawn | None:
    """Draw a uniform string of the first `sizes.maximum` letters; one letter has at least position `sizes.minimum`."""
    letters = ascii_lowercase[: sizes.maximum]
    if distinct and length > len(letters):
        return None
    large = random.choice(letters[sizes.minimum - 1 :])
    others = letters.replace(large, "") if distinct else letters
    string = random.sample(others, length - 1) if distinct else random.choices(others, k=length - 1)
    string.insert(random.randrange(length), large)
    return Drawn(tuple(string), tuple(sorted(string)), {"duplicates": _duplicates(string)})


def _numbers(random: Random, length: int, sizes: Sizes, distinct: bool) -> Drawn | None:
    """Draw a list: the digits of its largest number are uniform, those of other numbers uniform up to that number.

    So slices by digits have equal size, and lists mix short and long numbers.
    """
    minimum = max(sizes.minimum, len(str(length - 1))) if distinct else sizes.minimum  # 10 ** minimum >= length
    if minimum > sizes.maximum:
        return None
    digits = random.randint(minimum, sizes.maximum)
    numbers = [random_number(random, digits)]
    while len(numbers) < length:
        number = random_number(random, random.randint(1, digits))
        if not distinct or number not in numbers:
            numbers.append(number)
    random.shuffle(numbers)
    return Drawn(_tokens(numbers), _tokens(sorted(numbers)), {"digits": digits, "duplicates": _duplicates(numbers)})


def _tokens(numbers: Sequence[int]) -> Tokens:
    return tuple(SEPARATOR.join(map(str, numbers)))


def _duplicates(items: Sequence[object]) -> str:
    return "yes" if len(set(items)) < len(items) else "no"
