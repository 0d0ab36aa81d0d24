"""The task contract: named splits of examples, each a source, a target and tags. Also checksums and files."""

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from tfstudy.errors import UserError, one_of, quoted
from tfstudy.tasks.scoring import exact_match, mean, token_accuracy

Tokens = tuple[str, ...]
Tag = str | int
LONGEST_TAG = 200  # characters, as a record holds it


class Example(NamedTuple):
    """A source and its target, with tags such as `length` for reporting accuracy per slice."""

    source: Tokens
    target: Tokens
    tags: Mapping[str, Tag]


class Splits(NamedTuple):
    """Names of a task's splits by role. The validation split is in distribution; it may be missing."""

    train: str
    validation: str | None
    tests: tuple[str, ...]

    @property
    def held_out(self) -> tuple[str, ...]:
        """All splits except the train split."""
        return ((self.validation,) if self.validation else ()) + self.tests

    @property
    def all(self) -> tuple[str, ...]:
        """All splits, the train split first."""
        return (self.train, *self.held_out)


class TaskConfig(BaseModel):
    """Settings that all tasks have (section `data` of a run's config)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    split: str = Field(description="split scheme: which examples are held out for testing")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of the data; independent of the run's seed")

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """A subclass that only changes a default, as in `split: str = "copy"`, keeps the description."""
        for name, field in cls.model_fields.items():
            for base in cls.__mro__[1:] if not field.description else ():
                inherited = getattr(base, "model_fields", {}).get(name)
                field.description = field.description or (inherited.description if inherited else None)


class Task(ABC):
    """A task: splits of examples, determined by the config. Each file defines one subclass with a nested `Config`."""

    # Raise it when the same config leads to other examples or other scores, or when a default of `Config` changes.
    version: ClassVar[int] = 1
    schemes: ClassVar[Mapping[str, str]] = {}  # the values of `data.split`, each with one line that says what it tests
    # Of the shared presets (configs/presets/shared.yaml); those of a task's own file have steps of their own.
    steps: ClassVar[int] = 3000
    steps_of: ClassVar[Mapping[str, int]] = {}  # of architectures that need other ones
    Config: ClassVar[type[TaskConfig]] = TaskConfig

    @abstractmethod
    def __init__(self, config: TaskConfig) -> None: ...

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        """Return `schemes`, the allowed values of `data.split`."""
        return dict(cls.schemes)

    @classmethod
    def check_config(cls, config: TaskConfig) -> None:
        """Raise `UserError` for settings that do not fit together. This is called before any data are generated."""
        one_of("split scheme", config.split, cls.split_schemes())

    @abstractmethod
    def splits(self) -> Splits:
        """Return the names of the splits by role."""

    @abstractmethod
    def examples(self, split: str) -> Sequence[Example]:
        """Return the examples of one split, always in the same order."""

    @property
    def redraws(self) -> bool:
        """Whether every pass over the train split has other examples, those of `redrawn`."""
        return False

    def redrawn(self, number: int, seed: int, progress: float) -> Sequence[Example]:
        """Return as many train examples as the train split has, for pass `number` of a run with this seed.

        `progress` is the share of training before this pass, in [0, 1].
        """
        return self.examples(self.splits().train)

    def by_length(self) -> tuple[str, ...]:
        """Return the held-out splits that differ from train in length only; accuracy per length is measured on them."""
        return ()

    def vocabulary(self) -> tuple[set[str], set[str]]:
        """Return the source tokens and the target tokens that a model knows: those of the train split."""
        train = self.examples(self.splits().train)
        return {t for e in train for t in e.source}, {t for e in train for t in e.target}

    def tokens(self, text: str) -> Tokens:
        """Return the tokens of a source typed by a user."""
        return tuple(text.split())

    def target_tokens(self, text: str) -> Tokens:
        """Return the tokens of a target typed by a user."""
        return tuple(text.split())

    def text(self, tokens: Tokens) -> str:
        """Return tokens as readable text."""
        return " ".join(tokens)

    def readable(self, token: str) -> str:
        """Return a token as text for people; a subword should show where a word begins."""
        return token

    def files(self) -> Mapping[str, str]:
        """Return files to save with a run so that its tokens can be read later: name to content."""
        return {}

    @classmethod
    def restored(cls, config: TaskConfig, files: Mapping[str, str]) -> "Task | None":
        """Return a task that converts texts as the one that wrote `files`, without its data; None if it can't.

        Its examples have the lengths of the data and no tokens.
        """
        return None

    def digits(self) -> frozenset[str]:
        """Return the digits of numbers that start with their last digit; models may have positions for them."""
        return frozenset()

    def labels(self, example: Example) -> Mapping[str, Sequence[int | None]]:
        """Return what a model may need to know at each source token, by name: a label, or None where there is none."""
        return {}

    def corpus(self) -> str:
        """Return the name of the corpus that the examples are from; empty if the task generates them."""
        return ""

    def notes(self) -> Mapping[str, object]:
        """Return further facts about the data for the run's record, as JSON values."""
        return {}

    def remarks(self) -> Sequence[str]:
        """Return lines on the data that a user should read before training, such as what was left out of train."""
        return ()

    def signatures(self) -> Mapping[str, str]:
        """Return the signatures of metrics, such as sacreBLEU's."""
        return {}

    def baselines(self, split: str) -> Mapping[str, Sequence[Tokens]]:
        """Return the predictions of trivial systems, such as copying, for all examples of a split, by their names."""
        return {}

    def score(self, predictions: Sequence[Tokens], examples: Sequence[Example]) -> dict[str, float]:
        """Return metrics of all examples, in [0, 1], the main one first; exact match is added if it is missing."""
        gold = [example.target for example in examples]
        return {
            "exact_match": mean(exact_match(p, g) for p, g in zip(predictions, gold, strict=True)),
            "token_accuracy": mean(token_accuracy(p, g) for p, g in zip(predictions, gold, strict=True)),
        }


