"""Accuracy by length: L90, L50 and the mean over lengths."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

from tasks.scoring import mean

ENOUGH = 10  # examples that a length must have to count for L90 and L50


def over_lengths(slices: Mapping[str, Any]) -> dict[str, Any]:
    """`mean_over_lengths`: each metric's mean over the values of the tag `length`, which all weigh alike."""
    parts = [part["metrics"] for part in slices.get("length", {}).values()]
    means = {name: mean(part[name] for part in parts) for name in (parts[0] if parts else ())}
    return {"mean_over_lengths": means} if means else {}


def lengths(summaries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """How far accuracy reaches: exact match at every length, with L90 and L50, and the longest length seen.

    L90 is the longest length up to which exact match is at least 90 % at every length; None if it is not even at the
    shortest. Lengths with fewer than `ENOUGH` examples don't count, unless no length has as many.
    """
    right: Counter[int] = Counter()
    seen: Counter[int] = Counter()
    for summary in summaries:
        for value, part in summary.get("slices", {}).get("length", {}).items():
            seen[int(value)] += part["n"]
            right[int(value)] += round(part["metrics"]["exact_match"] * part["n"])
    counted = [length for length in sorted(seen) if seen[length] >= min(ENOUGH, max(seen.values()))]
    if not counted:
        return {}

    def reach(share: float) -> int | None:
        held = list(takewhile(lambda length: right[length] >= share * seen[length], counted))
        return held[-1] if held else None

    curve = {str(length): {"n": seen[length], "exact_match": right[length] / seen[length]} for length in sorted(seen)}
    return {"L90": reach(0.9), "L50": reach(0.5), "longest": counted[-1], "exact_match": curve}
