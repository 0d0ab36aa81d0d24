"""`bench.jsonl`: what `tfstudy bench` measured, a JSON object per line. Imports no torch.

The file may come from somebody else, so every field has bounds.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from tfstudy.errors import UserError, quoted
from tfstudy.runs.files import BrokenError, read_plain, write_atomically

NAME = "bench.jsonl"
MAX_BYTES = 1 << 26
MAX_REPEATS = 1000

Work = Literal["training", "generation"]
WORKS: tuple[Work, ...] = ("training", "generation")
Variant = Literal["default", "uncached", "explicit", "checkpointing", "bf16"]
VARIANTS: dict[Variant, tuple[Work, ...]] = {  # and what each is a variant of
    "default": WORKS,
    "uncached": ("generation",),
    "explicit": WORKS,
    "checkpointing": ("training",),
    "bf16": WORKS,
}

Text = Annotated[str, msgspec.Meta(max_length=200)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e6)]
Repeats = Annotated[tuple[Seconds, ...], msgspec.Meta(max_length=MAX_REPEATS)]
Settings = dict[Text, bool | int | float | Text]


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where and when one command measured. Measurements of one command are comparable: they were interleaved."""

    started: Text  # UTC
    accelerator: Literal["cpu", "cuda"]
    device: Text
    threads: Count  # of torch
    processors: Count
    platform: Text
    versions: dict[Text, Text]
    commit: Text


class Flops(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Floating-point operations of one step, by torch's counter: a multiplication and an addition are two."""

    total: Number
    attention: Number  # of the products of queries and keys, and of weights and values
    feedforward: Number | None  # of modules named `feedforward`; unknown where layers are computed again


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The measurements of one setting. A step is an optimiser step, or the generation of a whole batch."""

    machine: Machine
    work: Work
    variant: Variant
    arch: Text
    model: Settings
    parameters: Count
    length: Count  # tokens of every source and of every target
    width: Count
    batch: Count  # examples
    seconds: Repeats = ()  # wall-clock time of a step, as a mean over the steps of each repeat
    cpu_seconds: Repeats = ()  # CPU time of all threads of the process, in the same repeats
    memory: Number | None = None  # peak bytes of tensors: parameters, states of the optimiser, and those of the step
    step_memory: Number | None = None  # the part of it that is allocated during a step
    flops: Flops | None = None
    train: Settings = {}  # empty: all have their default

    def __post_init__(self) -> None:
        """Refuse times that no ratio can be formed of: `ValueError`, also when they are read."""
        if len(self.seconds) != len(self.cpu_seconds):
            raise ValueError("the times are not of the same repeats")

    @property
    def clock(self) -> str:
        """By which time speed is judged: CPU time on one CPU thread, which other processes hardly affect."""
        return "CPU" if self.machine.accelerator == "cpu" and self.machine.threads == 1 else "wall-clock"

    @property
    def times(self) -> tuple[float, ...]:
        """The times of a step by this clock, in seconds."""
        return self.cpu_seconds if self.clock == "CPU" else self.seconds

    @property
    def tokens_per_second(self) -> list[float]:
        """Target tokens per second, for each repeat."""
        return [self.batch * self.length / seconds for seconds in self.times]


def write_records(folder: Path, records: Sequence[Record]) -> None:
    """Write the records to a folder; `UserError` if it has some already."""
    check_free(folder)
    write_atomically(folder / NAME, msgspec.json.Encoder().encode_lines(records))


def check_free(folder: Path) -> None:
    """Raise `UserError` if records can't be written to the folder without replacing others."""
    if folder.is_file() or (folder / NAME).exists():
        raise UserError(f"--out must be a new folder, but {quoted(folder)} is a file, or has measurements")


def read_records(folder: Path) -> list[Record]:
    """Return the records of all files `bench.jsonl` under a folder, sorted by path; `UserError` for a broken file."""
    records: list[Record] = []
    for file in sorted(path for path in folder.rglob(NAME) if path.is_file()):
        try:
            records += msgspec.json.Decoder(Record).decode_lines(read_plain(file, MAX_BYTES))
        except (OSError, BrokenError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UserError(f"{file} is broken ({error})") from None
    return records
