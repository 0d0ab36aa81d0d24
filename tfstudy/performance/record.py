"""What `tfstudy bench` is asked to measure, and `bench.jsonl`: what it measured, a JSON object per line.

The file may come from somebody else, so every field has bounds. Imports no torch.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from tfstudy import models
from tfstudy.config.presets import preset
from tfstudy.config.resolve import overrides, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, merge
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.runs.files import BrokenError, read_plain, write_atomically

NAME = "bench.jsonl"
MAX_BYTES = 1 << 26

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
TASK = "scan"  # the models have the sizes of its default presets, which are about equal; none of its data are used
AXES: dict[str, tuple[int, ...]] = {"length": (16, 32, 64, 128), "width": (128,), "batch": (16,)}
MEASURES = (*WORKS, "memory", "flops")
LARGEST = 2**20
OF_VARIANT: dict[str, Tree] = {
    "checkpointing": {"train": {"gradient_checkpointing": True}},
    "bf16": {"train": {"precision": "bf16-mixed"}},
}


class Setting(NamedTuple):
    """One row of the table: what is measured of which model, on which batch."""

    work: Work
    arch: str
    variant: Variant
    length: int  # tokens of every source and of every target
    width: int  # `model.dim`; the other widths of the architecture are scaled with it
    batch: int  # examples


class Request(NamedTuple):
    """What to measure. An axis that is given comes first: the figure has the first that varies as its horizontal axis.

    Memory and FLOPs are those of training if neither the speed of training nor of generation is measured.
    """

    archs: Sequence[str]
    axes: Mapping[str, tuple[int, ...]]
    measures: Sequence[str]
    variants: Sequence[Variant]
    model: Mapping[str, Any] = {}  # settings of the models
    repeats: int = 7

    def settings(self) -> list[Setting]:
        """All settings, those of one kind of work and one architecture next to each other."""
        works: list[Work] = [work for work in WORKS if work in self.measures] or ["training"]
        every = product(works, self.archs, product(*(self.axes[name] for name in AXES)), self.variants)
        return [Setting(work, arch, v, *sizes) for work, arch, sizes, v in every if work in VARIANTS[v]]

    @property
    def timed(self) -> bool:
        """Whether any time is measured."""
        return not {*WORKS}.isdisjoint(self.measures)


def parse_request(
    arch: str, vary: Sequence[str], measure: str, variant: str, settings: Sequence[str], repeats: int
) -> Request:
    """Return what the options of the command ask for, such as `lstm,cnn` and `length=16,32`; `UserError` if invalid."""

    def names(text: str, what: str, known: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(one_of(what, name.strip(), known) for name in text.split(",")))

    chosen, axes, tree = names(variant, "variant", list(VARIANTS)), dict(map(_axis, vary)), overrides(settings)
    for section in tree:
        one_of("section", section, ("model",), "--set")
    if not isinstance(model := tree.get("model", {}), dict):
        raise UserError(f"'model' must be a section of keys, but is {quoted(model)}")
    if "dim" in model:
        raise UserError("--set takes settings such as model.heads=8; the width of all is set by --vary width=...")
    variants, archs = [name for name in VARIANTS if name in chosen], names(arch, "architecture", models.names())
    every = axes | {name: sizes for name, sizes in AXES.items() if name not in axes}
    request = Request(archs, every, names(measure, "measure", MEASURES), variants, model, repeats)
    if not request.settings():
        applies = "; ".join(f"the variant {name} applies to {VARIANTS[name][0]}" for name in request.variants)
        raise UserError(f"nothing to measure with --measure {measure} --variant {variant}: {applies}")
    return request


def _axis(text: str) -> tuple[str, tuple[int, ...]]:
    """Return an axis and its values, given `length=16,32`."""
    name, _, values = text.partition("=")
    one_of("axis", name, AXES, "--vary")
    for value in values.split(","):
        if not (value.isascii() and value.isdigit() and 1 <= int(value) <= LARGEST):
            rule = f"a whole number from 1 to {LARGEST:,}"
            raise UserError(f"--vary {name}: a value must be {rule}, but is {quoted(value)}")
    return name, tuple(dict.fromkeys(map(int, values.split(","))))


def config_of(setting: Setting, request: Request) -> RunConfig:
    """Return the config of a setting; `UserError` if the architecture can't have this width or these settings.

    A setting of the model applies to those of the architectures that have it.
    """
    cls = models.find(setting.arch)
    fields = cls.Config.model_fields
    others = {key for arch in request.archs for key in models.find(arch).Config.model_fields} - fields.keys()
    wanted = {key: value for key, value in request.model.items() if key not in others}
    sizes = {key: fields[key].default for key in ("dim", *cls.widths)}
    table = {"max_positions": max(512, max(request.axes["length"]) + 1)} if "max_positions" in fields else {}
    model = merge(sizes, preset(TASK, setting.arch).get("model", {}), {"dropout": 0.0}, table, wanted)
    scaled = {key: model[key] for key in cls.widths if type(model[key]) is int and model[key] > 0}
    model |= {key: max(1, round(value * setting.width / model["dim"])) for key, value in scaled.items()}
    return resolve({"task": TASK, "arch": setting.arch, "model": model} | OF_VARIANT.get(setting.variant, {}))


Text = Annotated[str, msgspec.Meta(max_length=200)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
Repeats = Annotated[tuple[Annotated[float, msgspec.Meta(gt=0, le=1e6)], ...], msgspec.Meta(max_length=1000)]
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
    def tokens_per_second(self) -> list[float]:
        """Target tokens per second by this clock, for each repeat."""
        times = self.cpu_seconds if self.clock == "CPU" else self.seconds
        return [self.batch * self.length / seconds for seconds in times]


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
