"""Fifteen tasks of the Chomsky hierarchy, which test a network's memory (Deletang et al. 2022, arXiv 2207.02098).

    regular (finite memory)
        even_pairs                   0 1 1 0                  ->  even
        parity                       0 1 1 0 1                ->  odd
        cycle_navigation             +1 -1 0 -1 -1            ->  3
        modular_arithmetic           1 + 2 * 3                ->  2
    deterministic context-free (a stack)
        reverse_string               0 0 1                    ->  1 0 0
        stack_manipulation           0 1 1 push0 pop pop      ->  1 0
        modular_arithmetic_brackets  ( 2 * ( 1 - - 3 ) )      ->  3
        solve_equation               ( x - ( 4 ) ) = 2        ->  1
    context-sensitive (a tape)
        duplicate_string             0 0 1                    ->  0 0 1 0 0 1
        missing_duplicate            0 1 1 0 1 _              ->  1
        odds_first                   0 1 1 0 1                ->  0 1 1 1 0
        binary_addition              0 0 1 + 0 1 1 0 1        ->  0 1 0 1 1
        binary_multiplication        0 0 1 * 0 1 1 0 1        ->  0 0 0 1 1 0 1
        compute_sqrt                 1 0 0 1 0 1              ->  1 1 0
        bucket_sort                  4 1 0 4 2                ->  0 1 2 4 4

`length` is the number of source tokens, as in the paper. The paper trains on lengths 1-40 and tests on 41-500
(`--set data.test_length=41-500`); the default here tests 41-100. Lengths that do not exist are skipped: even lengths of
`modular_arithmetic`, lengths below 3 of the binary operations and `solve_equation`, and below 2 of `missing_duplicate`.

Two things differ from the paper. First, targets contain no padding and no end symbol, since models here generate an end
symbol themselves; an empty stack is an empty target, and token accuracy divides by the longer of prediction and target.
Second, no source occurs twice, so short lengths, which have few sources, are rarer in training than under a uniform
distribution. One function draws the examples of each problem (app. A of the paper), given the number of source tokens.
"""

import math
import operator
from collections.abc import Callable
from random import Random
from typing import ClassVar, NamedTuple

from pydantic import Field

from tfstudy.errors import UserError
from tfstudy.tasks.base import Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, LengthRange, LengthRanges

BITS = "01"
MODULUS = 5  # of the arithmetic; also the length of the cycle and the size of the alphabet of bucket_sort
DIGITS = "01234"
MOVES = {"+1": 1, "-1": -1, "0": 0}
POP, PUSH = "pop", {"push0": "0", "push1": "1"}
MISSING, BLANK = "_", "#"

REGULAR, CONTEXT_FREE, CONTEXT_SENSITIVE = "regular", "deterministic context-free", "context-sensitive"

Draw = Callable[[Random, int], Drawn]


class Problem(NamedTuple):
    """A problem of the paper. Its lengths are `first`, `first + step`, `first + 2 * step`, ..."""

    level: str
    description: str
    first: int
    step: int
    draw: Draw

    def has(self, length: int) -> bool:
        """Return whether sources of this length exist."""
        return length >= self.first and (length - self.first) % self.step == 0


PROBLEMS: dict[str, Problem] = {}


def problem(level: str, description: str, first: int = 1, step: int = 1) -> Callable[[Draw], Draw]:
    """Register a function that draws an example of a given length as the problem of its name."""

    def register(draw: Draw) -> Draw:
        PROBLEMS[draw.__name__] = Problem(level, description, first, step, draw)
        return draw

    return register


def string(random: Random, length: int, alphabet: str = BITS) -> str:
    """Draw a uniform string."""
    return "".join(random.choices(alphabet, k=length))


def answer(odd: bool) -> Tokens:
    """Return the target of problems that ask for odd or even."""
    return ("odd",) if odd else ("even",)


@problem(REGULAR, "whether 01 and 10 together occur an even number of times")
def even_pairs(random: Random, length: int) -> Drawn:
    """Use that the symbol changes an odd number of times if and only if the last differs from the first."""
    bits = string(random, length)
    return Drawn(tuple(bits), answer(bits[0] != bits[-1]))


