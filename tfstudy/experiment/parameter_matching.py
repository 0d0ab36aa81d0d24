"""Sizes of models: widths that give a model a wanted number of parameters, so that architectures can be compared."""

import math
from collections.abc import Sequence
from functools import cache

from tfstudy import models, tasks
from tfstudy.config.presets import REFERENCE, preset
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, merge
from tfstudy.data.encoding import Vocab
from tfstudy.errors import UserError
from tfstudy.evaluation.decoding import needed_positions
from tfstudy.experiment.prepare import sizes, with_positions
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
    """Return the widths that give the number of parameters nearest to `wanted`, and that number."""
    plain = config.model.model_copy(update={"dropout": 0.0})  # the same cached result for any dropout
    if sizes(config.arch, config.model, vocabularies)[0]:
        plain = with_positions(plain, _positions(config.task, config.data.model_dump_json()))
    divisors = tuple(width_divisors(config).items())
    widths, count = _nearest(config.arch, plain.model_dump_json(), divisors, vocabularies, wanted)
    return dict(widths), count


def with_reference_size(config: RunConfig, settings: Tree) -> RunConfig:
    """Return a config whose preset has no section `model` with as many parameters as the Transformer has, if possible.

    The Transformer has its default preset for the task, or its default settings if there is none. If the settings of
    the user include a width, the config stays the same.
    """
    cls = models.find(config.arch)
    if config.arch == REFERENCE or set(cls.widths) & set(settings.get("model") or {}):
        return config
    wanted, vocabularies = _reference(config.task, config.data.model_dump_json())
    widths, _ = nearest_sizes(config, vocabularies, wanted)
    return config.model_copy(update={"model": cls.Config(**config.model.model_dump() | widths)})


@cache
def _reference(task: str, data: str) -> tuple[int, Vocabularies]:
    """Return the Transformer's number of parameters on a task with these data settings (JSON), and the vocabularies."""
    settings = tasks.find(task).Config.model_validate_json(data)
    check_examples(task, built := tasks.build(task, settings))
    source, target = built.vocabulary()
    vocabularies = len(Vocab(source)), len(Vocab(target))
    named = {"task": task, "arch": REFERENCE, "data": settings.model_dump()}
    config = resolve(merge(preset(task, REFERENCE), named))
    model = config.model
    if sizes(config.arch, config.model, vocabularies)[0]:
        model = with_positions(model, _positions(task, data))
    return sizes(REFERENCE, model, vocabularies)[1], vocabularies


@cache
def _positions(task: str, data: str) -> int:
    """Return the number of positions that a task needs with these data settings (JSON)."""
    return needed_positions(tasks.build(task, tasks.find(task).Config.model_validate_json(data)))


@cache
def _nearest(
    arch: str, text: str, divisors: Sequence[tuple[str, int]], vocabularies: Vocabularies, wanted: int
) -> tuple[Tree, int]:
    """Find the widths by bisection: first one factor for all, then one for those that have no heads to fit."""
    cls, divisor_of = models.find(arch).Config, dict(divisors)
    model = cls.model_validate_json(text).model_dump()
    widths: Tree = {}

    def scaled(keys: Sequence[str], factor: float) -> Tree:
        return widths | {k: max(1, round(factor * model[k] / divisor_of[k])) * divisor_of[k] for k in keys}

    counts: dict[tuple[int, ...], int] = {}  # bisection tries the same widths many times

    def count(candidate: Tree) -> int:
        key = tuple(candidate[k] for k in divisor_of if k in candidate)
        counts[key] = counts.get(key) or sizes(arch, cls(**model | candidate), vocabularies)[1]
        return counts[key]

    finer = [key for key in divisor_of if key != "dim"]
    for keys in filter(None, (list(divisor_of), finer)):
        low, high = 2.0**-10, 2.0**6
        for _ in range(24):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if count(scaled(keys, middle)) <= wanted else (low, middle)
        candidates = [scaled(keys, factor) for factor in (low, high)]
        widths = min(candidates, key=lambda candidate: abs(count(candidate) - wanted))
    return widths, count(widths)
