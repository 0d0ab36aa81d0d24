"""Fifteen tasks up the Chomsky hierarchy: what memory a network has (Deletang et al. 2022, arXiv 2207.02098, app. A).

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

`length` is the number of source tokens in every experiment, as in the paper, which trains on 1-40 and tests on 41-500
(`--set data.test_length=41-500`); the default tests 41-100. Lengths that an experiment lacks are passed over: even ones
of `modular_arithmetic`, those below 3 of the binary operations and of `solve_equation`, below 2 of `missing_duplicate`.

Two things differ from the paper. Targets are as long as the answer, without its padding and its end symbol, since
models here emit an end themselves; so an empty stack is an empty target, and token accuracy has the longer of
prediction and gold as its denominator. And no source occurs twice, so that short lengths, of which there are few
sources, are rarer in training than lengths drawn uniformly would be.
"""

import math
import operator
from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

from pydantic import Field

from tasks.base import Tokens
from tasks.errors import UserError
from tasks.generated import Drawn, Generated, GeneratedConfig, One, Several, spans

BITS = "01"
MODULUS = 5  # of the arithmetic, the length of the cycle and the size of the alphabet that is sorted
DIGITS = "01234"
MOVES = {"+1": 1, "-1": -1, "0": 0}
POP, PUSH = "pop", {"push0": "0", "push1": "1"}
MISSING, BLANK = "_", "#"

REGULAR, CONTEXT_FREE, CONTEXT_SENSITIVE = "regular", "deterministic context-free", "context-sensitive"


class Pair(NamedTuple):
    """A source and its target."""

    source: Tokens
    target: Tokens


def string(random: Random, length: int, alphabet: str = BITS) -> str:
    """Uniformly drawn symbols."""
    return "".join(random.choices(alphabet, k=length))


def answer(odd: bool) -> Tokens:
    """The two answers of the tasks that ask for evenness."""
    return ("odd",) if odd else ("even",)


def even_pairs(random: Random, length: int) -> Pair:
    """The symbol changes an odd number of times if and only if the last differs from the first."""
    bits = string(random, length)
    return Pair(tuple(bits), answer(bits[0] != bits[-1]))


def parity(random: Random, length: int) -> Pair:
    bits = string(random, length)
    return Pair(tuple(bits), answer(bits.count("1") % 2 == 1))


def cycle_navigation(random: Random, length: int) -> Pair:
    moves = tuple(random.choices(tuple(MOVES), k=length))
    return Pair(moves, (str(sum(map(MOVES.__getitem__, moves)) % MODULUS),))


