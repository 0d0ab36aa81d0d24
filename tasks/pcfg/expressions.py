"""Expressions of PCFG SET: the functions, random expressions with their values, and how many functions they have."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from math import exp, log
from random import Random
from typing import NamedTuple

from tfstudy.tasks.base import Tokens

UNARY: dict[str, Callable[[Tokens], Tokens]] = {
    "copy": lambda x: x,
    "reverse": lambda x: x[::-1],
    "shift": lambda x: x[1:] + x[:1],
    "echo": lambda x: x + x[-1:],
    "swap_first_last": lambda x: x[-1:] + x[1:-1] + x[:1],
    "repeat": lambda x: x + x,
}
BINARY: dict[str, Callable[[Tokens, Tokens], Tokens]] = {
    "append": lambda x, y: x + y,
    "prepend": lambda x, y: y + x,
    "remove_first": lambda x, y: y,
    "remove_second": lambda x, y: x,
}
UNARY_NAMES, BINARY_NAMES = tuple(UNARY), tuple(BINARY)
FUNCTIONS = UNARY_NAMES + BINARY_NAMES
COMMA = ","  # between the arguments of a binary function
P_UNARY = len(UNARY_NAMES) / len(FUNCTIONS)  # all functions are equally frequent, as in the published data
MAX_NUMBER = 20  # A1 to Z20: 520 symbols

# Measured on the 9,721 test examples of the published corpus: the lengths of strings with their percentages, and the
# number of functions, which is log-normal up to a total variation distance of .02.
STRING_LENGTHS, STRING_WEIGHTS = (2, 3, 4, 5), (16, 30, 27, 27)
LOG_MEAN, LOG_SD = 1.48, 0.54


class Expression(NamedTuple):
    """A source and its value."""

    source: Tokens
    value: Tokens


@cache
def alphabet(symbols: int) -> Tokens:
    """Return the first symbols of A1, B1, ..., Z1, A2, ..., Z20."""
    every = [f"{chr(ord('A') + letter)}{number}" for number in range(1, MAX_NUMBER + 1) for letter in range(26)]
    return tuple(every[:symbols])


def draw_expression(random: Random, functions: int, symbols: int) -> Expression:
    """Draw an expression with this number of functions; with none, a string.

    Each number of functions up to all others is equally likely in the first argument of a binary function. So the mean
    depth is within 0.3 of that of published expressions with as many functions, up to 15 functions.
    """
    if not functions:
        (length,) = random.choices(STRING_LENGTHS, STRING_WEIGHTS)
        string = tuple(random.choices(alphabet(symbols), k=length))
        return Expression(string, string)
    if random.random() < P_UNARY:
        return apply(random.choice(UNARY_NAMES), draw_expression(random, functions - 1, symbols))
    first = random.randrange(functions)
    left = draw_expression(random, first, symbols)
    return apply(random.choice(BINARY_NAMES), left, draw_expression(random, functions - 1 - first, symbols))


def apply(function: str, *arguments: Expression) -> Expression:
    """Return the expression of a function with its arguments."""
    if function in UNARY:
        (one,) = arguments
        return Expression((function, *one.source), UNARY[function](one.value))
    left, right = arguments
    return Expression((function, *left.source, COMMA, *right.source), BINARY[function](left.value, right.value))


@cache
def function_weights(first: int, last: int) -> tuple[float, ...]:
    """Return the relative frequencies of expressions with `first` to `last` functions."""
    return tuple(exp(-((log(n) - LOG_MEAN) ** 2) / (2 * LOG_SD**2)) / n for n in range(first, last + 1))


def contains_pair(source: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return which of these pairs of tokens are neighbours in the source."""
    neighbours = {*pairwise(source)}
    return [pair for pair in pairs if pair in neighbours]
