"""What a search ranges over: keys of the config, each with a range or a list.

train.learning_rate=1e-4..1e-2:log     numbers, evenly on a log scale
model.layers=1..4                      whole numbers, both ends included
model.norm=[pre, post]                 one of these
width=0.5..2:log                       a factor of all the model's widths together
cnn.model.kernel=[3, 5]                of one architecture alone
"""

import math
import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch

from tasks.errors import UserError, one_of
from tfstudy import models
from tfstudy.config.trees import merge
from tfstudy.config.resolve import overrides, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree
from tfstudy.grids.expand import nested
from tfstudy.models.base import parameter_count

WIDTH = "width"
WIDTHS = ("dim", "hidden", "channels", "feedforward")  # keys of `model` that are widths, by whatever architecture
DEFAULT = ("train.learning_rate=1e-4..1e-2:log", "model.dropout=0.0..0.4", "width=0.5..2:log")
SEARCHED = ("model", "train", "decode")  # the others say what is learnt, and by what it is judged
NEAR = 0.05  # how far from the wanted number of parameters a model may be


class Range(NamedTuple):
    """Numbers from `low` to `high`, both included."""

    low: float
    high: float
    log: bool
    whole: bool

    def at(self, share: float) -> float:
        """The number at this share, in [0, 1), of the way."""
        low, high = self.low, self.high + self.whole
        return self.rounded(low * (high / low) ** share if self.log else low + share * (high - low))

    def rounded(self, number: float) -> float:
        """A number as a config has it: whole ones downwards, others with three digits; never beyond the ends."""
        if self.whole:
            return min(int(number), int(self.high))
        return min(max(float(f"{number:.3g}"), self.low), self.high)

    def some(self) -> list[Any]:
        """Values that tell whether the config takes them all."""
        return [self.low, self.high]

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}{':log' * self.log}"


class Choice(NamedTuple):
    """One of these values."""

    values: tuple[Any, ...]

    def at(self, share: float) -> Any:
        return self.values[int(share * len(self.values))]

    def some(self) -> list[Any]:
        return list(self.values)

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.values))}]"


Space = Mapping[str, Range | Choice]


def draw(space: Space, seed: int, index: int) -> dict[str, Any]:
    """The values of one trial. A key's value depends on nothing but (seed, index, key): architectures share it."""
    return {key: kind.at(random.Random(f"{seed}/{index}/{key}").random()) for key, kind in space.items()}


def parse(text: str) -> tuple[str, Range | Choice]:
    """`KEY=LOW..HIGH`, `KEY=LOW..HIGH:log` or `KEY=[A,B]`."""
    key, _, given = (part.strip() for part in text.partition("="))
    tree = overrides([f"x={given}"])["x"] if given.startswith("[") else None
    if key and isinstance(tree, list) and tree and not any(isinstance(value, list | dict) for value in tree):
        return key, Choice(tuple(dict.fromkeys(map(_plain, tree))))
    ends, _, scale = given.partition(":")
    low, dots, high = ends.partition("..")
    if not key or not dots or scale not in ("", "log"):
        raise UserError(f"--search must be KEY=LOW..HIGH, KEY=LOW..HIGH:log or KEY=[A,B,...], but is '{text}'")
    numbers = [_number(end, text) for end in (low, high)]
    whole = all(isinstance(number, int) for number in numbers) and key.rpartition(".")[2] != WIDTH
    if numbers[0] > numbers[1]:
        raise UserError(f"--search {key}: the low end must be at most the high end, but is '{given}'")
    if (scale or key.rpartition(".")[2] == WIDTH) and numbers[0] <= 0:
        raise UserError(f"--search {key}: the low end must be above 0, but is '{given}'")
    return key, Range(numbers[0], numbers[1], bool(scale), whole)


