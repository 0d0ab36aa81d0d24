"""Balanced brackets of k types, Dyck-k (Chomsky & Schützenberger 1963), of bounded depth (Hewitt et al. 2020).

    ( [ ] ) [ ]    ->  balanced       (recognition)
    ( [ ) ] [ ]    ->  unbalanced
    ( [ ] [ (      ->  ) ] )          (completion)
    ( [ ] ) [      ->  ) ] ) - ]      (next_symbols)

Strings are uniform among all of their length and depth (arXiv 2010.07515 bounds the depth; arXiv 1911.03329 asks for
what may come next). `length` counts the symbols of a prefix, but *pairs* for recognition: balanced strings are even.

An unbalanced string is a balanced one with two symbols swapped, neither of them its first or its last. So lengths, how
often each bracket occurs, and the first and the last symbol are distributed alike under both answers, and no count
tells them apart. Swaps that leave an opening bracket beside a closing one of another type are passed over where others
are found, so that two neighbours tell little. The string alone decides what is swapped, so it has one unbalanced
partner; but two strings may have the same, so that where nearly all are drawn (up to about 5 pairs) most are balanced.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import NamedTuple

from pydantic import Field

from tasks.base import Tag, Tokens, stable_hash
from tasks.errors import UserError
from tasks.generated import Drawn, Generated, GeneratedConfig, One, Several, spans

SPLIT_SCHEMES = {
    "recognition": "whether a string is balanced; in half of them two symbols are swapped. Lengths are in pairs",
    "completion": "the shortest string that closes all that is open at the end of a prefix",
    "next_symbols": "after each symbol of a prefix, the closing bracket that may follow, or - if none may",
}
OPENING, CLOSING, NONE = "([{<", ")]}>", "-"
PARTNER = dict(zip(OPENING, CLOSING, strict=True))
MISMATCH = re.compile(r"\([\]}>]|\[[)}>]|\{[)\]>]|<[)\]}]")  # what two neighbours never are in a balanced string
DEEPER = "test_depth"  # test split of the train lengths whose strings are deeper than any that is trained on
TRIES = 30  # swaps that are tried on a string
FEWEST_PAIRS = 3  # with fewer, no swap of inner symbols may unbalance a string


class Space(NamedTuple):
    """A set of strings: the prefixes of balanced strings that meet these bounds."""

    types: int
    least: int  # the depth that a string reaches; 0 asks for none
    most: int  # the depth that it does not pass
    ends: range  # how many brackets may be open at its end


Row = tuple[list[int], list[int]]  # ways to go on, before and after the least depth is reached, by open brackets


class Parentheses(Generated):
    """Strings of brackets that are balanced or begin a balanced one; see the module's text for examples."""

    version = 1

    class Config(GeneratedConfig):
        split: str = Field("recognition", description="recognition, completion or next_symbols")
        train_length: One = Field("1-30", description="lengths that are trained on: symbols, or pairs for recognition")
        test_length: Several = Field("31-40,41-60", description="other lengths: each range is a test split")
        bracket_types: int = Field(2, ge=1, le=4, description="types of brackets, the k of Dyck-k")
        train_depth: int = Field(6, ge=2, le=100, description="most brackets open at once in all splits but test_depth")
        test_depth: int = Field(
            10, ge=0, le=100, description="most in the split test_depth, where each string passes train_depth; 0: none"
        )

    config: Config

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return SPLIT_SCHEMES

    def check(self) -> None:
        super().check()
        config = self.config
        if 0 < config.test_depth <= config.train_depth:
            allowed = f"0 or more than data.train_depth ({config.train_depth})"
            raise UserError(f"data.test_depth must be {allowed}, but is {config.test_depth}")
        for span in (self.train_span, *spans(config.test_length)):
            if config.split == "recognition" and span.last < FEWEST_PAIRS:
                raise UserError(
                    f"lengths must reach {FEWEST_PAIRS} pairs for recognition, but are {span}: "
                    "a swap within a shorter string may leave it balanced"
                )

    def more_tests(self) -> Sequence[str]:
        """`test_depth`, where the train lengths leave room for it."""
        room = self.train_span.last > self.config.train_depth
        return (DEEPER,) if self.config.test_depth and room else ()

    def tokens(self, text: str) -> Tokens:
        """`([])` or `( [ ] )`: every character but blanks is a token."""
        return tuple("".join(text.split()))

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        symbols = 2 * length if self.config.split == "recognition" else length
        walked = walk(random, symbols, self._space(split))
        if walked is None:
            return None
        string, closing = walked
        tags = shape(string + closing)
        if self.config.split == "recognition":
            return self._judged(random, string, tags)
        return Drawn(string, closing if self.config.split == "completion" else follows(string), tags)

    def _space(self, split: str) -> Space:
        config = self.config
        least, most = (config.train_depth + 1, config.test_depth) if split == DEEPER else (0, config.train_depth)
        ends = {"recognition": range(1), "completion": range(1, most + 1), "next_symbols": range(most + 1)}
        return Space(config.bracket_types, least, most, ends[config.split])

    def _judged(self, random: Random, string: Tokens, tags: dict[str, Tag]) -> Drawn | None:
        """The string or its unbalanced partner, whose tags are the string's.

        None for a string without a partner: left out as either, it leaves both answers with the same counts.
        """
        partner = swapped(string, self.config.seed)
        if partner is None:
            return None
        if random.random() < 0.5:
            return Drawn(string, ("balanced",), {"answer": "balanced", "fault": "none", **tags})
        return Drawn(partner, ("unbalanced",), {"answer": "unbalanced", "fault": fault(partner), **tags})


