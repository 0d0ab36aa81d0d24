"""Whether architectures are compared on equal terms: their sizes, steps, batches, tuning and amounts of data.

A setting that varies within each architecture in the same way is what an experiment is about. One that has other values
for one architecture than for another is not, and its readers are told before training.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tfstudy.config.presets import REFERENCE, preset, starting_point
from tfstudy.config.resolve import RETIRED
from tfstudy.config.trees import flatten, short_key
from tfstudy.errors import UserError, some

TOLERANCE = 0.05  # relative difference of parameters up to which sizes count as equal
MAX_LISTED = 3  # differences in a line
_some = partial(some, most=MAX_LISTED)
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
            return bool(flatten(starting_point(task, self.arch)).get("train.learning_rate") != rate)
        except UserError:  # a preset that is gone
            return True


def unequal_terms(contenders: Sequence[Contender]) -> list[str]:
    """Return at most two lines on differences between architectures: in parameters, and in training and data."""
    places: dict[str, list[Contender]] = {}
    for one in contenders:
        places.setdefault(one.place, []).append(one)
    lines = []
    for what, differences in (("parameters by more than 5 %", _sizes), ("training", _terms)):
        found: dict[str, list[str]] = {}  # by the difference, the places that have it
        for place, members in places.items():
            for difference in differences(members) if len({one.arch for one in members}) > 1 else ():
                found.setdefault(difference, []).append(place)
        texts = [text if len(own) == len(places) else f"{text}, on {_some(own)}" for text, own in found.items()]
        if texts:
            lines.append(f"architectures differ in {what}: {_some(texts, separator='; ')}")
    return lines


def _sizes(members: Sequence[Contender]) -> list[str]:
    """Return the two sizes that are furthest apart, of those that another architecture has not within 5 %."""
    ends: list[Contender] = []
    for one in (one for one in members if one.parameters):
        others = [other for other in members if other.arch != one.arch and other.parameters]
        bounds = one.parameters / (1 + TOLERANCE), one.parameters * (1 + TOLERANCE)
        near = {other.arch for other in others if bounds[0] <= other.parameters <= bounds[1]}
        if far := [other for other in others if other.arch not in near]:
            ends += [one, min(far, key=lambda other: abs(other.parameters - one.parameters))]
    if not ends:
        return []
    small, large = min(ends, key=lambda one: one.parameters), max(ends, key=lambda one: one.parameters)
    excess = 100 * (large.parameters / small.parameters - 1)
    return [f"{large.arch} {large.parameters:,}, {small.arch} {small.parameters:,} (+{excess:.0f} %)"]


def _terms(members: Sequence[Contender]) -> list[str]:
    """Return each setting of training or data whose values depend on the architecture, and who has no own rate.

    A key that only older configs have was at its default in the others.
    """
    keys = [*BUDGET, *dict.fromkeys(key for one in members for key in one.config if key.startswith("data."))]
    found = []
    for key in keys:
        values: dict[str, set[str]] = {}  # by architecture
        for one in members:
            values.setdefault(one.arch, set()).add(f"{one.config.get(key, RETIRED.get(key, (None,))[0])}")
        texts = {arch: "/".join(sorted(own)) for arch, own in values.items()}
        if len(different := dict.fromkeys(texts.values())) > 1:
            parts = [f"{text} ({_some([arch for arch in texts if texts[arch] == text])})" for text in different]
            found.append(f"{short_key(key)} {', '.join(parts)}")
    own, borrowed = (dict.fromkeys(one.arch for one in members if one.tuned == tuned) for tuned in (True, False))
    rates = f"learning rate its own ({_some([*own])}), that of {REFERENCE} ({_some([*borrowed])})"
    return [*found, *([rates] if own and borrowed else [])]