def modular_arithmetic(random: Random, length: int) -> Pair:
    """Digits and operators in turn; `*` binds more tightly than `+` and `-`."""
    digits, operators = random.choices(range(MODULUS), k=length // 2 + 1), random.choices("+-*", k=length // 2)
    total, term = 0, digits[0]  # `term` is the product that ends here, with its sign
    source = [str(digits[0])]
    for sign, digit in zip(operators, digits[1:], strict=True):
        source += sign, str(digit)
        if sign == "*":
            term = term * digit % MODULUS
        else:
            total, term = total + term, digit if sign == "+" else -digit
    return Pair(tuple(source), (str((total + term) % MODULUS),))


def reverse_string(random: Random, length: int) -> Pair:
    bits = string(random, length)
    return Pair(tuple(bits), tuple(reversed(bits)))


def stack_manipulation(random: Random, length: int) -> Pair:
    """A stack from bottom to top, then actions on it, to what is left from top to bottom.

    Every length but 1 has an action. To pop an empty stack changes nothing.
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
    return Pair(source, tuple(reversed(stack)))


class Expression(NamedTuple):
    """An expression of one-character symbols, and its value modulo 5."""

    text: str
    value: int


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def expression(random: Random, length: int, operators: str) -> Expression:
    """The paper's grammar: `d`, `-d`, `(d)` or `(-d)` up to four symbols, else `(left operator right)`.

    The length of `left` is drawn uniformly from all that leave a symbol for `right`.
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


def modular_arithmetic_brackets(random: Random, length: int) -> Pair:
    text, value = expression(random, length, "+-*")
    return Pair(tuple(text), (str(value),))


def solve_equation(random: Random, length: int) -> Pair:
    """One digit is unknown. There is no `*`, as in the paper's experiments, so that every equation has one solution."""
    text, value = expression(random, length - 2, "+-")
    place = random.choice([index for index, symbol in enumerate(text) if symbol.isdigit()])
    return Pair((*text[:place], "x", *text[place + 1 :], "=", str(value)), (text[place],))


def duplicate_string(random: Random, length: int) -> Pair:
    bits = string(random, length)
    return Pair(tuple(bits), tuple(bits * 2))


def missing_duplicate(random: Random, length: int) -> Pair:
    """A string twice over with one symbol missing, to that symbol; a blank at the end makes an odd length."""
    twice = string(random, length // 2) * 2
    place = random.randrange(len(twice))
    source = twice[:place] + MISSING + twice[place + 1 :] + BLANK * (length % 2)
    return Pair(tuple(source), (twice[place],))


def odds_first(random: Random, length: int) -> Pair:
    """First, third, fifth, ... symbol, then the others: the paper's text, where its code begins with the second."""
    bits = string(random, length)
    return Pair(tuple(bits), tuple(bits[::2] + bits[1::2]))


def little_endian(number: int, digits: int = 1) -> str:
    """Binary digits, the least significant first, with zeros at the end up to `digits`."""
    return f"{number:0{digits}b}"[::-1]


def binary(random: Random, length: int, sign: str) -> Pair:
    """Two positive numbers, least significant digit first; the result has no zeros at its end, the operands may.

    The first operand's share of the digits is drawn uniformly, then each number from those that its digits can say.
    """
    digits = random.randint(1, length - 2)
    others = length - 1 - digits
    first, second = random.randint(1, 2**digits - 1), random.randint(1, 2**others - 1)
    source = little_endian(first, digits) + sign + little_endian(second, others)
    return Pair(tuple(source), tuple(little_endian(OPERATIONS[sign](first, second))))


def compute_sqrt(random: Random, length: int) -> Pair:
    """A positive number, most significant digit first, to its root in half as many digits (rounded up), zeros first."""
    number = random.randint(1, 2**length - 1)
    return Pair(tuple(f"{number:0{length}b}"), tuple(f"{math.isqrt(number):0{(length + 1) // 2}b}"))


def bucket_sort(random: Random, length: int) -> Pair:
    symbols = string(random, length, DIGITS)
    return Pair(tuple(symbols), tuple(sorted(symbols)))


class Experiment(NamedTuple):
    """A task of the paper. Its lengths are `least`, `least + step`, `least + 2 * step`, ..."""

    level: str
    line: str
    make: Callable[[Random, int], Pair]  # a random example of one of these lengths
    least: int = 1
    step: int = 1

    def has(self, length: int) -> bool:
        """Whether there are sources of this length."""
        return length >= self.least and (length - self.least) % self.step == 0

    @property
    def lengths(self) -> str:
        """Its lengths for a reader."""
        return ", ".join(str(self.least + self.step * number) for number in range(3)) + ", ..."


SPLIT_SCHEMES = {
    "even_pairs": Experiment(REGULAR, "whether 01 and 10 occur an even number of times in all", even_pairs),
    "parity": Experiment(REGULAR, "whether the number of 1s is even or odd", parity),
    "cycle_navigation": Experiment(REGULAR, "where steps on a cycle of five places end", cycle_navigation),
    "modular_arithmetic": Experiment(
        REGULAR, "the value modulo 5 of a sum without brackets, of odd length", modular_arithmetic, step=2
    ),
    "reverse_string": Experiment(CONTEXT_FREE, "the string from its end to its start", reverse_string),
    "stack_manipulation": Experiment(
        CONTEXT_FREE, "a stack after some actions, from top to bottom", stack_manipulation
    ),
    "modular_arithmetic_brackets": Experiment(
        CONTEXT_FREE, "the value modulo 5 of a bracketed expression", modular_arithmetic_brackets
    ),
    "solve_equation": Experiment(CONTEXT_FREE, "the unknown of an equation modulo 5", solve_equation, least=3),
    "duplicate_string": Experiment(CONTEXT_SENSITIVE, "the string twice over", duplicate_string),
    "missing_duplicate": Experiment(
        CONTEXT_SENSITIVE, "the symbol that is missing in a string said twice", missing_duplicate, least=2
    ),
    "odds_first": Experiment(CONTEXT_SENSITIVE, "the symbols at odd places, then those at even places", odds_first),
    "binary_addition": Experiment(
        CONTEXT_SENSITIVE, "the sum of two numbers, least significant digit first", partial(binary, sign="+"), least=3
    ),
    "binary_multiplication": Experiment(
        CONTEXT_SENSITIVE, "the same of the product", partial(binary, sign="*"), least=3
    ),
    "compute_sqrt": Experiment(CONTEXT_SENSITIVE, "the binary square root, rounded down", compute_sqrt),
    "bucket_sort": Experiment(CONTEXT_SENSITIVE, "five different symbols in order", bucket_sort),
}


class Chomsky(Generated):
    """One of the paper's tasks; its level in the hierarchy is a tag. See the module's text for examples."""

    version = 1

    class Config(GeneratedConfig):
        split: str = Field("parity", description="which of the fifteen tasks; `tfstudy list splits chomsky` names them")
        train_length: One = Field("1-40", description="lengths of sources that are trained on, drawn uniformly")
        test_length: Several = Field(
            "41-60,61-100", description="other lengths: each range is a test split; the paper tests 41-500"
        )

    config: Config

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return {name: f"{experiment.line} ({experiment.level})" for name, experiment in SPLIT_SCHEMES.items()}

    def check(self) -> None:
        super().check()
        experiment = SPLIT_SCHEMES[self.config.split]
        for key in ("train_length", "test_length"):
            for first, last in spans(getattr(self.config, key)):
                if not any(map(experiment.has, range(first, last + 1))):
                    raise UserError(
                        f"data.{key} must be of lengths that '{self.config.split}' has ({experiment.lengths}), "
                        f"but {first}-{last} holds none"
                    )

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        experiment = SPLIT_SCHEMES[self.config.split]
        if not experiment.has(length):
            return None
        source, target = experiment.make(random, length)
        return Drawn(source, target, {"level": experiment.level})