def ways(length: int, space: Space) -> list[Row]:
    """In how many ways the strings go on after 0, 1, ... `length` symbols: exact, counted from their end.

    The first row's count for no open bracket is the number of strings in the space.
    """
    heights = range(space.most + 1)
    rows: list[Row] = [([0 for _ in heights], [int(height in space.ends) for height in heights])]
    for _ in range(length):
        rows.append((_before(rows[-1], space, False), _before(rows[-1], space, True)))
    return rows[::-1]


def _before(after: Row, space: Space, reached: bool) -> list[int]:
    """The counts of one symbol earlier: an opening bracket is of any type, a closing one of the one type that fits."""
    closed = [0, *after[reached][:-1]]
    return [_opened(after, space, reached, height) + closed[height] for height in range(space.most + 1)]


def _opened(after: Row, space: Space, reached: bool, height: int) -> int:
    """How many of the ways to go on begin with an opening bracket."""
    if height == space.most:
        return 0
    return space.types * after[reached or height + 1 >= space.least][height + 1]


@lru_cache(maxsize=512)
def chances(length: int, space: Space) -> list[tuple[list[float], list[float]]]:
    """The probability that each symbol opens a bracket, given the state as in `Row`; nothing for an empty space.

    Each is a quotient of exact counts, rounded once, so that no string's probability is off by more than about
    `length` parts in 2 ** 52.
    """
    rows = ways(length, space)

    def step(now: Row, after: Row, reached: bool) -> list[float]:
        return [_opened(after, space, reached, h) / count if count else 0.0 for h, count in enumerate(now[reached])]

    there = rows[0][not space.least][0]
    return [(step(now, after, False), step(now, after, True)) for now, after in pairwise(rows)] if there else []


def walk(random: Random, length: int, space: Space) -> tuple[Tokens, Tokens] | None:
    """A uniform string of the space and the shortest one that closes it; None if the space is empty."""
    steps = chances(length, space)
    string: list[str] = []
    awaited: list[str] = []
    reached = not space.least
    for step in steps:
        if random.random() < step[reached][len(awaited)]:
            kind = int(random.random() * space.types)
            string.append(OPENING[kind])
            awaited.append(CLOSING[kind])
            reached = reached or len(awaited) >= space.least
        else:
            string.append(awaited.pop())
    return (tuple(string), tuple(reversed(awaited))) if steps else None


def swapped(string: Tokens, seed: int) -> Tokens | None:
    """The unbalanced partner of a balanced string, always the same; None if none is found."""
    random = Random(stable_hash("swap", seed, string))
    inner = len(string) - 2
    local = None  # a partner that two neighbours give away
    for _ in range(TRIES if inner else 0):
        one, other = 1 + int(random.random() * inner), 1 + int(random.random() * inner)
        if string[one] == string[other]:
            continue
        partner = list(string)
        partner[one], partner[other] = string[other], string[one]
        if MISMATCH.search("".join(partner)):
            local = local or tuple(partner)
        elif not balanced(partner):
            return tuple(partner)
    return local


def fault(string: Sequence[str]) -> str:
    """The least that shows that a string with as many closing as opening brackets of each type is unbalanced.

    `depth`: more is closed than was opened, which one counter sees. `type`: so it is for one type, which a counter for
    each type sees. `order`: brackets cross, which takes a stack.
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
    """Whether every bracket has its partner: what was opened last is closed first."""
    awaited: list[str] = []
    for symbol in string:
        if symbol in PARTNER:
            awaited.append(PARTNER[symbol])
        elif not awaited or awaited.pop() != symbol:
            return False
    return not awaited


def follows(string: Tokens) -> Tokens:
    """For each symbol of a prefix the closing bracket that may come next, or `-`. An opening one always may.

    It may at any depth: the bounds say what is drawn, not what the language is.
    """
    awaited, out = [NONE], []
    for symbol in string:
        if symbol in PARTNER:
            awaited.append(PARTNER[symbol])
        else:
            awaited.pop()
        out.append(awaited[-1])
    return tuple(out)


def shape(string: Tokens) -> dict[str, Tag]:
    """Of a balanced string, the most brackets open at once and the longest way from a bracket to its partner.

    The distance is in symbols, rounded up to a power of two so that there are few.
    """
    opened: list[int] = []
    depth = distance = 0
    for place, symbol in enumerate(string):
        if symbol in PARTNER:
            opened.append(place)
            if len(opened) > depth:
                depth = len(opened)
        elif (between := place - opened.pop()) > distance:
            distance = between
    return {"depth": depth, "distance": 1 << (distance - 1).bit_length()}
