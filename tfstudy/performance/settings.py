"""What `tfstudy bench` measures: architectures, lengths, widths, batch sizes and variants. Imports no torch itself."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from tfstudy import models
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, merge
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.performance.record import VARIANTS, WORKS, Variant, Work

TASK = "scan"  # the models have the sizes of its default presets, which are about equal; none of its data are used
AXES: dict[str, tuple[int, ...]] = {"length": (16, 32, 64, 128), "width": (128,), "batch": (16,)}
MEASURES = ("training", "generation", "memory", "flops")
LARGEST = 2**20
NUMBER = re.compile(r"[1-9]\d{0,6}", re.ASCII)
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
    """What to measure."""

    archs: tuple[str, ...]
    axes: Mapping[str, tuple[int, ...]]
    measures: tuple[str, ...]
    variants: tuple[Variant, ...]
    overrides: Tree
    repeats: int = 7

    def settings(self) -> list[Setting]:
        """All settings, those of one architecture and one kind of work next to each other.

        Memory and FLOPs are those of training if neither the speed of training nor of generation is measured.
        """
        works: list[Work] = [work for work in WORKS if work in self.measures] or ["training"]
        sizes = product(*(self.axes[name] for name in AXES))
        every = product(works, self.archs, sizes, self.variants)
        return [Setting(work, arch, v, *size) for work, arch, size, v in every if work in VARIANTS[v]]

    @property
    def timed(self) -> bool:
        """Whether any time is measured."""
        return bool({"training", "generation"} & {*self.measures})


def parse_names(text: str, what: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the names in a text such as `lstm,cnn`, each once; `UserError` for an unknown one."""
    return tuple(dict.fromkeys(one_of(what, name.strip(), known) for name in text.split(",")))


def parse_axes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the values of every axis, given texts such as `length=16,32`; `UserError` for an invalid one.

    Axes that are given come first: a figure has the first of several values as its horizontal axis.
    """
    axes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals:
            raise UserError(f"--vary must be AXIS=VALUE,... such as length=16,32, but is {quoted(text)}")
        one_of("axis", name, AXES, "--vary")
        sizes = [value.strip() for value in values.split(",")]
        if wrong := [size for size in sizes if not NUMBER.fullmatch(size) or int(size) > LARGEST]:
            must = f"must be a whole number from 1 to {LARGEST:,}"
            raise UserError(f"--vary {name}: a value {must}, but is {quoted(wrong[0])}")
        axes[name] = tuple(dict.fromkeys(map(int, sizes)))
    return axes | {name: values for name, values in AXES.items() if name not in axes}


def check_overrides(overrides: Tree) -> Tree:
    """Return settings of models; `UserError` for those of other sections, and for the width, which `--vary` sets."""
    for section in overrides:
        one_of("section", section, ("model",), "--set")
    model = overrides.get("model", {})
    if not isinstance(model, dict) or "dim" in model:
        raise UserError("--set takes settings such as model.heads=8; the width of all is set by --vary width=...")
    return overrides


def config_of(setting: Setting, request: Request) -> RunConfig:
    """Return the config of a setting; `UserError` if the architecture can't have this width or these settings.

    A setting of the model applies to those of the architectures that have it.
    """
    cls = models.find(setting.arch)
    fields = cls.Config.model_fields
    others = {key for arch in request.archs for key in models.find(arch).Config.model_fields} - fields.keys()
    wanted = {key: value for key, value in request.overrides.get("model", {}).items() if key not in others}
    sizes = {key: fields[key].default for key in cls.widths}
    table = {"max_positions": max(512, max(request.axes["length"]) + 1)} if "max_positions" in fields else {}
    model = merge(sizes, preset(TASK, setting.arch).get("model", {}), {"dropout": 0.0}, table, wanted)
    scaled = {key: model[key] for key in cls.widths if type(model[key]) is int and model[key] > 0}
    model |= {key: max(1, round(value * setting.width / model["dim"])) for key, value in scaled.items()}
    return resolve({"task": TASK, "arch": setting.arch, "model": model} | OF_VARIANT.get(setting.variant, {}))
