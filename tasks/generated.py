"""What a task is whose examples are drawn at random: any number of them, of any length.

A subclass writes `draw`, which makes one example of a given length. All else is here: a train split over a range of
lengths, a validation and a test split of the same lengths, a test split for every longer range, and fresh examples of
any length. `length` is the size that the task scales by: symbols of a string, digits of the larger operand, ...
"""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Annotated, ClassVar, NamedTuple

from pydantic import BeforeValidator, Field

from tasks.base import Example, Splits, Tag, Task, TaskConfig, Tokens, stable_hash
from tasks.errors import UserError, one_of

MISSES = 2000  # draws in a row that bring nothing new, after which a split is held to be complete
HELD_OUT = 0.1  # share of all sources of the train lengths that is kept for validation, and as much for testing
FRESH = 100  # examples that `at_length` draws


class Drawn(NamedTuple):
    """One example as `draw` makes it; its length is added to the tags."""

    source: Tokens
    target: Tokens
    tags: Mapping[str, Tag] = {}


class Span(NamedTuple):
    """Lengths from `first` to `last`, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


def spans(text: str) -> list[Span]:
    """`"11-15,20"` as spans; `ValueError` if it is not of that form."""
    found = [re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part) for part in text.split(",")] if text.strip() else []
    out = [Span(int(m[1]), int(m[2] or m[1])) for m in found if m]
    if len(out) != len(found) or any(span.first > span.last for span in out):
        raise ValueError(f"must be lengths such as 5, 1-10 or 11-15,16-20, but is '{text}'")
    return out


def _one(value: object) -> str:
    if len(spans(str(value))) != 1:
        raise ValueError(f"must be one range of lengths such as 1-10, but is '{value}'")
    return str(value)


def _several(value: object) -> str:
    spans(str(value))
    return str(value)


One = Annotated[str, BeforeValidator(_one)]
Several = Annotated[str, BeforeValidator(_several)]


class GeneratedConfig(TaskConfig):
    """What every generated task lets a user choose (section `data`)."""

    train_length: One = Field("1-10", description="lengths that are trained on, drawn uniformly")
    test_length: Several = Field("11-15,16-20", description="other lengths: each range is a test split")
    train_examples: int = Field(20000, ge=1, le=10**8, description="examples to train on, or all that there are")
    eval_examples: int = Field(1000, ge=1, le=10**7, description="examples of validation and of each test split")


class Generated(Task):
    """Examples by length. No source occurs in two splits, nor twice in one.

    Of the sources of the train lengths a hash keeps a tenth for validation and a tenth for testing, so that short
    lengths, of which there are few sources, are held out as well, and more examples never move one across.
    """

    Config: ClassVar[type[TaskConfig]] = GeneratedConfig
    shortest: ClassVar[int] = 1  # the least length that there is
    config: GeneratedConfig

    def __init__(self, config: GeneratedConfig) -> None:
        one_of("split scheme", config.split, self.split_schemes())
        self.config = config
        self._drawn: dict[str, list[Example]] = {}
        self.check()

    @abstractmethod
    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        """A random example of this length for this split (which matters to a few); None if this attempt made none."""

    def key(self, source: Tokens) -> Tokens:
        """What decides a source's side: sources with the same key are never in train and in a held-out split."""
        return source

    def more_tests(self) -> Sequence[str]:
        """Names of test splits of the train lengths that differ from `test` in another way, known to `draw`."""
        return ()

    def check(self) -> None:
        """Refuses ranges of lengths that the task can't keep apart or can't make."""
        train, tests = self.train_span, spans(self.config.test_length)
        for number, span in enumerate([train, *tests]):
            key = "test_length" if number else "train_length"
            if span.first < self.shortest:
                raise UserError(f"data.{key} must start at {self.shortest} or more here, but is '{span}'")
        for number, span in enumerate(tests):
            for other, key in [(train, "train_length"), *((test, "test_length") for test in tests[:number])]:
                if span.first <= other.last and other.first <= span.last:
                    raise UserError(f"data.test_length {span} touches data.{key} {other}: they must share no length")

    @property
    def train_span(self) -> Span:
        return spans(self.config.train_length)[0]

    @cached_property
    def _spans(self) -> dict[str, Span]:
        inside = dict.fromkeys(("train", "validation", "test", *self.more_tests()), self.train_span)
        return inside | {f"test_{s.first}_{s.last}": s for s in spans(self.config.test_length)}

    def splits(self) -> Splits:
        if not self.examples("train"):
            raise UserError(
                f"data.train_length {self.train_span} leaves no example to train on, of so few that there are"
            )
        validation = "validation" if self.examples("validation") else None
        tests = [name for name in self._spans if name.startswith("test") and self.examples(name)]
        if not tests:
            raise UserError(f"data.train_length {self.train_span} leaves no example to test on: set data.test_length")
        return Splits("train", validation, tuple(tests))

    def examples(self, split: str) -> Sequence[Example]:
        if split not in self._drawn:
            span = self._spans[one_of("split", split, self._spans)]
            wanted = self.config.train_examples if split == "train" else self.config.eval_examples
            self._drawn[split] = self._distinct(split, span, wanted)
        return self._drawn[split]

    def by_length(self) -> tuple[str, ...]:
        return tuple(name for name in self.splits().held_out if name not in self.more_tests())

    def at_length(self, length: int) -> Sequence[Example]:
        if length < self.shortest:
            return ()
        return self._distinct("fresh", Span(length, length), FRESH)

    def _distinct(self, split: str, span: Span, wanted: int) -> list[Example]:
        """`wanted` examples with different sources, or fewer if there are no more. More of them begin with these."""
        random = Random(f"{type(self).__name__} {self.config.split} {split} {span} {self.config.seed}")
        side = split if split in ("train", "validation") else "test"
        trained = self.train_span
        out: dict[Tokens, Example] = {}
        misses = 0
        while len(out) < wanted and misses < MISSES:
            length = random.randint(*span)
            drawn = self.draw(random, length, split)
            inside = trained.first <= length <= trained.last
            if drawn is None or drawn.source in out or (inside and self._side(self.key(drawn.source)) != side):
                misses += 1
                continue
            misses = 0
            out[drawn.source] = Example(drawn.source, drawn.target, {"length": length, **drawn.tags})
        return list(out.values())

    def _side(self, key: Tokens) -> str:
        place = stable_hash("side", self.config.seed, key) / 2**64
        return "validation" if place < HELD_OUT else "test" if place < 2 * HELD_OUT else "train"
