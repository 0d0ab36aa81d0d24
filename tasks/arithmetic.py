"""Arithmetic on decimal numbers, one token per digit: does a model learn the algorithm or only the trained sizes?

    1 2 3 + 4 5 =            ->  1 6 8         (addition)
    1 2 - 3 4 5 =            ->  - 3 3 3       (subtraction)
    1 2 * 3 4 =              ->  4 0 8         (multiplication)
    1 2 3 / 4 5 =            ->  2 r 3 3       (division: quotient, remainder)

Numbers may be written with the least significant digit first (Nogueira et al. 2021, arXiv 2102.13019), and
`data.scratchpad` writes the columns of a sum or difference before it, the last one first: both digits, that of the
result, and what is carried or borrowed.

`length` is the number of digits of the larger operand, which may be on either side. The other operand has 1 to `length`
digits, so all combinations of operand sizes occur. Dividing by a larger number is easy: the quotient is 0.
"""

from collections.abc import Sequence
from itertools import chain
from random import Random
from typing import ClassVar, Literal

from pydantic import Field

from tfstudy.tasks.base import Tag, Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, Lengths

SYMBOL = {"addition": "+", "subtraction": "-", "multiplication": "*", "division": "/"}
MAX_DIGITS = 2000  # Python formats at most 4,300 digits, and a product has up to twice the digits of its factors


def random_number(random: Random, digits: int) -> int:
    """Draw a uniform number with this number of digits; 0 has one digit."""
    return random.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)


def carries(left: int, symbol: str, right: int) -> list[bool]:
    """Return in which columns, the last digits first, an addition carries or a subtraction (larger - smaller) borrows.

    A column carries if the digits up to it add up to a larger place value; this is faster than computing the columns.
    """
    larger, smaller = max(left, right), min(left, right)
    powers = [10**size for size in range(1, len(str(larger)) + 1)]
    if symbol == "+":
        return [larger % power + smaller % power >= power for power in powers]
    return [larger % power < smaller % power for power in powers]


def columns(left: int, right: int, result: int, carried: Sequence[bool]) -> Tokens:
    """Return the columns of a sum or a difference (larger - smaller), the last digits first, separated by commas."""
    numbers = (max(left, right), min(left, right), abs(result))
    texts = [str(number)[::-1].ljust(len(carried), "0") for number in numbers]
    steps = [(*column, str(int(carry)), ",") for *column, carry in zip(*texts, carried, strict=False)]
    return tuple(chain.from_iterable(steps))[:-1]


class Arithmetic(Generated):
    """Map two numbers to the result of an operation; examples are at the top of this file."""

    schemes: ClassVar = {
        "addition": "the sum of two numbers",
        "subtraction": "the difference of two numbers, with a minus sign if the second is larger",
        "multiplication": "the product of two numbers",
        "division": "the quotient and the remainder of two numbers; the divisor is not zero",
    }
    by_character = True
    with_steps = ("addition", "subtraction")
    steps_of: ClassVar = {"cnn": 6000}  # with 3000 it ends at 75 %

    class Config(GeneratedConfig):
        split: str = "addition"
        train_length: Lengths = "1-3"
        test_length: Lengths = "4,5,6"
        format: Literal["plain", "reversed"] = Field(
            "plain", description="plain: first digit first; reversed: last digit first"
        )

    config: Config

    def lengths(self) -> range:
        return range(1, MAX_DIGITS + 1)

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        left, right = random_number(random, length), random_number(random, random.randint(1, length))
        if random.random() >= 0.5:
            left, right = right, left
        symbol, turned = SYMBOL[self.config.split], self.config.format == "reversed"
        source = (*digits(left, turned), symbol, *digits(right, turned), "=")
        tags: dict[str, Tag] = {"digits_left": len(str(left)), "digits_right": len(str(right))}
        if symbol == "/":
            if not right:
                return None
            quotient, remainder = divmod(left, right)
            return Drawn(source, (*digits(quotient, turned), "r", *digits(remainder, turned)), tags)
        if symbol == "*":
            return Drawn(source, digits(left * right, turned), tags)
        result = left + right if symbol == "+" else left - right
        carried = carries(left, symbol, right)
        steps = columns(left, right, result, carried) if self.config.scratchpad else ()
        return Drawn(source, digits(result, turned), {**tags, "carries": sum(carried)}, steps)

    def group(self, source: Tokens) -> Tokens:
        """Keep sums and products with swapped operands together: their results are the same."""
        symbol = SYMBOL[self.config.split]
        if symbol not in "+*":
            return source
        position = source.index(symbol)
        left, right = sorted((source[:position], source[position + 1 : -1]))
        return (*left, symbol, *right, "=")

    def digits(self) -> frozenset[str]:
        return frozenset("0123456789") if self.config.format == "reversed" else frozenset()


def digits(number: int, last_first: bool) -> Tokens:
    """Return a number as tokens. The sign is always first, since the digits depend on it."""
    text = str(abs(number))
    return (*("-" * (number < 0)), *(text[::-1] if last_first else text))