@problem(REGULAR, "whether the number of 1s is even or odd")
def parity(random: Random, length: int) -> Drawn:
    bits = string(random, length)
    return Drawn(tuple(bits), answer(bits.count("1") % 2 == 1))


@problem(REGULAR, "the final position after moves on a cycle of five positions")
def cycle_navigation(random: Random, length: int) -> Drawn:
    moves = tuple(random.choices(tuple(MOVES), k=length))
    return Drawn(moves, (str(sum(map(MOVES.__getitem__, moves)) % MODULUS),))


@problem(REGULAR, "the value modulo 5 of a sum without brackets, of odd length", step=2)
def modular_arithmetic(random: Random, length: int) -> Drawn:
    """Draw alternating digits and operators; `*` binds more tightly than `+` and `-`."""
    digits, operators = random.choices(range(MODULUS), k=length // 2 + 1), random.choices("+-*", k=length // 2)
    total, term = 0, digits[0]  # `term` is the current product with its sign
    source = [str(digits[0])]
    for sign, digit in zip(operators, digits[1:], strict=True):
        source += sign, str(digit)
        if sign == "*":
            term = term * digit % MODULUS
        else:
            total, term = total + term, digit if sign == "+" else -digit
    return Drawn(tuple(source), (str((total + term) % MODULUS),))


@problem(CONTEXT_FREE, "the string in reverse order")
def reverse_string(random: Random, length: int) -> Drawn:
    bits = string(random, length)
    return Drawn(tuple(bits), tuple(reversed(bits)))


@problem(CONTEXT_FREE, "the stack after a sequence of actions, from top to bottom")
def stack_manipulation(random: Random, length: int) -> Drawn:
    """Draw a stack from bottom to top, then actions; the target is the final stack from top to bottom.

    All lengths except 1 have an action. Popping an empty stack changes nothing.
    """
    height = random.randint(1, max(1, length - 1))
    stack = random.choices(BITS, k=height)
    actions = random.choices((POP, *PUSH), k=length - height)
    source = (*stack, *actions)
    for action in actions:
        if action != POP:
            stack.append(PUSH[action])
        elif stack:
            stack.pop()
    return Drawn(source, tuple(reversed(stack)))


class Expression(NamedTuple):
    """An expression of one-character symbols and its value modulo 5."""

    text: str
    value: int


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def expression(random: Random, length: int, operators: str) -> Expression:
    """Draw from the paper's grammar: `d`, `-d`, `(d)` or `(-d)` up to four symbols, else `(left operator right)`.

    The length of `left` is uniform over all lengths that leave a symbol for `right`.
    """
    if length < 5:
        digit = random.choice(DIGITS)
        text = f"-{digit}" if length % 2 == 0 else digit
        value = -int(digit) if length % 2 == 0 else int(digit)
        return Expression(text if length < 3 else f"({text})", value % MODULUS)
    cut = random.randint(1, length - 4)
    left, right = expression(random, cut, operators), expression(random, length - 3 - cut, operators)
    sign = random.choice(operators)
    return Expression(f"({left.text}{sign}{right.text})", OPERATIONS[sign](left.value, right.value) % MODULUS)


@problem(CONTEXT_FREE, "the value modulo 5 of a bracketed expression")
def modular_arithmetic_brackets(random: Random, length: int) -> Drawn:
    text, value = expression(random, length, "+-*")
    return Drawn(tuple(text), (str(value),))


@problem(CONTEXT_FREE, "the unknown of an equation modulo 5", first=3)
def solve_equation(random: Random, length: int) -> Drawn:
    """Replace one digit by an unknown. As in the paper's experiments there is no `*`, so the solution is unique."""
    text, value = expression(random, length - 2, "+-")
    position = random.choice([index for index, symbol in enumerate(text) if symbol.isdigit()])
    return Drawn((*text[:position], "x", *text[position + 1 :], "=", str(value)), (text[position],))


@problem(CONTEXT_SENSITIVE, "the string, written twice")
def duplicate_string(random: Random, length: int) -> Drawn:
    bits = string(random, length)
    return Drawn(tuple(bits), tuple(bits * 2))


@problem(CONTEXT_SENSITIVE, "the symbol missing from a string written twice", first=2)
def missing_duplicate(random: Random, length: int) -> Drawn:
    """Draw a string written twice with one symbol missing, the target; odd lengths end with a blank."""
    twice = string(random, length // 2) * 2
    position = random.randrange(len(twice))
    source = twice[:position] + MISSING + twice[position + 1 :] + BLANK * (length % 2)
    return Drawn(tuple(source), (twice[position],))


@problem(CONTEXT_SENSITIVE, "the symbols at odd positions, then those at even positions")
def odds_first(random: Random, length: int) -> Drawn:
    """Move the first, third, ... symbol to the front, as in the paper's text; its code starts with the second."""
    bits = string(random, length)
    return Drawn(tuple(bits), tuple(bits[::2] + bits[1::2]))


def little_endian(number: int, digits: int = 1) -> str:
    """Return binary digits, the least significant first, padded with zeros at the end to `digits`."""
    return f"{number:0{digits}b}"[::-1]


def binary(random: Random, length: int, sign: str) -> Drawn:
    """Draw two positive numbers, least significant digit first; operands may end with zeros, the result may not.

    The number of digits of the first operand is uniform; each number is uniform given its number of digits.
    """
    digits = random.randint(1, length - 2)
    others = length - 1 - digits
    first, second = random.randint(1, 2**digits - 1), random.randint(1, 2**others - 1)
    source = little_endian(first, digits) + sign + little_endian(second, others)
    return Drawn(tuple(source), tuple(little_endian(OPERATIONS[sign](first, second))))


@problem(CONTEXT_SENSITIVE, "the sum of two numbers, least significant digit first", first=3)
def binary_addition(random: Random, length: int) -> Drawn:
    return binary(random, length, "+")


@problem(CONTEXT_SENSITIVE, "the product of two numbers, least significant digit first", first=3)
def binary_multiplication(random: Random, length: int) -> Drawn:
    return binary(random, length, "*")


@problem(CONTEXT_SENSITIVE, "the binary square root, rounded down")
def compute_sqrt(random: Random, length: int) -> Drawn:
    """Draw a positive number, most significant digit first; its root has half as many digits, rounded up."""
    number = random.randint(1, 2**length - 1)
    return Drawn(tuple(f"{number:0{length}b}"), tuple(f"{math.isqrt(number):0{(length + 1) // 2}b}"))


@problem(CONTEXT_SENSITIVE, "a string of five symbols in sorted order")
def bucket_sort(random: Random, length: int) -> Drawn:
    symbols = string(random, length, DIGITS)
    return Drawn(tuple(symbols), tuple(sorted(symbols)))


class Chomsky(Generated):
    """One problem of the paper; its level in the hierarchy is a tag. Examples are at the top of this file."""

    version = 1
    schemes: ClassVar = {name: f"{problem.description} ({problem.level})" for name, problem in PROBLEMS.items()}

    class Config(GeneratedConfig):
        split: str = Field(
            "parity", description="which of the fifteen problems (listed by `tfstudy list splits chomsky`)"
        )
        train_length: LengthRange = Field("1-40", description="range of source lengths in training, drawn uniformly")
        test_length: LengthRanges = Field(
            "41-60,61-100", description="further test lengths; each range is a test split (paper: 41-500)"
        )

    config: Config

    def check(self) -> None:
        super().check()
        problem = PROBLEMS[self.config.split]
        for number, span in enumerate(self.all_spans):
            if not any(map(problem.has, range(span.first, span.last + 1))):
                key = "test_length" if number else "train_length"
                lengths = ", ".join(str(problem.first + problem.step * number) for number in range(3))
                raise UserError(
                    f"data.{key} {span} contains no length of '{self.config.split}', whose lengths are {lengths}, ..."
                )

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        problem = PROBLEMS[self.config.split]
        if not problem.has(length):
            return None
        return problem.draw(random, length)._replace(tags={"level": problem.level})
