"""Strings of brackets: whether they are balanced, how to unbalance them, and their depth and distances."""

import re
from collections.abc import Sequence
from random import Random

from tfstudy.tasks.base import Tag, Tokens, stable_hash

OPENING, CLOSING, NONE, WRONG = "([{<", ")]}>", "-", "x"
PARTNER = dict(zip(OPENING, CLOSING, strict=True))
MISMATCH = re.compile(r"\([\]}>]|\[[)}>]|\{[)\]>]|<[)\]}]")  # neighbours that no balanced string contains
MAX_TRIES = 30  # swaps to try on a string


def swapped(string: Tokens, seed: int) -> Tokens | None:
    """Return the unbalanced partner of a balanced string, always the same one; None if no swap unbalances it."""
    random = Random(stable_hash("swap", seed, string))
    inner = len(string) - 2
    local = None  # a partner that two neighbours reveal
    for _ in range(MAX_TRIES if inner else 0):
        i, j = 1 + int(random.random() * inner), 1 + int(random.random() * inner)
        if string[i] == string[j]:
            continue
        partner = list(string)
        partner[i], partner[j] = string[j], string[i]
        if MISMATCH.search("".join(partner)):
            local = local or tuple(partner)
        elif not balanced(partner):
            return tuple(partner)
    return local


def fault(string: Sequence[str]) -> str:
    """Return the memory needed to see that a string is unbalanced, given equal counts of both brackets of each type.

    `depth`: more brackets are closed than opened, which one counter detects. `type`: the same for one type, which one
    counter per type detects. `order`: brackets cross, which only a stack detects.
    """
    depth, crossed = 0, True
    depths = dict.fromkeys(CLOSING, 0)
    for symbol in string:
        closing, step = (PARTNER[symbol], 1) if symbol in PARTNER else (symbol, -1)
        depth += step
        depths[closing] += step
        if depth < 0:
            return "depth"
        crossed = crossed and depths[closing] >= 0
    return "order" if crossed else "type"


def balanced(string: Sequence[str]) -> bool:
    """Return whether every bracket has its partner and the last opened bracket is closed first."""
    expected: list[str] = []
    for symbol in string:
        if symbol in PARTNER:
            expected.append(PARTNER[symbol])
        elif not expected or expected.pop() != symbol:
            return False
    return not expected


def follows(string: Tokens) -> Tokens:
    """Return, for each symbol, the closing bracket that may come next, or `-`; end with `x` at the first fault.

    An opening bracket may follow at any depth: the depth bounds describe the sample, not the language.
    """
    expected = [NONE]
    out: list[str] = []
    for symbol in string:
        if symbol in PARTNER:
            expected.append(PARTNER[symbol])
        elif expected[-1] != symbol:
            return (*out, WRONG)
        else:
            expected.pop()
        out.append(expected[-1])
    return tuple(out)


def shape(string: Tokens) -> dict[str, Tag]:
    """Return the depth of a balanced string and the longest distance from a bracket to its partner, as tags.

    The distance is in symbols, rounded up to a power of two to keep the number of slices small.
    """
    opened: list[int] = []
    depth = distance = 0
    for position, symbol in enumerate(string):
        if symbol in PARTNER:
            opened.append(position)
            if len(opened) > depth:
                depth = len(opened)
        elif (between := position - opened.pop()) > distance:
            distance = between
    return {"depth": depth, "distance": 1 << (distance - 1).bit_length()}
