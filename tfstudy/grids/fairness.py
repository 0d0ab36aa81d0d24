"""Whether architectures are compared on equal terms: their sizes, steps, batches, tuning and amounts of data.

A setting that varies within each architecture in the same way is what an experiment is about. One that has other values
for one architecture than for another is not, and its readers are told before training.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfstudy.config.presets import preset, starting_point
from tfstudy.config.trees import flatten, short_key
from tfstudy.errors import UserError

TOLERANCE = 0.05  # relative difference of parameters up to which sizes count as equal
MAX_LISTED = 3  # differences in a line
BUDGET = (
    "train.steps", "train.batch_size", "train.batch_tokens", "train.accumulate_grad_batches",
    "train.resampled_examples",
)  # fmt: skip


class Contender(NamedTuple):
    """A condition, before or after training."""

    place: str  # the task and split scheme, on which it is compared with others
    arch: str
    config: Mapping[str, Any]  # by dotted key
    parameters: int = 0  # 0: unknown
    preset: str = "default"

    @property
    def tuned(self) -> bool:
        """Whether its learning rate was chosen for its architecture, by a preset or by the user."""
        task, rate = str(self.config.get("task")), self.config.get("train.learning_rate")
        try:
            if rate is None or preset(task, self.arch, self.preset):
                return True  # it is not recorded, or the preset's
            expected = flatten(starting_point(task, self.arch)).get("train.learning_rate")
        except UserError:  # a preset that is gone
            return True
        return bool(expected != rate)


def unequal_terms(contenders: Sequence[Contender]) -> list[str]:
    """Return at most two lines on differences between architectures: in parameters, and in training and data."""
    places: dict[str, list[Contender]] = {}
    for one in contenders:
        places.setdefault(one.place, []).append(one)
    sizes: dict[str, dict[str, None]] = {}  # by the difference, the places that have it
    terms: dict[str, dict[str, None]] = {}
    for place, members in places.items():
        if len({one.arch for one in members}) > 1:
            if difference := _sizes(members):
                sizes.setdefault(difference, {})[place] = None
            for difference in _terms(members):
                terms.setdefault(difference, {})[place] = None
    lines = {"architectures differ in parameters by more than 5 %": sizes, "architectures differ in training": terms}
    return [f"{what}: {_listed(found, len(places))}" for what, found in lines.items() if found]


def _sizes(members: Sequence[Contender]) -> str:
    """Return the two sizes that are furthest apart, of those that another architecture has not within 5 %."""
    known = [one for one in members if one.parameters]
    unmatched = [
        (one, min(others, key=lambda other: abs(other.parameters - one.parameters)))
        for one in known
        if (others := [other for other in known if other.arch != one.arch])
        for arch in dict.fromkeys(other.arch for other in others)
        if not any(_near(one, other) for other in others if other.arch == arch)
    ]
    ends = [one for pair in unmatched for one in pair]
    if not ends:
        return ""
    small, large = min(ends, key=lambda one: one.parameters), max(ends, key=lambda one: one.parameters)
    excess = 100 * (large.parameters / small.parameters - 1)
    return f"{large.arch} {large.parameters:,}, {small.arch} {small.parameters:,} (+{excess:.0f} %)"


def _near(one: Contender, other: Contender) -> bool:
    small, large = sorted((one.parameters, other.parameters))
    return large <= (1 + TOLERANCE) * small


def _terms(members: Sequence[Contender]) -> list[str]:
    """Return each setting of training or data whose values depend on the architecture, and who is not tuned."""
    keys = [*BUDGET, *dict.fromkeys(key for one in members for key in one.config if key.startswith("data."))]
    found = []
    for key in keys:
        values: dict[str, set[str]] = {}
        for one in members:
            values.setdefault(one.arch, set()).add(f"{one.config.get(key)}")
        archs: dict[str, list[str]] = {}
        for arch, own in values.items():
            archs.setdefault("/".join(sorted(own)), []).append(arch)
        if len(archs) > 1:
            found.append(f"{short_key(key)} {', '.join(f'{text} ({_some(own)})' for text, own in archs.items())}")
    untuned = dict.fromkeys(one.arch for one in members if not one.tuned)
    return [*found, *([f"learning rate not tuned for {_some([*untuned])}"] if untuned else [])]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_LISTED]) + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")


def _listed(found: Mapping[str, Mapping[str, None]], places: int) -> str:
    """Return the first differences, each with its places unless they are all."""
    texts = [
        text if len(own) == places else f"{text}, on {_some([*own])}" for text, own in [*found.items()][:MAX_LISTED]
    ]
    return "; ".join([*texts, *([f"and {len(found) - MAX_LISTED} more"] if len(found) > MAX_LISTED else [])])
