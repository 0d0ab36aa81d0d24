"""Accuracy by length: exact match at each length, the thresholds L90 and L50, and means over lengths."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

from tfstudy.runs.schema import AtLength, Lengths, SplitScores
from tfstudy.tasks.scoring import mean

MIN_EXAMPLES = 10  # of a length, for it to count for L90 and L50


def mean_over_lengths(slices: Mapping[str, Any]) -> dict[str, Any]:
    """Return `mean_over_lengths`: the mean of each metric over the values of the tag `length`, equally weighted.

    A metric that a task leaves out at some length, for lack of cases, has no mean.
    """
    parts = [part["metrics"] for part in slices.get("length", {}).values()]
    everywhere = [name for name in (parts[0] if parts else ()) if all(name in part for part in parts)]
    means = {name: mean(part[name] for part in parts) for name in everywhere}
    return {"mean_over_lengths": means} if means else {}


def accuracy_by_length(splits: Iterable[SplitScores]) -> Lengths:
    """Return exact match at every length of these splits, the length thresholds, and the longest length tested.

    L90 is the longest length up to which exact match is at least 90 % at every length; None if it is not even at the
    shortest. Lengths with fewer than `MIN_EXAMPLES` examples do not count, unless all lengths have fewer.
    """
    right: Counter[int] = Counter()
    seen: Counter[int] = Counter()
    for scores in splits:
        for value, part in scores.slices.get("length", {}).items():
            if "exact_match" in part.metrics:
                seen[int(value)] += part.n
                right[int(value)] += round(part.metrics["exact_match"] * part.n)
    counted = [length for length in sorted(seen) if seen[length] >= min(MIN_EXAMPLES, max(seen.values()))]
    if not counted:
        return Lengths()

    def threshold(share: float) -> int | None:
        passed = list(takewhile(lambda length: right[length] >= share * seen[length], counted))
        return passed[-1] if passed else None

    curve = {str(length): AtLength(n=seen[length], exact_match=right[length] / seen[length]) for length in sorted(seen)}
    return Lengths(counted[-1], threshold(0.9), threshold(0.5), curve)
