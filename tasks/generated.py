"""The base class of tasks whose examples are drawn at random, for any number of examples of any length.

A subclass implements `draw`, which draws one example of a given length. This class adds the splits: train, validation
and test over the train lengths, one test split per further range of lengths, and fresh examples of any length. `length`
is the size that the task scales by, such as the symbols of a string or the digits of the larger operand.

A target may start with a scratchpad, the intermediate steps before the answer (Nye et al. 2021, arXiv 2112.00114):

    b a b  ->  odd odd even : even      (`data.scratchpad`)
"""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from random import Random
from typing import Annotated, ClassVar, NamedTuple

from pydantic import BeforeValidator, Field, ValidationInfo

from tfstudy.errors import UserError, one_of
from tfstudy.tasks.base import Example, Splits, Tag, Task, TaskConfig, Tokens, stable_hash
from tfstudy.tasks.scoring import exact_match, mean

MAX_MISSES = 2000  # consecutive draws without a new source after which a split counts as complete
HELD_OUT_FRACTION = 0.1  # of all sources of the train lengths, for validation, and the same for testing
ANSWER = ":"  # separates the scratchpad from the answer


class Drawn(NamedTuple):
    """One example as `draw` returns it; its length is added to the tags."""

    source: Tokens
    target: Tokens
    tags: Mapping[str, Tag] = {}
    steps: Tokens = ()  # before the answer, for a scratchpad


