"""Draw strings of brackets uniformly among all prefixes of balanced strings of a given length and depth.

The number of continuations is counted exactly, from the end of the string to its start.
"""

from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import NamedTuple

from tfstudy.tasks.base import Tokens
from tfstudy.tasks.parentheses.brackets import CLOSING, OPENING


class Space(NamedTuple):
    """A set of strings: the prefixes of balanced strings within these bounds."""

    types: int
    min_depth: int  # depth that a string must reach; 0: no minimum
    max_depth: int
    ends: range  # allowed numbers of open brackets at the end


# Numbers of continuations by open brackets, before and after the minimum depth is reached.
Counts = tuple[list[int], list[int]]


def continuations(length: int, space: Space) -> list[Counts]:
    """Return the exact numbers of continuations after 0, 1, ... `length` symbols.

    The first entry's count for no open bracket is the number of strings in the space.
    """
    heights = range(space.max_depth + 1)
    rows: list[Counts] = [([0 for _ in heights], [int(height in space.ends) for height in heights])]
    for _ in range(length):
        rows.append((_before(rows[-1], space, False), _before(rows[-1], space, True)))
    return rows[::-1]


def _before(after: Counts, space: Space, reached: bool) -> list[int]:
    """Return the counts one symbol earlier: an opening bracket has any type, a closing one only the type that fits."""
    closed = [0, *after[reached][:-1]]
    return [_opened(after, space, reached, height) + closed[height] for height in range(space.max_depth + 1)]


def _opened(after: Counts, space: Space, reached: bool, height: int) -> int:
    """Return the number of continuations that start with an opening bracket."""
    if height == space.max_depth:
        return 0
    return space.types * after[reached or height + 1 >= space.min_depth][height + 1]


@lru_cache(maxsize=512)
def opening_probabilities(length: int, space: Space) -> list[tuple[list[float], list[float]]]:
    """Return the probability that each symbol opens a bracket, indexed as `Counts`; empty for an empty space.

    Each probability is a quotient of exact counts, rounded once, so the relative error of a string's probability is at
    most about `length` / 2 ** 52.
    """
    rows = continuations(length, space)

    def step(current: Counts, after: Counts, reached: bool) -> list[float]:
        return [_opened(after, space, reached, h) / count if count else 0.0 for h, count in enumerate(current[reached])]

    if not rows[0][not space.min_depth][0]:  # the number of strings in the space
        return []
    return [(step(current, after, False), step(current, after, True)) for current, after in pairwise(rows)]


def walk(random: Random, length: int, space: Space) -> tuple[Tokens, Tokens] | None:
    """Draw a uniform string of the space and the shortest string that closes it; None if the space is empty."""
    steps = opening_probabilities(length, space)
    string: list[str] = []
    expected: list[str] = []
    reached = not space.min_depth
    for step in steps:
        if random.random() < step[reached][len(expected)]:
            kind = int(random.random() * space.types)
            string.append(OPENING[kind])
            expected.append(CLOSING[kind])
            reached = reached or len(expected) >= space.min_depth
        else:
            string.append(expected.pop())
    return (tuple(string), tuple(reversed(expected))) if steps else None
