"""Balanced brackets of k types, Dyck-k (Chomsky & Schützenberger 1963), of bounded depth (Hewitt et al. 2020).

    ( [ ] ) [ ]    ->  balanced       (recognition)
    ( [ ) ] [ ]    ->  unbalanced
    ( [ ] [ (      ->  ) ] )          (completion)

Strings are uniform among all strings of their length and depth (arXiv 2010.07515 bounds the depth). `length` is the
number of symbols of a prefix; for recognition, where strings have an even length, it is the number of *pairs*.

For recognition, an unbalanced string is a balanced string with two inner symbols swapped, which can make it deeper or
less deep than `data.train_depth` says; the tag `depth` is that of the balanced one. So the length, the count of
each bracket, and the first and last symbol have the same distribution for both answers, and counting cannot separate
them. Swaps that put an opening bracket next to a closing bracket of another type are avoided if possible, so pairs of
neighbours reveal little. The swap depends only on the string, so each string has one unbalanced partner. Two strings
can share a partner; therefore most strings are balanced where nearly all strings are drawn (up to about 5 pairs).
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import ClassVar, NamedTuple

from pydantic import Field

from tfstudy.errors import UserError
from tfstudy.tasks.base import Example, Tag, Tokens, stable_hash
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, Lengths

DEEPER = "test_depth"  # test split of the train lengths with strings deeper than all in training
OPENING, CLOSING = "([{<", ")]}>"
PARTNER = dict(zip(OPENING, CLOSING, strict=True))
MISMATCH = re.compile(r"\([\]}>]|\[[)}>]|\{[)\]>]|<[)\]}]")  # neighbours that no balanced string contains
MAX_SWAPS = 30  # swaps to try on a string


def swapped(string: Tokens, seed: int) -> Tokens | None:
    """Return the unbalanced partner of a balanced string, always the same one; None if no swap unbalances it."""
    random = Random(stable_hash("swap", seed, string))
    inner = len(string) - 2
    local = None  # a partner that two neighbours reveal
    for _ in range(MAX_SWAPS if inner else 0):
        i, j = 1 + int(random.random() * inner), 1 + int(random.random() * inner)
        if string[i] == string[j]:
            continue
        partner = list(string)
        partner[i], partner[j] = string[j], string[i]
        if MISMATCH.search("".join(partner)):
            local = local or tuple(partner)
        elif fault(partner) != "none":
            return tuple(partner)
    return local


def fault(string: Sequence[str]) -> str:
    """Return the memory needed to see that a string is unbalanced, given equal counts of both brackets of each type.

    `depth`: more brackets are closed than opened, which one counter detects. `type`: the same for one type, which one
    counter per type detects. `order`: brackets cross, which only a stack detects. `none`: the string is balanced.
    """
    opened: list[str] = []
    balanced = crossed = True
    depths = dict.fromkeys(CLOSING, 0)
    for symbol in string:
        if symbol in PARTNER:
            opened.append(PARTNER[symbol])
            depths[PARTNER[symbol]] += 1
            continue
        if not opened:
            return "depth"
        balanced = opened.pop() == symbol and balanced
        depths[symbol] -= 1
        crossed = crossed and depths[symbol] >= 0
    return "none" if balanced else "order" if crossed else "type"


def shape(string: Tokens) -> dict[str, Tag]:
    """Return the depth of a balanced string and the longest distance from a bracket to its partner, as tags.

    The distance is in symbols, rounded up to a power of two to keep the number of slices small.
    """
    opened: list[int] = []
    depth = distance = 0
    for position, symbol in enumerate(string):
        if symbol in PARTNER:
            opened.append(position)
            depth = max(depth, len(opened))
        else:
            distance = max(distance, position - opened.pop())
    return {"depth": depth, "distance": 1 << (distance - 1).bit_length()}


class Space(NamedTuple):
    """A set of strings: the prefixes of balanced strings within these bounds. They are counted exactly."""

    types: int
    min_depth: int  # depth that a string must reach; 0: no minimum
    max_depth: int
    ends: range  # allowed numbers of open brackets at the end


State = tuple[int, bool]  # how many brackets are open, and whether the minimum depth has been reached


@lru_cache(maxsize=512)
def opening_probabilities(length: int, space: Space) -> tuple[int, list[dict[State, float]]]:
    """Return the number of strings of the space, and the probability that each symbol opens a bracket, by state.

    Each probability is a quotient of exact numbers of continuations, rounded once, so the relative error of a string's
    probability is at most about `length` / 2 ** 52.
    """
    states = [(height, reached) for height in range(space.max_depth + 1) for reached in (False, True)]
    after = {state: int(state[1] and state[0] in space.ends) for state in states}  # continuations, from the end on
    probabilities = []
    for _ in range(length):
        # an opening bracket has any type, a closing one only the type that fits
        opened = {(h, r): space.types * after.get((h + 1, r or h + 1 >= space.min_depth), 0) for h, r in states}
        every = {(h, r): opened[h, r] + after.get((h - 1, r), 0) for h, r in states}
        probabilities.append({state: opened[state] / every[state] if every[state] else 0.0 for state in states})
        after = every
    return after[0, not space.min_depth], probabilities[::-1]


def walk(random: Random, length: int, space: Space) -> tuple[Tokens, Tokens] | None:
    """Draw a uniform string of the space and the shortest string that closes it; None if the space is empty."""
    size, probabilities = opening_probabilities(length, space)
    if not size:
        return None
    string: list[str] = []
    expected: list[str] = []
    reached = not space.min_depth
    for opens in probabilities:
        if random.random() < opens[len(expected), reached]:
            kind = int(random.random() * space.types)
            string.append(OPENING[kind])
            expected.append(CLOSING[kind])
            reached = reached or len(expected) >= space.min_depth
        else:
            string.append(expected.pop())
    return tuple(string), tuple(reversed(expected))


class Parentheses(Generated):
    """Classify or complete strings of brackets; examples are at the top of this file."""

    schemes: ClassVar = {
        "recognition": "whether a string is balanced; half of them have two symbols swapped; lengths are in pairs",
        "completion": "the shortest string that closes all open brackets of a prefix",
    }
    steps = 2000
    by_character = True
    steps_of: ClassVar = {"transformer": 6000}  # with 2000 it ends at 77 %

    class Config(GeneratedConfig):
        split: str = "recognition"
        train_length: Lengths = "1-30"
        test_length: Lengths = "31-40,41-60"
        bracket_types: int = Field(2, ge=1, le=4, description="number of bracket types, the k of Dyck-k")
        train_depth: int = Field(6, ge=2, le=100, description="maximum depth of balanced strings, except in test_depth")
        test_depth: int = Field(
            10, ge=0, le=100, description="the same in test_depth, where all of them exceed train_depth; 0: none"
        )

    config: Config

    def check(self) -> None:
        super().check()
        train, test = self.config.train_depth, self.config.test_depth
        if 0 < test <= train:
            raise UserError(f"data.test_depth must be 0 or more than data.train_depth ({train}), but is {test}")

    def extra_tests(self) -> Sequence[str]:
        """Return `test_depth` if the train lengths allow strings that deep."""
        room = self.train_span.last > self.config.train_depth
        return (DEEPER,) if self.config.test_depth and room else ()

    def labels(self, example: Example) -> Mapping[str, Sequence[int | None]]:
        """Return the number of open brackets after each symbol; it is negative where more are closed than opened."""
        return {"depth": [*accumulate(1 if symbol in OPENING else -1 for symbol in example.source)]}

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        config, recognition = self.config, self.config.split == "recognition"
        depth = (config.train_depth + 1, config.test_depth) if split == DEEPER else (0, config.train_depth)
        ends = range(1) if recognition else range(1, depth[1] + 1)
        drawn = walk(random, 2 * length if recognition else length, Space(config.bracket_types, *depth, ends))
        if drawn is None:
            return None
        string, closing = drawn
        tags = shape(string + closing)
        if not recognition:
            return Drawn(string, closing, tags)
        partner = swapped(string, config.seed)
        if partner is None:  # then the string is in no split, so that both answers have the same counts of symbols
            return None
        answer, string = ("balanced", string) if random.random() < 0.5 else ("unbalanced", partner)
        return Drawn(string, (answer,), {"answer": answer, "fault": fault(string), **tags})
