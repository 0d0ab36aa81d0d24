"""The search space: keys of the config, each with a range or a list of values.

train.learning_rate=1e-4..1e-2:log     numbers, uniform on a log scale
model.layers=1..4                      whole numbers, both ends included
model.norm=[pre, post]                 one of these values
width=0.5..2:log                       a factor for all widths of the model
cnn.model.kernel=[3, 5]                for one architecture only
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfstudy import models
from tfstudy.config.resolve import overrides, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, merge, unflatten
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.experiment.parameter_matching import width_divisors

WIDTH = "width"
DEFAULT = ("train.learning_rate=1e-4..1e-2:log", "model.dropout=0.0..0.4", "width=0.5..2:log")
SMALLEST = 1e-30  # lower end on a log scale
SEARCHED = ("model", "train", "decode")  # the other sections define the task and its evaluation


class Range(NamedTuple):
    """Numbers from `low` to `high`, both included."""

    low: float
    high: float
    log: bool
    whole: bool

    def at(self, share: float) -> float:
        """Return the number at this share, in [0, 1), of the range: a whole number, or one of three digits."""
        low, high = self.low, self.high + self.whole
        number = low * (high / low) ** share if self.log else low + share * (high - low)
        if self.whole:
            return min(int(number), int(self.high))
        return min(max(float(f"{number:.3g}"), self.low), self.high)

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}{':log' * self.log}"


class Choice(NamedTuple):
    """One of these values."""

    values: tuple[Any, ...]

    def at(self, share: float) -> Any:
        """Return the value at this share, in [0, 1), of the list."""
        return self.values[int(share * len(self.values))]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.values))}]"


Space = Mapping[str, Range | Choice]


def draw(space: Space, seed: int, index: int) -> dict[str, Any]:
    """Return the values of one trial. They depend only on (seed, index, key), so that architectures share them."""
    return {key: kind.at(random.Random(f"{seed}/{index}/{key}").random()) for key, kind in space.items()}


def parse(text: str) -> tuple[str, Range | Choice]:
    """Return the key and values of `KEY=LOW..HIGH`, `KEY=LOW..HIGH:log` or `KEY=[A,B]`."""
    key, _, value = (part.strip() for part in text.partition("="))
    ends, _, scale = value.partition(":")
    listed = value if value.startswith("[") else f"[{ends.replace('..', ', ')}]"
    items = overrides([f"x={listed}"])["x"]
    numbers = items if isinstance(items, list) else []
    if value.startswith("[") and key and numbers and not any(isinstance(item, list | dict) for item in numbers):
        return key, Choice(tuple(dict.fromkeys(numbers)))
    ranged = ".." in ends and len(numbers) == 2 and all(isinstance(number, int | float) for number in numbers)
    if not key or not ranged or scale not in ("", "log"):
        raise UserError(f"--search must be KEY=LOW..HIGH, KEY=LOW..HIGH:log or KEY=[A,B,...], but is {quoted(text)}")
    low, high = numbers
    is_width = key.rpartition(".")[2] == WIDTH
    if not low <= high:
        raise UserError(f"--search {key}: the lower end must not exceed the upper end, but is {quoted(value)}")
    if (scale or is_width) and low < SMALLEST:
        raise UserError(f"--search {key}: the lower end must be at least {SMALLEST:.0e}, but is {quoted(value)}")
    return key, Range(low, high, bool(scale), isinstance(low, int) and isinstance(high, int) and not is_width)


def for_architecture(texts: Sequence[str], arch: str, archs: Sequence[str]) -> list[str]:
    """Return the texts for all architectures, then those for this one without the name of the architecture."""
    prefixes = {text: text.partition(".")[0] for text in texts}
    for text, prefix in prefixes.items():
        if prefix in models.names() and prefix not in archs:
            raise UserError(f"{quoted(text)} is for an architecture that is not in --arch {','.join(archs)}")
    own = [text.partition(".")[2] for text in texts if prefixes[text] == arch]
    return [text for text in texts if prefixes[text] not in archs] + own


def parse_space(texts: Sequence[str], base: Tree, match: bool) -> Space:
    """Return the space of an architecture; `UserError` with all errors in it. With `match`, it may not have widths."""
    space = dict(map(parse, texts))
    if not space:
        raise UserError("every --search is for another architecture")
    widths = [key for key in space if key == WIDTH or key.removeprefix("model.") in models.find(base["arch"]).widths]
    if match and widths:
        raise UserError(f"--match-params determines the widths, so --search can't include '{widths[0]}'")
    if WIDTH in widths and len(widths) > 1:
        raise UserError(f"--search takes either '{WIDTH}' or single widths, but was given {', '.join(widths)}")
    problems: dict[str, None] = {}
    for key, kind in space.items():
        section, dot, _ = key.partition(".")
        if not dot:
            one_of("--search key without a section", key, (WIDTH,))
        elif key == "train.steps":
            raise UserError("--search can't include 'train.steps': all trials have the same number of steps (--budget)")
        elif section in ("data", "eval"):
            raise UserError(f"--search can't include '{key}': all trials share their data and evaluation")
        else:
            one_of("section of --search", section, SEARCHED)
        for value in kind.values if isinstance(kind, Choice) else (kind.low, kind.high):
            try:
                resolve(merge(base, {} if key == WIDTH else unflatten({key: value})))
            except UserError as error:
                problems |= dict.fromkeys(str(error).splitlines())
    if problems:
        raise UserError("\n".join(problems))
    return space


def scaled(config: RunConfig, factor: float) -> Tree:
    """Return the widths of the model times `factor`, as multiples of 4 or of what the attention heads require."""
    model = config.model.model_dump()
    divisors = width_divisors(config, 4)
    return {key: max(1, round(factor * model[key] / divisor)) * divisor for key, divisor in divisors.items()}