class Span(NamedTuple):
    """The lengths from `first` to `last`, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


def parse_spans(text: str) -> list[Span]:
    """Return the spans in text such as `"11-15,20"`; raise `ValueError` if it has another form."""
    parts = text.split(",") if text.strip() else []
    matches = [re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part) for part in parts]
    spans = [Span(int(m[1]), int(m[2] or m[1])) for m in matches if m]
    if len(spans) != len(parts) or any(span.first > span.last for span in spans):
        raise ValueError("must be lengths such as 5, 1-10 or 11-15,16-20")
    return spans


def _text_of_spans(value: object, info: ValidationInfo) -> str:
    if len(parse_spans(str(value))) != 1 and info.field_name == "train_length":
        raise ValueError("must be one range of lengths such as 1-10")
    return str(value)


Lengths = Annotated[str, BeforeValidator(_text_of_spans)]


class GeneratedConfig(TaskConfig):
    """Settings that all generated tasks have (section `data`)."""

    train_length: Lengths = Field("1-10", description="range of the train lengths, drawn uniformly")
    test_length: Lengths = Field("11-15,16-20", description="further test lengths; each range is a test split")
    train_examples: int = Field(20000, ge=1, le=10**8, description="maximum number of train examples")
    eval_examples: int = Field(1000, ge=1, le=10**7, description="maximum examples of validation and each test split")
    repeat_sources: bool = Field(
        False, description="draw train sources with replacement, so that short lengths, which have few, are as frequent"
    )
    scratchpad: bool = Field(
        False, description="write the intermediate steps before the answer, in tasks that have them"
    )
    redraw: bool = Field(
        False, description="draw new train examples, with replacement, for every pass over as many as train_examples"
    )
    curriculum: float = Field(
        0, ge=0, le=1, description="share of training in which the longest train length grows to its end; needs redraw"
    )


class Generated(Task):
    """A task that draws examples by length. No held-out source occurs in train, nor in two splits, unless one is of
    `extra_tests`; with `repeat_sources` a source may occur several times in train, otherwise never twice in one split.

    A hash of the source assigns 10 % of the sources of the train lengths to validation and 10 % to testing. So short
    lengths, which have few sources, are held out as well, and drawing more examples never moves one between splits.
    With `redraw` the examples of train, from which the vocabulary is made, are replaced by others at every pass, as
    Deletang et al. 2022 (arXiv 2207.02098) train; with `curriculum` their lengths grow.
    """

    Config: ClassVar[type[TaskConfig]] = GeneratedConfig
    by_character: ClassVar[bool] = False  # each character is a token: `12+3=` and `1 2 + 3 =` are the same
    with_steps: ClassVar[tuple[str, ...]] = ()  # split schemes whose examples have steps for a scratchpad
    config: GeneratedConfig

    def __init__(self, config: GeneratedConfig) -> None:
        self.check_config(config)
        self.config = config
        self._examples: dict[str, list[Example]] = {}
        self.check()

    @abstractmethod
    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        """Draw an example of this length for this split (which few tasks use); return None if the attempt failed."""

    def draw_length(self, random: Random, span: Span) -> int:
        """Draw the length of the next example: by default, all lengths are equally likely."""
        return random.randint(*span)

    def group(self, source: Tokens) -> Tokens:
        """Return the key that assigns a source to train or held-out data: sources with the same key stay together."""
        return source

    def extra_tests(self) -> Sequence[str]:
        """Return names of test splits over the train lengths that `draw` makes different in another respect."""
        return ()

    def lengths(self) -> range:
        """Return the lengths that exist. Ranges of lengths may start below them, but end at most where these end."""
        return range(1, 10_000)

    def check(self) -> None:
        """Raise `UserError` for settings that do not fit together, and for ranges of lengths that cannot be drawn."""
        if self.config.curriculum and not self.config.redraw:
            raise UserError(f"data.curriculum={self.config.curriculum:g} needs data.redraw=true")
        if self.config.scratchpad and self.config.split not in self.with_steps:
            known = f"data.split={' or '.join(self.with_steps)}" if self.with_steps else "another task"
            raise UserError(f"data.scratchpad needs {known}: '{self.config.split}' has no steps")
        exist = self.lengths()
        spans = [("data.train_length", self.train_span), *(("data.test_length", span) for span in self.test_spans)]
        for key, span in spans:
            if span.last > exist[-1] or not any(n in exist for n in range(span.first, span.last + 1)):
                some = ", ".join(map(str, exist[:3]))
                raise UserError(f"{key} {span}: the lengths of '{self.config.split}' are {some}, ..., {exist[-1]}")
        for (other, one), (key, span) in combinations(spans, 2):
            if span.first <= one.last and one.first <= span.last:
                raise UserError(f"{key} {span} overlaps {other} {one}: they must share no length")

    @property
    def train_span(self) -> Span:
        """The train lengths."""
        return parse_spans(self.config.train_length)[0]

    @property
    def test_spans(self) -> list[Span]:
        """Each further range of test lengths."""
        return parse_spans(self.config.test_length)

    @cached_property
    def _spans(self) -> dict[str, Span]:
        """The lengths of each split, by its name."""
        inside = dict.fromkeys(("train", "validation", "test", *self.extra_tests()), self.train_span)
        return inside | {f"test_{s.first}_{s.last}": s for s in self.test_spans}

    def tokens(self, text: str) -> Tokens:
        return tuple("".join(text.split())) if self.by_character else super().tokens(text)

    def splits(self) -> Splits:
        tests = [name for name in self._spans if name.startswith("test") and self.examples(name)]
        if missing := "train" if not self.examples("train") else "" if tests else "test":
            too_few = f"data.train_length {self.train_span} has too few distinct sources for a {missing} split"
            raise UserError(too_few + ": set data.test_length" * (missing == "test"))
        return Splits("train", "validation" if self.examples("validation") else None, tuple(tests))

    def examples(self, split: str) -> Sequence[Example]:
        if split not in self._examples:
            span = self._spans[one_of("split", split, self._spans)]
            number = self.config.train_examples if split == "train" else self.config.eval_examples
            self._examples[split] = self._distinct(split, span, number)
        return self._examples[split]

    @property
    def redraws(self) -> bool:
        return self.config.redraw

    def redrawn(self, number: int, seed: int, progress: float) -> Sequence[Example]:
        train, wanted = self.train_span, len(self.examples("train"))
        share = min(1.0, progress / self.config.curriculum) if self.config.curriculum else 1.0
        examples: list[Example] = []
        for last in range(train.first + round(share * (train.last - train.first)), train.last + 1):
            examples = self._distinct("train", Span(train.first, last), wanted, again=f" {seed} {number}")
            if len(examples) == wanted:  # else all sources of these short lengths are held out
                break
        return examples

    def by_length(self) -> tuple[str, ...]:
        return tuple(name for name in self.splits().held_out if name not in self.extra_tests())

    def _distinct(self, split: str, span: Span, number: int, again: str = "") -> list[Example]:
        """Return up to `number` examples; a larger number starts with the same ones. Only those of train may repeat.

        `again` draws others, with replacement.
        """
        random = Random(f"{type(self).__name__} {self.config.split} {split} {span} {self.config.seed}{again}")
        side = split if split in ("train", "validation") else "test"
        train, exist = self.train_span, self.lengths()
        repeat = bool(again) or (self.config.repeat_sources and split == "train")
        examples: list[Example] = []
        known: set[Tokens] = set()
        misses = 0
        while len(examples) < number and misses < MAX_MISSES:
            length = self.draw_length(random, span)
            drawn = self.draw(random, length, split) if length in exist else None
            inside = train.first <= length <= train.last
            if drawn is None or drawn.source in known or (inside and self._side(self.group(drawn.source)) != side):
                misses += 1
                continue
            misses = 0
            if not repeat:
                known.add(drawn.source)
            target = (*drawn.steps, ANSWER, *drawn.target) if self.config.scratchpad else drawn.target
            examples.append(Example(drawn.source, target, {"length": length, **drawn.tags}))
        return examples

    def score(self, predictions: Sequence[Tokens], examples: Sequence[Example]) -> dict[str, float]:
        """Return the usual metrics and, with a scratchpad, `answer_exact_match` of what follows it."""
        scores = super().score(predictions, examples)
        if not self.config.scratchpad:
            return scores
        pairs = zip(predictions, examples, strict=True)
        return scores | {"answer_exact_match": mean(exact_match(answer(p), answer(e.target)) for p, e in pairs)}

    def _side(self, key: Tokens) -> str:
        """Return the role that the hash assigns to a source of the train lengths."""
        fraction = stable_hash("side", self.config.seed, key) / 2**64
        return "validation" if fraction < HELD_OUT_FRACTION else "test" if fraction < 2 * HELD_OUT_FRACTION else "train"


def answer(target: Sequence[str]) -> Tokens:
    """Return the tokens after the scratchpad; empty if the separator is missing."""
    return tuple(target[target.index(ANSWER) + 1 :]) if ANSWER in target else ()
