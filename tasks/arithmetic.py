"""Arithmetic on decimal numbers, one token per digit: does a model learn the algorithm or only the trained sizes?

    1 2 3 + 4 5 =            ->  1 6 8         (addition)
    1 2 - 3 4 5 =            ->  - 3 3 3       (subtraction)
    1 2 * 3 4 =              ->  4 0 8         (multiplication)
    1 2 3 / 4 5 =            ->  2 r 3 3       (division: quotient, remainder)
    1 2 * 3 4 mod 7 =        ->  2             (modular)

Numbers may be zero-padded or written with the least significant digit first (Nogueira et al. 2021, arXiv 2102.13019),
in the answer only with `data.reverse_output` (Lee et al. 2023, arXiv 2307.03381), and the target may start with a
scratchpad of intermediate steps (Nye et al. 2021, arXiv 2112.00114). `length` is the number of digits of the larger
operand, which may be on either side. The other operand has 1 to `length` digits, so all combinations of operand sizes
occur. Dividing by a larger number is easy: the quotient is 0.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, zip_longest
from random import Random
from typing import ClassVar, Literal

from pydantic import Field

from tfstudy.errors import UserError
from tfstudy.tasks.base import Example, Tokens
from tfstudy.tasks.generated import Drawn, LengthRange, LengthRanges, Scratchpad, ScratchpadConfig, random_number

SYMBOL = {"addition": "+", "subtraction": "-", "multiplication": "*", "division": "/"}
RESULT: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
MAX_DIGITS = 2000  # Python formats at most 4,300 digits, and a product has up to twice the digits of its factors


def operands(random: Random, length: int) -> tuple[int, int]:
    """Draw a number of `length` digits and one of 1 to `length` digits, in random order."""
    pair = random_number(random, length), random_number(random, random.randint(1, length))
    return pair if random.random() < 0.5 else pair[::-1]


def from_least(number: int) -> Tokens:
    """Return the digits of a number, the least significant first."""
    return tuple(str(number)[::-1])


@cache
def column(left: str, right: str, carry: str, sign: int) -> tuple[str, str, str, str]:
    """Return two digits, the digit of their sum (sign 1) or difference (sign -1), and the carry or borrow (0 or 1)."""
    carried, digit = divmod(int(left) + sign * (int(right) + int(carry)), 10)
    return left, right, str(digit), str(abs(carried))


def columns(left: int, symbol: str, right: int) -> Iterator[Tokens]:
    """Yield the columns of an addition or subtraction (larger minus smaller), the least significant first."""
    if symbol == "-" and left < right:
        left, right = right, left
    sign, carry = 1 if symbol == "+" else -1, "0"
    for a, b in zip_longest(str(left)[::-1], str(right)[::-1], fillvalue="0"):
        step = column(a, b, carry, sign)
        carry = step[-1]
        yield step


def products(left: int, right: int) -> Iterator[Tokens]:
    """Yield each digit of `right`, the least significant first, followed by the digits of the running total.

    After each step the last digit of the total is final: it belongs to the answer and is dropped from the total.
    """
    total = 0
    for digit in from_least(right):
        total = total // 10 + int(digit) * left
        yield (digit, *from_least(total))


def quotients(number: int, divisor: int) -> Iterator[Tokens]:
    """Yield the steps of long division, the most significant digit first: a digit of the quotient and the remainder."""
    rest = 0
    for digit in str(number):
        quotient, rest = divmod(rest * 10 + int(digit), divisor)
        yield (str(quotient), *str(rest))


def scratchpad(left: int, symbol: str, right: int, modulus: int | None) -> Tokens:
    """Return the steps of the written method separated by commas, digits in the order of computation.

    A subtraction takes the smaller number from the larger. Modular arithmetic reduces both operands digit by digit.
    """
    steps: Iterator[Tokens]
    if modulus:
        steps = (tuple(rest) for number in (left, right) for _, *rest in quotients(number, modulus))
    elif symbol == "*":
        steps = products(left, right)
    elif symbol == "/":
        steps = quotients(left, right)
    else:
        steps = columns(left, symbol, right)
    return tuple(chain.from_iterable([(*step, ",") for step in steps]))[:-1]


def carries(left: int, symbol: str, right: int) -> list[bool]:
    """Return in which columns, the last digits first, an addition carries or a subtraction (larger - smaller) borrows.

    A column carries if the digits up to it add up to a larger place value; this is faster than computing the columns.
    """
    larger, smaller = max(left, right), min(left, right)
    powers = [10**digits for digits in range(1, len(str(larger)) + 1)]
    if symbol == "+":
        return [larger % power + smaller % power >= power for power in powers]
    return [larger % power < smaller % power for power in powers]


class Arithmetic(Scratchpad):
    """Map two numbers to the result of an operation; examples are at the top of this file."""

    schemes: ClassVar = {
        "addition": "the sum of two numbers",
        "subtraction": "the difference of two numbers, with a minus sign if the second is larger",
        "multiplication": "the product of two numbers",
        "division": "the quotient and the remainder of two numbers; the divisor is not zero",
        "modular": "the sum, difference or product modulo `data.modulus`",
    }
    steps_of: ClassVar = {"cnn": 6000}  # with 3000 it ends at 75 %

    class Config(ScratchpadConfig):
        split: str = "addition"
        train_length: LengthRange = "1-3"
        test_length: LengthRanges = "4,5,6"
        format: Literal["plain", "padded", "reversed"] = Field(
            "plain",
            description="padded: zeros up to length + 1 digits (products: 2 * length); reversed: last digit first",
        )
        reverse_output: bool = Field(
            False, description="write the answer with the last digit first, whatever the format of the operands"
        )
        modulus: int = Field(7, ge=2, le=10**6, description="modulus of the split scheme `modular`")

    config: Config

    def check(self) -> None:
        super().check()
        if self.config.reverse_output and self.config.format == "reversed":
            raise UserError("data.reverse_output needs data.format=plain or padded: 'reversed' includes the answer")
        for span in self.all_spans:
            if span.last > MAX_DIGITS:
                raise UserError(f"numbers can have at most {MAX_DIGITS} digits, but a range of lengths is '{span}'")

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        if length > MAX_DIGITS:
            return None
        left, right = operands(random, length)
        modular = self.config.split == "modular"
        symbol = random.choice(tuple(RESULT)) if modular else SYMBOL[self.config.split]
        if symbol == "/" and right == 0:
            return None
        width = self._width(length)
        modulus = self.config.modulus if modular else None
        suffix = ("mod", *self._digits(modulus, width)) if modulus else ()
        source = (*self._digits(left, width), symbol, *self._digits(right, width), *suffix, "=")
        reverse, tags = self.config.reverse_output, {"digits_left": len(str(left)), "digits_right": len(str(right))}
        if symbol == "/":
            quotient, remainder = divmod(left, right)
            answer = (*self._digits(quotient, width, reverse), "r", *self._digits(remainder, width, reverse))
        else:
            result = RESULT[symbol](left, right)
            answer = self._digits(result % modulus if modulus else result, width, reverse)
        target = self.with_steps(answer, lambda: scratchpad(left, symbol, right, modulus))
        if modular:
            return Drawn(source, target, {**tags, "operator": symbol})
        return Drawn(source, target, {**tags, "carries": sum(carries(left, symbol, right))} if symbol in "+-" else tags)

    def labels(self, example: Example) -> Mapping[str, Sequence[int | None]]:
        """Return, at each digit of a sum or difference, whether its column carries or borrows (1) or not (0)."""
        symbol = SYMBOL.get(self.config.split, "")
        if symbol not in RESULT or symbol == "*":
            return {}
        middle, step = example.source.index(symbol), 1 if self.config.format == "reversed" else -1
        digits = example.source[:middle][::step], example.source[middle + 1 : -1][::step]  # from the last one
        left, right = (int("".join(number[::-1])) for number in digits)
        columns = [*map(int, carries(left, symbol, right)), *[0] * max(map(len, digits))]
        first, second = (columns[: len(number)][::step] for number in digits)
        return {"carry": [*first, None, *second, None]}

    def group(self, source: Tokens) -> Tokens:
        """Keep sums and products with swapped operands together: their results are the same."""
        symbol = next((token for token in source if token in "+*"), None)  # noqa: S105 - a token of the task
        if symbol is None:
            return source
        position = source.index(symbol)
        end = source.index("mod" if "mod" in source else "=")
        left, right = sorted((source[:position], source[position + 1 : end]))
        return (*left, symbol, *right, *source[end:])

    def _width(self, length: int) -> int:
        """Return the number of digits to pad to: as many as the answer can have."""
        if self.config.format != "padded":
            return 1
        if self.config.split == "modular":
            return max(length + 1, len(str(self.config.modulus)))
        return 2 * length if self.config.split == "multiplication" else length + 1

    def _digits(self, number: int, width: int, last_first: bool = False) -> Tokens:
        """Return a number in the configured format. The sign is always first, since the digits depend on it."""
        text = str(abs(number)).zfill(width)
        sign = ("-",) if number < 0 else ()
        return (*sign, *(text[::-1] if last_first or self.config.format == "reversed" else text))

    def digits(self) -> frozenset[str]:
        return frozenset("0123456789") if self.config.format == "reversed" else frozenset()

    def tokens(self, text: str) -> Tokens:
        """Return the tokens of a source typed by a user; spaces are optional, as in `12+3=`."""
        return tuple(re.findall(r"mod|\S", text))

    def score(self, predictions: Sequence[Tokens], examples: Sequence[Example]) -> dict[str, float]:
        """Return the usual metrics and `answer_exact_match`, by which runs with and without a scratchpad compare."""
        scores = super().score(predictions, examples)
        return scores | {"answer_exact_match": scores.get("answer_exact_match", scores["exact_match"])}