def as_lines(examples: Iterable[Example]) -> list[str]:
    """Return each example as `source<TAB>target`, tokens joined by spaces."""
    return [f"{' '.join(e.source)}\t{' '.join(e.target)}" for e in examples]


def checksum(examples: Iterable[Example]) -> str:
    """Return the SHA-256 of the sorted examples; their order does not matter."""
    return hashlib.sha256("\n".join(sorted(as_lines(examples))).encode()).hexdigest()


def fingerprint(task: Task) -> str:
    """Return the SHA-256 of everything a run uses of a task: names, roles and ordered examples of its splits."""
    digest = hashlib.sha256(repr(task.splits()).encode())
    for split in task.splits().all:
        examples = task.examples(split)
        lines = [split, *as_lines(examples), *(repr(sorted(e.tags.items())) for e in examples)]
        digest.update("\n".join(lines).encode())
    return digest.hexdigest()


def overlap(task: Task) -> dict[str, int]:
    """Return, per held-out split, how many of its sources also occur in the train split."""
    splits = task.splits()
    train_sources = {e.source for e in task.examples(splits.train)}
    return {name: sum(e.source in train_sources for e in task.examples(name)) for name in splits.held_out}


def unknown_tokens(task: Task) -> dict[str, dict[str, int]]:
    """Return, per held-out split, how many examples have a source and how many a target token that is unknown."""
    known = task.vocabulary()
    return {
        split: {
            side: sum(not vocabulary.issuperset(getattr(e, side)) for e in task.examples(split))
            for side, vocabulary in zip(("source", "target"), known, strict=True)
        }
        for split in task.splits().held_out
    }


def warnings(task: Task, shared: Mapping[str, int]) -> list[str]:
    """Return a line for each held-out split with sources of train (`overlap`), or with unknown tokens."""
    found = []
    for split, counts in unknown_tokens(task).items():
        n = len(task.examples(split))
        if shared[split]:
            found.append(f"WARNING: {shared[split]:,} of {n:,} examples of {split} have a source that is also in train")
        for side in ("target", "source"):
            most = f": at most {100 * (n - counts[side]) / n:.4g} % can be right" if side == "target" else ""
            if counts[side]:
                found.append(f"{counts[side]:,} of {n:,} {side}s of {split} have an unknown token{most}")
    return found


def check_examples(name: str, task: Task) -> None:
    """Raise `UserError` if a split of the task with this name is empty, if a part of an example is no tuple, or for
    tags that no run could record: others than those of the first example, values that are no short text or number."""
    for split in task.splits().all:
        examples, where = task.examples(split), f"task {name}: split '{split}'"
        if not len(examples):
            raise UserError(f"{where} has no examples")
        for example in examples:
            if not isinstance(example, Example):
                raise UserError(f"{where}: each must be an Example, but one is a {type(example).__name__}")
        tags = examples[0].tags.keys()
        for example in examples:
            for part, value in (("source", example.source), ("target", example.target)):
                if not isinstance(value, tuple):
                    raise UserError(f"{where}: {part} must be a tuple of tokens, but is a {type(value).__name__}")
            if example.tags.keys() != tags:
                raise UserError(f"{where}: one example has the tags {[*tags]}, another {[*example.tags]}")
            wrong = [v for v in example.tags.values() if not isinstance(v, str | int) or len(str(v)) > LONGEST_TAG]
            if wrong:
                rule = f"an integer or text of at most {LONGEST_TAG} characters"
                raise UserError(f"{where}: a tag must be {rule}, but is {quoted(wrong[0])}")


def stable_hash(purpose: str, seed: int, source: Tokens) -> int:
    """Return a number in [0, 2^64) that depends only on the arguments; selections by it are nested and order-free.

    Selections for different purposes are independent: a validation set must not be a prefix of a random split.
    """
    return int.from_bytes(hashlib.sha256(f"{purpose}\t{seed}\t{' '.join(source)}".encode()).digest()[:8], "big")


def hold_out(
    train: Sequence[Example], fraction: float, seed: int, keep: Collection[Tokens] = ()
) -> tuple[list[Example], list[Example]]:
    """Split `train` into the remaining train examples and a validation set selected by hash.

    The sources `keep` stay in train, and so do those that occur more than once: some splits repeat an example to give
    it more weight.
    """
    threshold = fraction * 2**64
    once = (s for s, n in Counter(e.source for e in train).items() if n == 1 and s not in keep)
    validation = {s for s in once if stable_hash("validation", seed, s) < threshold}
    return [e for e in train if e.source not in validation], [e for e in train if e.source in validation]
