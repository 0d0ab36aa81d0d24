"""Balanced brackets of k types, Dyck-k (Chomsky & Schützenberger 1963), of bounded depth (Hewitt et al. 2020).

    ( [ ] ) [ ]    ->  balanced       (recognition)
    ( [ ) ] [ ]    ->  unbalanced
    ( [ ] ) [ )    ->  unbalanced      (edit_distance: 1 edit from balanced)
    ( [ ] [ (      ->  ) ] )          (completion)
    ( [ ] ) [      ->  ) ] ) - ]      (next_symbols)

Strings are uniform among all strings of their length and depth (arXiv 2010.07515 bounds the depth; arXiv 1911.03329
predicts the next symbols). `length` is the number of symbols of a prefix; for recognition and edit_distance, where
strings have an even length, it is the number of *pairs*.

For recognition, an unbalanced string is a balanced string with two inner symbols swapped. So the length, the count of
each bracket, and the first and last symbol have the same distribution for both answers, and counting cannot separate
them. Swaps that put an opening bracket next to a closing bracket of another type are avoided if possible, so pairs of
neighbours reveal little. The swap depends only on the string, so each string has one unbalanced partner. Two strings
can share a partner; therefore most strings are balanced where nearly all strings are drawn (up to about 5 pairs).

For edit_distance, an unbalanced string has exactly the edit distance in its tag `edit_distance` from the nearest
balanced string, drawn uniformly from 1 to `data.max_edit_distance`, or to the number of pairs where that is smaller.
Where nearly all strings are drawn, the distances are as frequent as there are strings (up to about 5 pairs).
At distance 1 the counts of some opening bracket and of its partner differ, so counting is enough; from distance 2 on
they may agree. Slices by the tag show accuracy against the distance.

With `data.scratchpad`, the target of recognition and edit_distance first lists the closing bracket that may follow each
symbol, as in next_symbols, up to the first fault (x).
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import ClassVar

from pydantic import Field

from tfstudy.errors import UserError
from tfstudy.tasks.base import Example, Tag, Tokens
from tfstudy.tasks.generated import Drawn, LengthRange, LengthRanges
from tfstudy.tasks.parentheses.brackets import OPENING, fault, follows, shape, swapped
from tfstudy.tasks.parentheses.edits import at_distance
from tfstudy.tasks.parentheses.sampling import Space, walk
from tfstudy.tasks.scratchpad import Scratchpad, ScratchpadConfig

SPLIT_SCHEMES = {
    "recognition": "whether a string is balanced; half of the strings have two symbols swapped; lengths are in pairs",
    "edit_distance": "as recognition, but unbalanced strings are 1, 2, ... edits away from the nearest balanced string",
    "completion": "the shortest string that closes all open brackets of a prefix",
    "next_symbols": "after each symbol of a prefix, the closing bracket that may follow, or - if none may follow",
}
RECOGNITION = ("recognition", "edit_distance")  # schemes whose answer is balanced or unbalanced
DEEPER = "test_depth"  # test split of the train lengths with strings deeper than all in training
MIN_PAIRS = 3  # with fewer pairs, a swap of inner symbols may leave a string balanced


class Parentheses(Scratchpad):
    """Classify, complete or continue strings of brackets; examples are at the top of this file."""

    version = 1
    scheme_settings: ClassVar = {"scratchpad": RECOGNITION, "max_edit_distance": ("edit_distance",)}

    class Config(ScratchpadConfig):
        split: str = Field("recognition", description="recognition, edit_distance, completion or next_symbols")
        train_length: LengthRange = Field(
            "1-30", description="range of train lengths: symbols, or pairs for recognition and edit_distance"
        )
        test_length: LengthRanges = Field("31-40,41-60", description="further test lengths; each range is a test split")
        bracket_types: int = Field(2, ge=1, le=4, description="number of bracket types, the k of Dyck-k")
        train_depth: int = Field(6, ge=2, le=100, description="maximum depth in all splits except test_depth")
        test_depth: int = Field(
            10,
            ge=0,
            le=100,
            description="maximum depth in the split test_depth, where all strings exceed train_depth; 0: no such split",
        )
        max_edit_distance: int = Field(
            3, ge=1, le=9, description="maximum edits from an unbalanced string to a balanced one (edit_distance)"
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
        pairs = self.train_span.last
        if config.split == "edit_distance" and config.max_edit_distance > pairs:
            allowed = f"at most {pairs} with data.train_length={config.train_length}"
            raise UserError(f"data.max_edit_distance must be {allowed}, but is {config.max_edit_distance}")
        for span in self.all_spans:
            if config.split == "recognition" and span.last < MIN_PAIRS:
                raise UserError(
                    f"recognition needs lengths of at least {MIN_PAIRS} pairs, but a range is {span}: "
                    "a swap in a shorter string may leave it balanced"
                )

    def extra_tests(self) -> Sequence[str]:
        """Return `test_depth` if the train lengths allow strings that deep."""
        room = self.train_span.last > self.config.train_depth
        return (DEEPER,) if self.config.test_depth and room else ()

    def tokens(self, text: str) -> Tokens:
        """Return each character except spaces as a token: `([])` and `( [ ] )` are the same."""
        return tuple("".join(text.split()))

    def labels(self, example: Example) -> Mapping[str, Sequence[int | None]]:
        """Return the number of open brackets after each symbol; it is negative where more are closed than opened."""
        return {"depth": [*accumulate(1 if symbol in OPENING else -1 for symbol in example.source)]}

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        symbols = 2 * length if self.config.split in RECOGNITION else length
        drawn = walk(random, symbols, self._space(split))
        if drawn is None:
            return None
        string, closing = drawn
        tags = shape(string + closing)
        if self.config.split == "recognition":
            return self._labelled(random, string, tags)
        if self.config.split == "edit_distance":
            return self._at_distance(random, string, tags)
        return Drawn(string, closing if self.config.split == "completion" else follows(string), tags)

    def _space(self, split: str) -> Space:
        config = self.config
        lowest, highest = (config.train_depth + 1, config.test_depth) if split == DEEPER else (0, config.train_depth)
        ends = {"completion": range(1, highest + 1), "next_symbols": range(highest + 1)}
        return Space(config.bracket_types, lowest, highest, ends.get(config.split, range(1)))

    def _labelled(self, random: Random, string: Tokens, tags: dict[str, Tag]) -> Drawn | None:
        """Return the string or its unbalanced partner, both with the string's tags.

        Return None if the string has no partner, so that both answers keep the same counts of symbols.
        """
        partner = swapped(string, self.config.seed)
        if partner is None:
            return None
        if random.random() < 0.5:
            return self._recognised(string, "balanced", {"fault": "none", **tags})
        return self._recognised(partner, "unbalanced", {"fault": fault(partner), **tags})

    def _at_distance(self, random: Random, string: Tokens, tags: dict[str, Tag]) -> Drawn | None:
        """Return the string or one at a random edit distance from all balanced strings, with the string's tags.

        Return None if no such string is found, whatever the answer, so that both answers keep the same lengths.
        """
        distance = random.randint(1, min(self.config.max_edit_distance, len(string) // 2))
        other = at_distance(random, string, distance, self.config.bracket_types)
        if other is None:
            return None
        if random.random() < 0.5:
            return self._recognised(string, "balanced", {"edit_distance": 0, **tags})
        return self._recognised(other, "unbalanced", {"edit_distance": distance, **tags})

    def _recognised(self, string: Tokens, answer: str, tags: dict[str, Tag]) -> Drawn:
        return Drawn(string, self.with_steps((answer,), lambda: follows(string)), {"answer": answer, **tags})
