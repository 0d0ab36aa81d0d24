"""Arithmetic on decimal numbers, one token per digit: does a model learn the algorithm or only the trained sizes?

    1 2 3 + 4 5 =            ->  1 6 8         (addition)
    1 2 - 3 4 5 =            ->  - 3 3 3       (subtraction)
    1 2 * 3 4 =              ->  4 0 8         (multiplication)
    1 2 3 / 4 5 =            ->  2 r 3 3       (division: quotient, remainder)
    1 2 * 3 4 mod 7 =        ->  2             (modular)

Numbers may be zero-padded or written with the least significant digit first (Nogueira et al. 2021, arXiv 2102.13019;
Lee et al. 2023, arXiv 2307.03381), and the target may start with a scratchpad of intermediate steps (Nye et al. 2021,
arXiv 2112.00114). `length` is the number of digits of the larger operand, which may be on either side. The other
operand has 1 to `length` digits, so all combinations of operand sizes occur. Dividing by a larger number is easy: the
quotient is 0.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, zip_longest
from random import Random
from typing import Literal

from pydantic import Field

from tfstudy.tasks.base import Example, Tag, Tokens
from tfstudy.tasks.errors import UserError
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, LengthRange, LengthRanges, random_number
from tfstudy.tasks.scoring import exact_match, mean

SPLIT_SCHEMES = {
    "addition": "the sum of two numbers",
    "subtraction": "the difference of two numbers, with a minus sign if the second is larger",
    "multiplication": "the product of two numbers",
    "division": "the quotient and the remainder of two numbers; the divisor is not zero",
    "modular": "the sum, difference or product modulo `data.modulus`",
}
SYMBOL = {"addition": "+", "subtraction": "-", "multiplication": "*", "division": "/"}
RESULT: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
ANSWER = ":"  # separates the scratchpad from the answer
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


def remainders(number: int, divisor: int) -> Iterator[Tokens]:
    """Yield only the remainders of long division."""
    for _, *rest in quotients(number, divisor):
        yield tuple(rest)


def scratchpad(left: int, symbol: str, right: int, modulus: int | None) -> Tokens:
    """Return the steps of the written method separated by commas, digits in the order of computation.

    A subtraction takes the smaller number from the larger. Modular arithmetic reduces both operands digit by digit.
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
    """Return the number of columns in which an addition carries or a subtraction (larger minus smaller) borrows.

    A column carries if the digits up to it add up to a larger place value; this is faster than computing the columns.
    """
    larger, smaller = max(left, right), min(left, right)
    powers = [10**digits for digits in range(1, len(str(larger)) + 1)]
    if symbol == "+":
        return sum([larger % power + smaller % power >= power for power in powers])
    return sum([larger % power < smaller % power for power in powers])


def answer(target: Sequence[str]) -> Tokens:
    """Return the tokens after the scratchpad; empty if the separator is missing."""
    target = tuple(target)
    return target[target.index(ANSWER) + 1 :] if ANSWER in target else ()


class Arithmetic(Generated):
    """Map two numbers to the result of an operation; examples are at the top of this file."""

    version = 1

    class Config(GeneratedConfig):
        split: str = Field("addition", description="addition, subtraction, multiplication, division or modular")
        train_length: LengthRange = Field("1-3", description="digits of the larger operand in training")
        test_length: LengthRanges = Field(
            "4,5,6", description="further digits of the larger operand; each range is a test split"
        )
        format: Literal["plain", "padded", "reversed"] = Field(
            "plain",
            description="padded: zeros up to length + 1 digits (products: 2 * length); reversed: last digit first",
        )
        scratchpad: bool = Field(False, description="write the intermediate steps before the answer")
        modulus: int = Field(7, ge=2, le=10**6, description="modulus of the split scheme `modular`")

    config: Config

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return SPLIT_SCHEMES

    def check(self) -> None:
        super().check()
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
        modulus = ("mod", *self._digits(self.config.modulus, width)) if modular else ()
        source = (*self._digits(left, width), symbol, *self._digits(right, width), *modulus, "=")
        return Drawn(source, self._target(left, symbol, right, width), self._tags(left, symbol, right))

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

    def _digits(self, number: int, width: int) -> Tokens:
        """Return a number in the configured format. The sign is always first, since the digits depend on it."""
        text = str(abs(number)).zfill(width)
        sign = ("-",) if number < 0 else ()
        return (*sign, *(text[::-1] if self.config.format == "reversed" else text))

    def _target(self, left: int, symbol: str, right: int, width: int) -> Tokens:
        modulus = self.config.modulus if self.config.split == "modular" else None
        if symbol == "/":
            out = (*self._digits(left // right, width), "r", *self._digits(left % right, width))
        else:
            result = RESULT[symbol](left, right)
            out = self._digits(result % modulus if modulus else result, width)
        return (*scratchpad(left, symbol, right, modulus), ANSWER, *out) if self.config.scratchpad else out

    def _tags(self, left: int, symbol: str, right: int) -> dict[str, Tag]:
        """Return the digits of both operands; also the operator (modular) or the carries (sums and differences)."""
        sides: dict[str, Tag] = {"digits_left": len(str(left)), "digits_right": len(str(right))}
        if self.config.split == "modular":
            return sides | {"operator": symbol}
        return sides | {"carries": carries(left, symbol, right)} if symbol in "+-" else sides

    def tokens(self, text: str) -> Tokens:
        """Return the tokens of a source typed by a user; blanks are optional, as in `12+3=`."""
        return tuple(re.findall(r"mod|\S", text))

    def score(self, predictions: Sequence[Tokens], examples: Sequence[Example]) -> dict[str, float]:
        """Return the usual metrics of the whole target, and `answer_exact_match`, which ignores the scratchpad.

        With `answer_exact_match`, runs with and without a scratchpad can be compared.
        """
        scores = super().score(predictions, examples)
        part = answer if self.config.scratchpad else tuple
        pairs = zip(predictions, examples, strict=True)
        accuracy = mean(exact_match(part(prediction), part(example.target)) for prediction, example in pairs)
        return scores | {"answer_exact_match": accuracy}
