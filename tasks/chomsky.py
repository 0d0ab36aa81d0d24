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

`length` is the number of source tokens, as in the paper, which trains on lengths 1-40 and tests on 41-500
(`--set data.test_length=41-500`). Lengths that do not exist are skipped: even lengths of `modular_arithmetic`, lengths
below 3 of the binary operations and `solve_equation`, and below 2 of `missing_duplicate`. Unlike in the paper, targets
contain no padding and no end symbol, an empty stack is an empty target, and no source occurs twice, so short lengths,
which have few sources, are rarer in training (`data.repeat_sources` draws them as often).
One function draws the examples of each problem (app. A of the paper), given the number of source tokens.
"""

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import ClassVar, NamedTuple

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


def string(random: Random, length: int, alphabet: str = BITS) -> str:
    """Draw a uniform string."""
    return "".join(random.choices(alphabet, k=length))


def of_string(answer: Callable[[str], Sequence[str]], alphabet: str = BITS) -> Draw:
    """Return the function that draws a uniform string and its answer."""

    def draw(random: Random, length: int) -> Drawn:
        source = string(random, length, alphabet)
        return Drawn(tuple(source), tuple(answer(source)))

    return draw


def parity(odd: bool) -> Tokens:
    """Return the target of problems that ask for odd or even."""
    return ("odd",) if odd else ("even",)


def cycle_navigation(random: Random, length: int) -> Drawn:
    """Draw moves on a cycle; the target is the final position."""
    moves = tuple(random.choices(tuple(MOVES), k=length))
    return Drawn(moves, (str(sum(map(MOVES.__getitem__, moves)) % MODULUS),))


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


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def expression(random: Random, length: int, operators: str) -> tuple[str, int]:
    """Draw from the paper's grammar: `d`, `-d`, `(d)` or `(-d)` up to four symbols, else `(left operator right)`.

    The length of `left` is uniform over all lengths that leave a symbol for `right`. The value is modulo 5.
    """
    if length < 5:
        digit, minus = random.choice(DIGITS), "-" * (length % 2 == 0)
        text = minus + digit
        return text if length < 3 else f"({text})", int(text) % MODULUS
    cut = random.randint(1, length - 4)
    (left, a), (right, b) = expression(random, cut, operators), expression(random, length - 3 - cut, operators)
    sign = random.choice(operators)
    return f"({left}{sign}{right})", OPERATIONS[sign](a, b) % MODULUS


def modular_arithmetic_brackets(random: Random, length: int) -> Drawn:
    """Draw an expression and its value."""
    text, value = expression(random, length, "+-*")
    return Drawn(tuple(text), (str(value),))


def solve_equation(random: Random, length: int) -> Drawn:
    """Replace one digit by an unknown. As in the paper's experiments there is no `*`, so the solution is unique."""
    text, value = expression(random, length - 2, "+-")
    position = random.choice([index for index, symbol in enumerate(text) if symbol.isdigit()])
    return Drawn((*text[:position], "x", *text[position + 1 :], "=", str(value)), (text[position],))


def missing_duplicate(random: Random, length: int) -> Drawn:
    """Draw a string written twice with one symbol missing, the target; odd lengths end with a blank."""
    twice = string(random, length // 2) * 2
    position = random.randrange(len(twice))
    source = twice[:position] + MISSING + twice[position + 1 :] + BLANK * (length % 2)
    return Drawn(tuple(source), (twice[position],))


def binary(sign: str, random: Random, length: int) -> Drawn:
    """Draw two positive numbers, least significant digit first; operands may end with zeros, the result may not.

    The number of digits of the first operand is uniform; each number is uniform given its number of digits.
    """
    digits = random.randint(1, length - 2)
    others = length - 1 - digits
    first, second = random.randint(1, 2**digits - 1), random.randint(1, 2**others - 1)
    source = f"{first:0{digits}b}"[::-1] + sign + f"{second:0{others}b}"[::-1]
    return Drawn(tuple(source), tuple(f"{OPERATIONS[sign](first, second):b}"[::-1]))


def compute_sqrt(random: Random, length: int) -> Drawn:
    """Draw a positive number, most significant digit first; its root has half as many digits, rounded up."""
    number = random.randint(1, 2**length - 1)
    return Drawn(tuple(f"{number:0{length}b}"), tuple(f"{math.isqrt(number):0{(length + 1) // 2}b}"))


class Problem(NamedTuple):
    """A problem of the paper. Its lengths are `first`, `first + step`, `first + 2 * step`, ..."""

    level: str
    description: str
    draw: Draw
    first: int = 1
    step: int = 1


PROBLEMS = {
    # the symbol changes an odd number of times if and only if the last differs from the first
    "even_pairs": Problem(REGULAR, "whether 01 and 10 together occur an even number of times",
                          of_string(lambda bits: parity(bits[0] != bits[-1]))),
    "parity": Problem(REGULAR, "whether the number of 1s is even or odd",
                      of_string(lambda bits: parity(bits.count("1") % 2 == 1))),
    "cycle_navigation": Problem(REGULAR, "the position after moves on a cycle of five positions", cycle_navigation),
    "modular_arithmetic": Problem(REGULAR, "the value modulo 5 of a sum without brackets, of odd length",
                                  modular_arithmetic, step=2),
    "reverse_string": Problem(CONTEXT_FREE, "the string in reverse order", of_string(lambda bits: bits[::-1])),
    "stack_manipulation": Problem(CONTEXT_FREE, "the stack after some actions, from top to bottom", stack_manipulation),
    "modular_arithmetic_brackets": Problem(CONTEXT_FREE, "the value modulo 5 of a bracketed expression",
                                           modular_arithmetic_brackets),
    "solve_equation": Problem(CONTEXT_FREE, "the unknown of an equation modulo 5", solve_equation, first=3),
    "duplicate_string": Problem(CONTEXT_SENSITIVE, "the string, written twice", of_string(lambda bits: bits * 2)),
    "missing_duplicate": Problem(CONTEXT_SENSITIVE, "the symbol missing from a string written twice",
                                 missing_duplicate, first=2),
    # first the first, third, ... symbol, as in the paper's text; its code starts with the second
    "odds_first": Problem(CONTEXT_SENSITIVE, "the symbols at odd positions, then those at even positions",
                          of_string(lambda bits: bits[::2] + bits[1::2])),
    "binary_addition": Problem(CONTEXT_SENSITIVE, "the sum of two numbers, least significant digit first",
                               partial(binary, "+"), first=3),
    "binary_multiplication": Problem(CONTEXT_SENSITIVE, "the product of two numbers, least significant digit first",
                                     partial(binary, "*"), first=3),
    "compute_sqrt": Problem(CONTEXT_SENSITIVE, "the binary square root, rounded down", compute_sqrt),
    "bucket_sort": Problem(CONTEXT_SENSITIVE, "a string of five symbols in sorted order", of_string(sorted, DIGITS)),
}  # fmt: skip


class Chomsky(Generated):
    """One problem of the paper; its level in the hierarchy is a tag. Examples are at the top of this file."""

    schemes: ClassVar = {name: f"{problem.description} ({problem.level})" for name, problem in PROBLEMS.items()}

    class Config(GeneratedConfig):
        split: str = "parity"
        train_length: LengthRange = "1-40"
        test_length: LengthRanges = "41-60,61-100"

    config: Config

    def lengths(self) -> range:
        problem = PROBLEMS[self.config.split]
        return range(problem.first, 10_000, problem.step)

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        problem = PROBLEMS[self.config.split]
        return problem.draw(random, length)._replace(tags={"level": problem.level})