def _plain(value: Any) -> Any:
    """A number where YAML sees a word, such as 1e-3."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _number(text: str, where: str) -> int | float:
    try:
        number = int(text) if text.strip().lstrip("+-").isdigit() else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"--search must range over numbers such as 1e-4..1e-2, but is '{where}'")
    return number


def own(texts: Sequence[str], arch: str, archs: Sequence[str]) -> list[str]:
    """What is said for all architectures, then what is said for this one, without its name."""
    named = {text: text.partition(".")[0] for text in texts}
    for text in texts:
        if named[text] in models.names() and named[text] not in archs:
            raise UserError(f"'{text}' is of an architecture that --arch does not name")
    ours = [text.partition(".")[2] for text in texts if named[text] == arch]
    return [text for text in texts if named[text] not in archs] + ours


def space_of(given: Sequence[str], base: Tree, match: bool) -> Space:
    """The space of an architecture: the default one and what is given over it; `UserError` with every mistake in it.

    With `match` the widths follow from the number of parameters. Widths that are named keep the default's out.
    """
    chosen = dict(map(parse, given))
    widths = [key for key in chosen if key == WIDTH or key.removeprefix("model.") in WIDTHS]
    if match and widths:
        raise UserError(f"--match-params decides the widths, so --search can't range over '{widths[0]}'")
    if WIDTH in widths and len(widths) > 1:
        raise UserError(f"--search ranges over '{WIDTH}' or over single widths, but was given {', '.join(widths)}")
    usual = {key: kind for key, kind in map(parse, DEFAULT) if key != WIDTH or not (match or widths)}
    space = usual | chosen
    for key in chosen:
        _allowed(key)
    problems: list[str] = []
    for key, kind in space.items():
        for value in kind.some():
            try:
                resolve(merge(base, {} if key == WIDTH else nested({key: value})))
            except UserError as error:
                problems += str(error).splitlines()
    if problems:
        raise UserError("\n".join(dict.fromkeys(problems)))
    return space


def _allowed(key: str) -> None:
    section, dot, _ = key.partition(".")
    if not dot:
        one_of("--search key without a section", key, (WIDTH,))
    elif key == "train.steps":
        raise UserError("--search can't range over 'train.steps': every trial has the same (--budget)")
    elif section in ("data", "eval"):
        raise UserError(f"--search can't range over '{key}': trials share their data and are judged alike")
    else:
        one_of("section of --search", section, SEARCHED)


def scaled(config: RunConfig, factor: float) -> Tree:
    """All the model's widths times `factor`, as multiples of 4 or of what the heads need."""
    model = config.model.model_dump()
    return {key: max(1, round(factor * model[key] / grain)) * grain for key, grain in _grains(model, 4).items()}


def _grains(model: Tree, grain: int) -> dict[str, int]:
    """The widths of a model, each with the number that it must be a multiple of: `dim` has whole, even heads."""
    heads = 2 * int(model.get("heads", 1))
    return {key: math.lcm(heads, grain) if key == "dim" else grain for key in WIDTHS if key in model}


def matched(config: RunConfig, vocabularies: tuple[int, int], wanted: int) -> Tree:
    """The model's widths, in about the ratios they have, with which it has `wanted` parameters within 5 %."""
    plain = config.model.model_copy(update={"dropout": 0.0})  # so that trials which differ in it share the answer
    return dict(_matched(config.arch, plain.model_dump_json(), vocabularies, wanted))


@cache
def _matched(arch: str, text: str, vocabularies: tuple[int, int], wanted: int) -> Tree:
    kind = models.find(arch)
    model = kind.Config.model_validate_json(text).model_dump()
    grains = _grains(model, 1)
    found: Tree = {}

    def count(widths: Tree) -> int:
        with torch.device("meta"):
            return parameter_count(kind(kind.Config(**model | widths), *vocabularies))

    def with_factor(keys: Sequence[str], factor: float) -> Tree:
        return found | {key: max(1, round(factor * model[key] / grains[key])) * grains[key] for key in keys}

    free = [key for key in grains if key != "dim"]
    for keys in (list(grains), free) if free else (list(grains),):  # first all, then what is finer than heads
        low, high = 2.0**-10, 2.0**6
        for _ in range(24):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if count(with_factor(keys, middle)) <= wanted else (low, middle)
        near = (with_factor(keys, factor) for factor in (low, high))
        found = min(near, key=lambda widths: abs(count(widths) - wanted))
    if abs(count(found) - wanted) > NEAR * wanted:
        near_by = f"the nearest has {count(found):,}"
        raise UserError(f"--match-params {wanted}: no width of this {arch} is within 5 % of it; {near_by}")
    return found
