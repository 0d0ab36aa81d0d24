"""Arithmetic on decimal numbers, one token a digit: whether a model learns the algorithm or the sizes it has seen.

    1 2 3 + 4 5 =            ->  1 6 8         (addition)
    1 2 - 3 4 5 =            ->  - 3 3 3       (subtraction)
    1 2 * 3 4 =              ->  4 0 8         (multiplication)
    1 2 3 / 4 5 =            ->  2 r 3 3       (division: quotient, remainder)
    1 2 * 3 4 mod 7 =        ->  2             (modular)

Numbers may be zero-padded to one width or written from their least significant digit (Nogueira et al. 2021, arXiv
2102.13019; Lee et al. 2023, arXiv 2307.03381), and the target may spell its working first (Nye et al. 2021, arXiv
2112.00114). `length` is the digits of the larger operand. The other one has from one digit to as many, on either side,
so that every cell of the grid of digits is drawn; a division by a number of more digits is easy, its quotient being 0.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, zip_longest
from random import Random
from typing import Literal

from pydantic import Field

from tasks.base import Example, Tag, Tokens
from tasks.errors import UserError
from tasks.generated import Drawn, Generated, GeneratedConfig, One, Several, spans
from tasks.scoring import exact_match, mean

SPLIT_SCHEMES = {
    "addition": "the sum of two numbers",
    "subtraction": "their difference, with a minus sign where the second is larger",
    "multiplication": "their product",
    "division": "the quotient and the remainder, by anything but zero",
    "modular": "the sum, difference or product modulo `data.modulus`",
}
SYMBOL = {"addition": "+", "subtraction": "-", "multiplication": "*", "division": "/"}
RESULT: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
ANSWER = ":"  # stands between the working and the answer
MOST_DIGITS = 2000  # Python writes integers of at most 4,300 digits, and a product has twice as many as its factors


def operand(random: Random, digits: int) -> int:
    """A number of so many digits, uniformly; those of one digit include 0."""
    return random.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)


def operands(random: Random, length: int) -> tuple[int, int]:
    """Two numbers, one of `length` digits and one of 1 to `length`, in either order."""
    pair = operand(random, length), operand(random, random.randint(1, length))
    return pair if random.random() < 0.5 else pair[::-1]


def from_least(number: int) -> Tokens:
    """The digits of a number, the least significant first."""
    return tuple(str(number)[::-1])


@cache
def column(left: str, right: str, carry: str, sign: int) -> tuple[str, str, str, str]:
    """Two digits, that of their sum (sign 1) or difference (sign -1), and what is carried or borrowed: 0 or 1."""
    carried, digit = divmod(int(left) + sign * (int(right) + int(carry)), 10)
    return left, right, str(digit), str(abs(carried))


def columns(left: int, symbol: str, right: int) -> Iterator[Tokens]:
    """The columns of an addition, or of a subtraction of the smaller number from the larger; the least digits first."""
    if symbol == "-" and left < right:
        left, right = right, left
    sign, carry = 1 if symbol == "+" else -1, "0"
    for a, b in zip_longest(str(left)[::-1], str(right)[::-1], fillvalue="0"):
        step = column(a, b, carry, sign)
        carry = step[-1]
        yield step


def products(left: int, right: int) -> Iterator[Tokens]:
    """Multiplication by each digit of `right`, the least significant first: that digit, then the running total.

    The total begins at this digit's place; its last digit is one of the answer's, and leaves it.
    """
    total = 0
    for digit in from_least(right):
        total = total // 10 + int(digit) * left
        yield (digit, *from_least(total))


def quotients(number: int, divisor: int) -> Iterator[Tokens]:
    """Long division, the most significant digit first: a digit of the quotient, then what is left."""
    rest = 0
    for digit in str(number):
        quotient, rest = divmod(rest * 10 + int(digit), divisor)
        yield (str(quotient), *str(rest))


def remainders(number: int, divisor: int) -> Iterator[Tokens]:
    """The same, what is left alone."""
    for _, *rest in quotients(number, divisor):
        yield tuple(rest)


def working(left: int, symbol: str, right: int, modulus: int | None) -> Tokens:
    """The steps of the written method, parted by commas, their digits in the order in which it finds them.

    A subtraction takes the smaller number from the larger; modular arithmetic reduces both operands digit by digit.
    """
    steps: Iterator[Tokens]
    if modulus:
        steps = iter([*remainders(left, modulus), *remainders(right, modulus)])
    elif symbol == "*":
        steps = products(left, right)
    elif symbol == "/":
        steps = quotients(left, right)
    else:
        steps = columns(left, symbol, right)
    return tuple(chain.from_iterable([(*step, ",") for step in steps]))[:-1]


def carries(left: int, symbol: str, right: int) -> int:
    """In how many columns an addition carries, or a subtraction of the smaller number from the larger borrows.

    A column carries if what stands up to it passes its place: cheaper than the columns themselves.
    """
    larger, smaller = max(left, right), min(left, right)
    places = [10**place for place in range(1, len(str(larger)) + 1)]
    if symbol == "+":
        return sum([larger % place + smaller % place >= place for place in places])
    return sum([larger % place < smaller % place for place in places])


def answer(target: Sequence[str]) -> Tokens:
    """What follows the working; nothing if no sign stands between the two."""
    target = tuple(target)
    return target[target.index(ANSWER) + 1 :] if ANSWER in target else ()


class Arithmetic(Generated):
    """Two numbers to what one operation makes of them; see the module's text for examples."""

    version = 1

    class Config(GeneratedConfig):
        split: str = Field("addition", description="addition, subtraction, multiplication, division or modular")
        train_length: One = Field("1-3", description="digits of the larger operand that are trained on")
        test_length: Several = Field("4,5,6", description="other digits of the larger operand: each is a test split")
        format: Literal["plain", "padded", "reversed"] = Field(
            "plain", description="as usual; with zeros to the longer operand + 1 (products: twice it); from the end"
        )
        scratchpad: bool = Field(False, description="whether the target spells the working before the answer")
        modulus: int = Field(7, ge=2, le=10**6, description="what `modular` reduces by")

    config: Config

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return SPLIT_SCHEMES

    def check(self) -> None:
        super().check()
        for span in [self.train_span, *spans(self.config.test_length)]:
            if span.last > MOST_DIGITS:
                raise UserError(f"numbers must have at most {MOST_DIGITS} digits, but a range of lengths is '{span}'")

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        if length > MOST_DIGITS:
            return None
        left, right = operands(random, length)
        modular = self.config.split == "modular"
        symbol = random.choice(tuple(RESULT)) if modular else SYMBOL[self.config.split]
        if symbol == "/" and right == 0:
            return None
        width = self._width(length)
        modulus = ("mod", *self._written(self.config.modulus, width)) if modular else ()
        source = (*self._written(left, width), symbol, *self._written(right, width), *modulus, "=")
        return Drawn(source, self._target(left, symbol, right, width), self._tags(left, symbol, right))

    def key(self, source: Tokens) -> Tokens:
        """Sums and products whose operands are swapped say the same, so they are on the same side."""
        symbol = next((token for token in source if token in "+*"), None)
        if symbol is None:
            return source
        place = source.index(symbol)
        end = source.index("mod" if "mod" in source else "=")
        left, right = sorted((source[:place], source[place + 1 : end]))
        return (*left, symbol, *right, *source[end:])

    def _width(self, length: int) -> int:
        """The digits to which the numbers of an example are padded: all that its answer can need."""
        if self.config.format != "padded":
            return 1
        if self.config.split == "modular":
            return max(length + 1, len(str(self.config.modulus)))
        return 2 * length if self.config.split == "multiplication" else length + 1

    def _written(self, number: int, width: int) -> Tokens:
        """A number in the chosen format. Its sign is first in all of them, since the digits depend on it."""
        text = str(abs(number)).zfill(width)
        sign = ("-",) if number < 0 else ()
        return (*sign, *(text[::-1] if self.config.format == "reversed" else text))

    def _target(self, left: int, symbol: str, right: int, width: int) -> Tokens:
        modulus = self.config.modulus if self.config.split == "modular" else None
        if symbol == "/":
            out = (*self._written(left // right, width), "r", *self._written(left % right, width))
        else:
            result = RESULT[symbol](left, right)
            out = self._written(result % modulus if modulus else result, width)
        return (*working(left, symbol, right, modulus), ANSWER, *out) if self.config.scratchpad else out

    def _tags(self, left: int, symbol: str, right: int) -> dict[str, Tag]:
        """Digits of both sides; then the operator where there are several, and carries where they are defined."""
        sides: dict[str, Tag] = {"digits_left": len(str(left)), "digits_right": len(str(right))}
        if self.config.split == "modular":
            return sides | {"operator": symbol}
        return sides | {"carries": carries(left, symbol, right)} if symbol in "+-" else sides

    def tokens(self, text: str) -> Tokens:
        """A source as a user types it, as tokens: blanks may be missing, `12+3=`."""
        return tuple(re.findall(r"mod|\S", text))

    def score(self, predictions: Sequence[Tokens], examples: Sequence[Example]) -> dict[str, float]:
        """Exact match is of the whole target, as in every task: a right answer after wrong working doesn't count.

        `answer_exact_match` leaves the working out, so that runs with and without one can be compared.
        """
        scores = super().score(predictions, examples)
        part = answer if self.config.scratchpad else tuple
        pairs = zip(predictions, examples, strict=True)
        right = mean(exact_match(part(prediction), part(example.target)) for prediction, example in pairs)
        return scores | {"answer_exact_match": right}
