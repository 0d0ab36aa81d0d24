"""Sizes of models: widths that give a model a wanted number of parameters, so that architectures can be compared."""

import math
from collections.abc import Sequence
from functools import cache

from pydantic import ValidationError

from tfstudy import models, tasks
from tfstudy.config.presets import REFERENCE, preset
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, merge
from tfstudy.errors import UserError
from tfstudy.experiment.prepare import DataShape, sizes, with_positions
from tfstudy.models.config import ModelConfig
from tfstudy.tasks.base import check_examples

TOLERANCE = 0.05  # relative deviation from the wanted number of parameters

Vocabularies = tuple[int, int]  # sizes, with the special tokens, of source and target


def width_divisors(config: RunConfig, divisor: int = 1) -> dict[str, int]:
    """Return the keys of the model's widths, each with a divisor: `dim` must split into heads of even size."""
    heads = 2 * int(config.model.model_dump().get("heads", 1))
    return {k: math.lcm(heads, divisor) if k == "dim" else divisor for k in models.find(config.arch).widths}


def match_sizes(config: RunConfig, vocabularies: Vocabularies, wanted: int) -> Tree:
    """Return widths that give the model `wanted` parameters within 5 %, close to their current ratios.

    `UserError` if no widths do.
    """
    widths, count = nearest_sizes(config, vocabularies, wanted)
    if abs(count - wanted) > TOLERANCE * wanted:
        raise UserError(f"no widths of {config.arch} give {wanted:,} parameters within 5 %; the nearest give {count:,}")
    return widths


def nearest_sizes(config: RunConfig, vocabularies: Vocabularies, wanted: int) -> tuple[Tree, int]:
    """Return the widths that give the number of parameters nearest to `wanted`, and that number.

    They are found by bisection: first one factor for all widths, then one for those that have no heads to fit.
    """
    cls, divisors = models.find(config.arch).Config, width_divisors(config)
    model = _positioned(config, vocabularies).model_dump()
    widths: Tree = {}

    def scaled(keys: Sequence[str], factor: float) -> Tree:
        return widths | {k: max(1, round(factor * model[k] / divisors[k])) * divisors[k] for k in keys}

    def count(candidate: Tree) -> float:
        try:
            return sizes(config.arch, cls(**model | candidate), vocabularies)[1]
        except ValidationError:  # a width above its maximum
            return math.inf

    for keys in filter(None, ([*divisors], [key for key in divisors if key != "dim"])):
        low, high = 2.0**-10, 2.0**6
        for _ in range(24):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if count(scaled(keys, middle)) <= wanted else (low, middle)
        candidates = [scaled(keys, factor) for factor in (low, high)]
        widths = min(candidates, key=lambda candidate: abs(count(candidate) - wanted))
    if (found := count(widths)) == math.inf:
        raise UserError(
            f"{config.arch} allows no width of those that were tried: set {', '.join(divisors)}, or a preset"
        )
    return widths, int(found)


def with_reference_size(config: RunConfig, settings: Tree) -> RunConfig:
    """Return a config whose preset names no size with as many parameters as the Transformer has, if possible.

    The Transformer has its default preset for the task, or its default settings if there is none. If the settings of
    the user include a width, the config stays the same.
    """
    cls = models.find(config.arch)
    if config.arch == REFERENCE or set(cls.widths) & set(settings.get("model") or {}):
        return config
    data = _data(config.task, config.data.model_dump_json())
    named = {"task": config.task, "arch": REFERENCE, "data": config.data.model_dump()}
    if not data.one_vocabulary:
        named["model"] = {"share_embeddings": False}
    reference = resolve(merge(preset(config.task, REFERENCE), named))
    wanted = sizes(REFERENCE, _positioned(reference, data.vocabularies), data.vocabularies)[1]
    widths, _ = nearest_sizes(config, data.vocabularies, wanted)
    return config.model_copy(update={"model": cls.Config(**config.model.model_dump() | widths)})


def _positioned(config: RunConfig, vocabularies: Vocabularies) -> ModelConfig:
    """Return the section `model` with as many positions as the data need, if it has a table of them."""
    if not sizes(config.arch, config.model, vocabularies)[0]:
        return config.model
    return with_positions(config.model, _data(config.task, config.data.model_dump_json()).positions)


@cache
def _data(task: str, settings: str) -> DataShape:
    """Return the facts of a task's data with these settings (JSON)."""
    built = tasks.build(task, tasks.find(task).Config.model_validate_json(settings))
    check_examples(task, built)
    return DataShape.of(built)
