"""What `tfstudy bench` measures: architectures, lengths, widths, batch sizes and variants. Imports no torch itself."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from tfstudy import models
from tfstudy.config.presets import preset
from tfstudy.config.resolve import overrides, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, merge
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.performance.record import VARIANTS, WORKS, Variant, Work

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
    if "dim" in (model := tree.get("model", {})):
        raise UserError("--set takes settings such as model.heads=8; the width of all is set by --vary width=...")
    every = axes | {name: sizes for name, sizes in AXES.items() if name not in axes}
    variants = [name for name in VARIANTS if name in chosen]
    archs = names(arch, "architecture", models.names())
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
            raise UserError(
                f"--vary {name}: a value must be a whole number from 1 to {LARGEST:,}, but is {quoted(value)}"
            )
    return name, tuple(dict.fromkeys(map(int, values.split(","))))


def config_of(setting: Setting, request: Request) -> RunConfig:
    """Return the config of a setting; `UserError` if the architecture can't have this width or these settings.

    A setting of the model applies to those of the architectures that have it.
    """
    cls = models.find(setting.arch)
    fields = cls.Config.model_fields
    others = {key for arch in request.archs for key in models.find(arch).Config.model_fields} - fields.keys()
    wanted = {key: value for key, value in request.model.items() if key not in others}
    sizes = {key: fields[key].default for key in cls.widths}
    table = {"max_positions": max(512, max(request.axes["length"]) + 1)} if "max_positions" in fields else {}
    model = merge(sizes, preset(TASK, setting.arch).get("model", {}), {"dropout": 0.0}, table, wanted)
    scaled = {key: model[key] for key in cls.widths if type(model[key]) is int and model[key] > 0}
    model |= {key: max(1, round(value * setting.width / model["dim"])) for key, value in scaled.items()}
    return resolve({"task": TASK, "arch": setting.arch, "model": model} | OF_VARIANT.get(setting.variant, {}))
