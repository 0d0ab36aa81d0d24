"""Select what `tfstudy bench` measured: the records that a statement about a ratio compares."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfstudy.errors import UserError, one_of
from tfstudy.performance.record import VARIANTS, WORKS, Record

TIME = "tokens_per_second"
QUANTITIES = {
    TIME: "target tokens per second",
    "memory": "peak memory",
    "step_memory": "peak memory of a step",
    "flops": "FLOPs",
    "attention_flops": "FLOPs of attention",
    "feedforward_flops": "FLOPs of feed-forward layers",
}
SIZES = ("length", "width", "batch")
DEFAULTS: dict[str, Any] = {"variant": "default", "accelerator": "cpu", "quantity": TIME}
CHOICES = {"work": WORKS, "variant": VARIANTS, "accelerator": ("cpu", "cuda"), "quantity": QUANTITIES}
SETTINGS = ("model.", "train.")  # what the names of settings begin with
KEYS = ("arch", *SIZES, *CHOICES)  # of a selector, besides settings such as `model.heads`
Selector = Mapping[str, Any]


class Pair(NamedTuple):
    """Two records of one command that a statement compares."""

    of: Record
    over: Record


def check_selector(selector: Selector, where: str) -> None:
    """Raise `UserError` unless a selector, completed by `DEFAULTS`, names one measurement."""
    for key in selector:
        if not key.startswith(SETTINGS):
            one_of("key of a measurement", key, KEYS, where)
    for key in KEYS:
        if key not in selector:
            raise UserError(f"{where}: a measurement needs its {key}")
    for key in SIZES:
        if type(selector[key]) is not int or selector[key] < 1:
            raise UserError(f"{where}: '{key}' must be a whole number from 1, got '{selector[key]}'")
    for key, known in CHOICES.items():
        one_of(key, str(selector[key]), known, where)


def find_pair(of: Selector, over: Selector, records: Sequence[Record]) -> tuple[Pair | None, int]:
    """Return the records that two selectors choose, and the number of other such pairs.

    Both are of one command, with as many repeats: the one with most of them, and of these the latest.
    """
    first, second = ([one for one in records if _matches(one, selector)] for selector in (of, over))
    pairs = [Pair(a, b) for a in first for b in second if a.machine == b.machine and len(a.seconds) == len(b.seconds)]
    pairs.sort(key=lambda pair: (len(pair.of.seconds), pair.of.machine.started))
    return (pairs[-1], len(pairs) - 1) if pairs else (None, 0)


def _matches(record: Record, selector: Selector) -> bool:
    model, train = (
        {key.removeprefix(section): value for key, value in selector.items() if key.startswith(section)}
        for section in SETTINGS
    )
    return (
        all(getattr(record, key) == selector[key] for key in ("arch", "work", "variant", *SIZES))
        and record.machine.accelerator == selector["accelerator"]
        and all(record.model.get(key) == value for key, value in model.items())
        and record.train == train
        and bool(values_of(record, selector["quantity"]))
    )


def values_of(record: Record, quantity: str) -> list[float]:
    """Return the values of a quantity: one for each repeat, or a single exact one; none if it was not measured."""
    flops = record.flops
    exact = {
        "memory": record.memory,
        "step_memory": record.step_memory,
        "flops": flops and flops.total,
        "attention_flops": flops and flops.attention,
        "feedforward_flops": flops and flops.feedforward,
    }
    if quantity == TIME:
        return record.tokens_per_second
    value = exact[quantity]
    return [float(value)] if value else []
