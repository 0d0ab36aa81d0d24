"""Strings and lists of numbers put in order: bucket sort as in Delétang et al. 2022 (arXiv 2207.02098), and magnitude.

    c a b a            ->  a a b c              (symbols)
    4 2 , 7 , 1 0 5    ->  7 , 4 2 , 1 0 5      (numbers)

For symbols it is enough to count each one and to know the alphabet's order. Numbers of unequal digits are compared by
how many digits they have and then by the digits from the left, so that a model must find where each number ends.
`length` is the number of items in the list.
"""

from collections.abc import Sequence
from random import Random
from string import ascii_lowercase
from typing import Literal, NamedTuple

from pydantic import Field

from tasks.base import Tokens
from tasks.errors import UserError
from tasks.generated import Drawn, Generated, GeneratedConfig, spans

SPLIT_SCHEMES = {
    "symbols": "letters; `data.test_symbols` adds a test split with letters that are never trained on",
    "numbers": "numbers, one token a digit; `data.test_digits` adds a test split with numbers of more digits",
}
SEPARATOR = ","
UNSEEN = "test_vocabulary"  # test split of the train lengths whose every list holds an item beyond the trained ones


class Reach(NamedTuple):
    """How large items may be, in digits or in letters of the alphabet; `tested` is 0 if no larger ones are."""

    key: str  # of the config, which says so: symbols or digits
    trained: int
    tested: int


class Sizes(NamedTuple):
    """The least and the most that the largest item of a list has: digits of a number, place of a letter from 1."""

    least: int
    most: int


class Sorting(Generated):
    """A list to the same items in ascending order; see the module's text for examples."""

    version = 1

    class Config(GeneratedConfig):
        split: str = Field("symbols", description="symbols or numbers")
        duplicates: Literal["allowed", "never"] = Field("allowed", description="whether a list may hold an item twice")
        symbols: int = Field(20, ge=2, le=26, description="size of the alphabet (symbols)")
        test_symbols: int = Field(
            0, ge=0, le=26, description="size of a larger alphabet that is also tested; 0 tests none (symbols)"
        )
        digits: int = Field(3, ge=1, le=9, description="most digits of a number (numbers)")
        test_digits: int = Field(
            0, ge=0, le=12, description="more digits, up to which is also tested; 0 tests none (numbers)"
        )

    config: Config

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return SPLIT_SCHEMES

    def check(self) -> None:
        super().check()
        key, trained, tested = self._reach()
        if 0 < tested <= trained:
            raise UserError(f"data.test_{key} must be 0 or more than data.{key} ({trained}), but is {tested}")
        items = trained if key == "symbols" else 10**trained  # all that there are
        longest = max(span.last for span in (self.train_span, *spans(self.config.test_length)))
        if self.config.duplicates == "never" and longest > items:
            raise UserError(
                f"data.duplicates must be 'allowed' for lists of {longest}, but is 'never', "
                f"and data.{key} {trained} makes {items} different items"
            )

    def more_tests(self) -> Sequence[str]:
        return (UNSEEN,) if self._reach().tested else ()

    def vocabulary(self) -> tuple[set[str], set[str]]:
        """The tokens of training and, so that `test_vocabulary` can be encoded, its letters, which stay untrained."""
        source, target = super().vocabulary()
        more = set(ascii_lowercase[: self.config.test_symbols]) if self.config.split == "symbols" else set()
        return source | more, target | more

    def tokens(self, text: str) -> Tokens:
        """`42,7` or `4 2 , 7`: every character that is no blank is a token."""
        return tuple("".join(text.split()))

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        _, trained, tested = self._reach()
        sizes = Sizes(trained + 1, tested) if split == UNSEEN else Sizes(1, trained)
        distinct = self.config.duplicates == "never"
        if self.config.split == "symbols":
            return _symbols(random, length, sizes, distinct)
        return _numbers(random, length, sizes, distinct)

    def _reach(self) -> Reach:
        config = self.config
        if config.split == "symbols":
            return Reach("symbols", config.symbols, config.test_symbols)
        return Reach("digits", config.digits, config.test_digits)


def _symbols(random: Random, length: int, sizes: Sizes, distinct: bool) -> Drawn | None:
    """A uniform string over the first `sizes.most` letters, save that one letter's place is at least `sizes.least`."""
    letters = ascii_lowercase[: sizes.most]
    if distinct and length > len(letters):
        return None
    one = random.choice(letters[sizes.least - 1 :])
    others = letters.replace(one, "") if distinct else letters
    string = random.sample(others, length - 1) if distinct else random.choices(others, k=length - 1)
    string.insert(random.randrange(length), one)
    return Drawn(tuple(string), tuple(sorted(string)), {"duplicates": _duplicates(string)})


def _numbers(random: Random, length: int, sizes: Sizes, distinct: bool) -> Drawn | None:
    """A list whose largest number has uniformly many digits; every other number has uniformly many up to these.

    So the slices by digits are of one size, and short numbers stand beside long ones.
    """
    least = max(sizes.least, len(str(length - 1))) if distinct else sizes.least  # 10 ** least >= length
    if least > sizes.most:
        return None
    digits = random.randint(least, sizes.most)
    numbers = [_number(random, digits)]
    while len(numbers) < length:
        number = _number(random, random.randint(1, digits))
        if not distinct or number not in numbers:
            numbers.append(number)
    random.shuffle(numbers)
    return Drawn(_written(numbers), _written(sorted(numbers)), {"digits": digits, "duplicates": _duplicates(numbers)})


def _number(random: Random, digits: int) -> int:
    """A uniform number of so many digits; 0 has one."""
    return random.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)


def _written(numbers: Sequence[int]) -> Tokens:
    return tuple(SEPARATOR.join(map(str, numbers)))


def _duplicates(items: Sequence[object]) -> str:
    return "yes" if len(set(items)) < len(items) else "no"
