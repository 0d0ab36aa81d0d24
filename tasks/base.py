"""What a task is: named splits of examples, each a pair of token sequences with tags."""

import hashlib
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from tasks.errors import UserError, one_of
from tasks.scoring import exact_match, mean, token_accuracy

if TYPE_CHECKING:
    from datasets import DatasetDict

Tokens = tuple[str, ...]
Tag = str | int


class Example(NamedTuple):
    """One pair, and the tags that tables slice by."""

    source: Tokens
    target: Tokens
    tags: Mapping[str, Tag]


class Splits(NamedTuple):
    """The names of a task's splits, each in one role. Validation is in distribution; there may be none."""

    train: str
    validation: str | None
    tests: tuple[str, ...]

    @property
    def held_out(self) -> tuple[str, ...]:
        """Every split but the train split."""
        return ((self.validation,) if self.validation else ()) + self.tests

    @property
    def all(self) -> tuple[str, ...]:
        return (self.train, *self.held_out)


class TaskConfig(BaseModel):
    """What every task lets a user choose (section `data`)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    split: str = Field(description="which of the task's experiments: what is held out for testing")
    seed: int = Field(0, ge=0, lt=2**63, description="decides what data are drawn; it does not follow the run's seed")


class Task(ABC):
    """Splits of examples, deterministic in the config. One subclass a file; `Config` is nested in it."""

    # Raise it when the same config leads to other examples or other scores, or when a default of `Config` changes.
    version: ClassVar[int] = 1
    Config: ClassVar[type[TaskConfig]] = TaskConfig

    @abstractmethod
    def __init__(self, config: TaskConfig) -> None: ...

    @classmethod
    @abstractmethod
    def split_schemes(cls) -> dict[str, str]:
        """The values that `data.split` takes, each with a line on what it tests."""

    @abstractmethod
    def splits(self) -> Splits:
        """The names of the splits by role."""

    @abstractmethod
    def examples(self, split: str) -> Sequence[Example]:
        """The examples of one of `splits()`, always in the same order."""

    def at_length(self, length: int) -> Sequence[Example]:
        """Fresh examples whose tag `length` is this, also beyond all splits; none if the task can't make any."""
        return ()

    def by_length(self) -> tuple[str, ...]:
        """The held-out splits that accuracy by length is read off: they differ from train in nothing but length."""
        return ()

    def vocabulary(self) -> tuple[set[str], set[str]]:
        """The tokens of sources and of targets that a model has: those of the train split."""
        train = self.examples(self.splits().train)
        return {t for e in train for t in e.source}, {t for e in train for t in e.target}

    def tokens(self, text: str) -> Tokens:
        """A source as a user types it, as tokens."""
        return tuple(text.split())

    def text(self, tokens: Tokens) -> str:
        """Tokens as a user reads them."""
        return " ".join(tokens)

    def files(self) -> Mapping[str, str]:
        """What must be kept with a run to read its tokens: file name to content."""
        return {}

    def notes(self) -> Mapping[str, object]:
        """What a record says about the data beside their sizes: JSON values."""
        return {}

    def signatures(self) -> Mapping[str, str]:
        """How metrics were computed, for those that have a signature."""
        return {}

    def score(self, predictions: Sequence[Tokens], examples: Sequence[Example]) -> dict[str, float]:
        """Metrics over examples, each in [0, 1]; the first is the task's main one."""
        gold = [example.target for example in examples]
        return {
            "exact_match": mean(exact_match(p, g) for p, g in zip(predictions, gold, strict=True)),
            "token_accuracy": mean(token_accuracy(p, g) for p, g in zip(predictions, gold, strict=True)),
        }


def as_lines(examples: Iterable[Example]) -> list[str]:
    """Each example as `source<TAB>target`, tokens joined by blanks."""
    return [f"{' '.join(e.source)}\t{' '.join(e.target)}" for e in examples]


def checksum(examples: Iterable[Example]) -> str:
    """sha256 of the sorted lines: the same for the same examples in any order."""
    return hashlib.sha256("\n".join(sorted(as_lines(examples))).encode()).hexdigest()


def fingerprint(task: Task) -> str:
    """sha256 of all that a run can see of a task: its splits' names, roles and examples, in order."""
    seen = hashlib.sha256(repr(task.splits()).encode())
    for split in task.splits().all:
        examples = task.examples(split)
        seen.update("\n".join([split, *as_lines(examples), *(repr(sorted(e.tags.items())) for e in examples)]).encode())
    return seen.hexdigest()


def overlap(task: Task) -> dict[str, int]:
    """For each held-out split, how many of its sources also occur in the train split."""
    splits = task.splits()
    trained = {e.source for e in task.examples(splits.train)}
    return {name: sum(e.source in trained for e in task.examples(name)) for name in splits.held_out}


def stable_hash(purpose: str, seed: int, source: Tokens) -> int:
    """A number in [0, 2^64) that depends on these alone, so that draws by it are nested and know no order.

    Draws for two purposes are independent: a validation set must not be the start of a random split's order.
    """
    return int.from_bytes(hashlib.sha256(f"{purpose}\t{seed}\t{' '.join(source)}".encode()).digest()[:8], "big")


def hold_out(train: Sequence[Example], fraction: float, seed: int) -> tuple[list[Example], list[Example]]:
    """`train` in two: what stays, and a validation part drawn by hash.

    An example that occurs more than once always stays: repeats are how some splits weight what must be learnt.
    """
    bound = fraction * 2**64
    count = Counter(e.source for e in train)
    out = {s for s, n in count.items() if n == 1 and stable_hash("validation", seed, s) < bound}
    return [e for e in train if e.source not in out], [e for e in train if e.source in out]


def to_datasets(task: Task) -> "DatasetDict":
    """All splits as a `datasets.DatasetDict`: columns source and target (tokens joined by blanks), then the tags."""
    from datasets import Dataset, DatasetDict

    def rows(split: str) -> Dataset:
        columns: dict[str, list[Tag]] = {"source": [], "target": []}
        examples = task.examples(split)
        columns["source"] = [" ".join(e.source) for e in examples]
        columns["target"] = [" ".join(e.target) for e in examples]
        for tag in examples[0].tags if examples else ():
            columns[tag] = [e.tags[tag] for e in examples]
        return Dataset.from_dict(columns)

    return DatasetDict({split: rows(split) for split in task.splits().all})


def write_datasets(task: Task, out: Path, form: str) -> list[Path]:
    """Writes `to_datasets(task)` as one file a split into the new folder `out`; the files' paths.

    `datasets.load_dataset` reads them, with the builder `json` or `parquet`. The folder appears whole or not at all.
    """
    one_of("format", form, ("jsonl", "parquet"))
    if out.exists():
        raise UserError(f"--out must not be there yet, but is: {out}")
    part = Path()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        part.chmod(0o755)
        for split, rows in to_datasets(task).items():
            path = str(part / f"{split}.{form}")
            rows.to_parquet(path) if form == "parquet" else rows.to_json(path, force_ascii=False)
        part.rename(out)
    except OSError as error:
        raise UserError(f"can't write to {out}: {error.strerror or error}") from None
    finally:
        if part.name:
            shutil.rmtree(part, ignore_errors=True)
    return sorted(out.iterdir())
