"""Arithmetic on decimal numbers, one token per digit: does a model learn the algorithm or only the trained sizes?

    1 2 3 + 4 5 =            ->  1 6 8         (addition)
    1 2 - 3 4 5 =            ->  - 3 3 3       (subtraction)
    1 2 * 3 4 =              ->  4 0 8         (multiplication)
    1 2 3 / 4 5 =            ->  2 r 3 3       (division: quotient, remainder)

Numbers may be written with the least significant digit first (Nogueira et al. 2021, arXiv 2102.13019), in the answer
only with `data.reverse_output` (Lee et al. 2023, arXiv 2307.03381). `data.scratchpad` writes the columns of a sum or
difference before it, the last one first: both digits, that of the result, and what is carried or borrowed.

`length` is the number of digits of the larger operand, which may be on either side. The other operand has 1 to `length`
digits, so all combinations of operand sizes occur. Dividing by a larger number is easy: the quotient is 0.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from random import Random
from typing import ClassVar, Literal

from pydantic import Field

from tfstudy.errors import UserError
from tfstudy.tasks.base import Example, Tag, Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, LengthRange, LengthRanges, random_number

SYMBOL = {"addition": "+", "subtraction": "-", "multiplication": "*", "division": "/"}
MAX_DIGITS = 2000  # Python formats at most 4,300 digits, and a product has up to twice the digits of its factors


def operands(random: Random, length: int) -> tuple[int, int]:
    """Draw a number of `length` digits and one of 1 to `length` digits, in random order."""
    pair = random_number(random, length), random_number(random, random.randint(1, length))
    return pair if random.random() < 0.5 else pair[::-1]


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
    numbers = (
        str(number)[::-1].ljust(len(carried), "0") for number in (max(left, right), min(left, right), abs(result))
    )
    steps = [(*column, str(int(carry)), ",") for *column, carry in zip(*numbers, carried, strict=False)]
    return tuple(chain.from_iterable(steps))[:-1]


class Arithmetic(Generated):
    """Map two numbers to the result of an operation; examples are at the top of this file."""

    schemes: ClassVar = {
        "addition": "the sum of two numbers",
        "subtraction": "the difference of two numbers, with a minus sign if the second is larger",
        "multiplication": "the product of two numbers",
        "division": "the quotient and the remainder of two numbers; the divisor is not zero",
    }
    with_steps = ("addition", "subtraction")
    steps_of: ClassVar = {"cnn": 6000}  # with 3000 it ends at 75 %

    class Config(GeneratedConfig):
        split: str = "addition"
        train_length: LengthRange = "1-3"
        test_length: LengthRanges = "4,5,6"
        format: Literal["plain", "reversed"] = Field(
            "plain", description="plain: first digit first; reversed: last digit first"
        )
        reverse_output: bool = Field(
            False, description="write the answer with the last digit first, whatever the format of the operands"
        )

    config: Config

    def check(self) -> None:
        super().check()
        if self.config.reverse_output and self.config.format == "reversed":
            raise UserError("data.reverse_output needs data.format=plain: 'reversed' includes the answer")
        for span in self.all_spans:
            if span.last > MAX_DIGITS:
                raise UserError(f"numbers can have at most {MAX_DIGITS} digits, but a range of lengths is '{span}'")

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        if length > MAX_DIGITS:
            return None
        left, right = operands(random, length)
        symbol, turned = SYMBOL[self.config.split], self.config.format == "reversed"
        source = (*digits(left, turned), symbol, *digits(right, turned), "=")
        tags: dict[str, Tag] = {"digits_left": len(str(left)), "digits_right": len(str(right))}
        turned |= self.config.reverse_output
        match symbol:
            case "/":
                if not right:
                    return None
                quotient, remainder = divmod(left, right)
                return Drawn(source, (*digits(quotient, turned), "r", *digits(remainder, turned)), tags)
            case "*":
                return Drawn(source, digits(left * right, turned), tags)
        result = left + right if symbol == "+" else left - right
        carried = carries(left, symbol, right)
        steps = columns(left, right, result, carried) if self.config.scratchpad else ()
        return Drawn(source, digits(result, turned), {**tags, "carries": sum(carried)}, steps)

    def labels(self, example: Example) -> Mapping[str, Sequence[int | None]]:
        """Return, at each digit of a sum or difference, whether its column carries or borrows (1) or not (0)."""
        symbol = SYMBOL[self.config.split]
        if symbol not in "+-":
            return {}
        middle, step = example.source.index(symbol), 1 if self.config.format == "reversed" else -1
        numbers = example.source[:middle][::step], example.source[middle + 1 : -1][::step]  # from the last digit
        left, right = (int("".join(number[::-1])) for number in numbers)
        columns = [*map(int, carries(left, symbol, right))]
        first, second = (columns[: len(number)][::step] for number in numbers)
        return {"carry": [*first, None, *second, None]}

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

    def tokens(self, text: str) -> Tokens:
        """Return the tokens of a source typed by a user; spaces are optional, as in `12+3=`."""
        return tuple("".join(text.split()))


def digits(number: int, last_first: bool) -> Tokens:
    """Return a number as tokens. The sign is always first, since the digits depend on it."""
    text = str(abs(number))
    return (*("-" * (number < 0)), *(text[::-1] if last_first else text))
