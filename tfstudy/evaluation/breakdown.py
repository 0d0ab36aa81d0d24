"""Predictions broken down by kind of error and by length. Imports no torch.

Kinds of errors, for the target a b c d:

    a b          stops early      a b c d a    runs on              (blank)  empty
    c d a b      swapped parts    a x c d      one token replaced
    a b a b c d  repeated part    a c d        omitted part
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from tfstudy.runs.schema import AtLength, ErrorKind, Lengths, Prediction, SplitScores
from tfstudy.tasks.scoring import compared, mean

CORRECT = "correct"
KINDS = (
    CORRECT, "empty", "stops early", "runs on", "swapped parts", "repeated part", "omitted part", "one token replaced",
    "other, correct length", "other, too short", "other, too long",
)  # fmt: skip
Tokens = Sequence[str]
MIN_EXAMPLES = 10  # of a length, for it to count for L90 and L50


class ErrorCounts(NamedTuple):
    """The kinds of a run's predictions on a split."""

    n: int
    kinds: dict[str, int]  # count of each kind that occurs, in the order of KINDS
    first_error: dict[str, float]  # of each wrong kind: mean place of the first wrong token, as a share of the target
    examples: dict[str, list[Prediction]]  # the first few of each wrong kind

    def summary(self) -> dict[str, ErrorKind]:
        """Return the counts and positions of each kind, as a record has them."""
        return {kind: ErrorKind(n, self.first_error.get(kind)) for kind, n in self.kinds.items()}


def kind_of(target: Tokens, prediction: Tokens) -> str:
    """Return the first of `KINDS` that the prediction is."""
    target, prediction = list(target), list(prediction)
    if prediction == target:
        return CORRECT
    if not prediction:
        return "empty"
    if prediction == target[: len(prediction)]:
        return "stops early"
    if target == prediction[: len(target)]:
        return "runs on"
    if len(prediction) == len(target):
        return _kind_at_equal_length(target, prediction)
    if len(prediction) > len(target):
        return "repeated part" if _has_repeated_part(target, prediction) else "other, too long"
    return "omitted part" if _has_omitted_part(target, prediction) else "other, too short"


def first_error(target: Tokens, prediction: Tokens) -> int | None:
    """Return the position of the first wrong token, from 0; the end counts as a token. None if there is no error."""
    for position, (expected, predicted) in enumerate(zip([*target, None], [*prediction, None], strict=False)):
        if expected != predicted:
            return position
    return None


def count_errors(predictions: Iterable[Prediction], examples: int = 3, characters: bool = False) -> ErrorCounts:
    """Count the kinds of these predictions, of words or `characters`, with the first `examples` of each wrong kind."""
    counts: Counter[str] = Counter()
    positions: dict[str, list[float]] = {}
    wrong: dict[str, list[Prediction]] = {}
    for example in predictions:
        target, prediction = compared(example.target, example.prediction, characters)
        kind, position = kind_of(target, prediction), first_error(target, prediction)
        counts[kind] += 1
        if position is not None:
            positions.setdefault(kind, []).append(position / max(1, len(target)))
            if len(wrong.setdefault(kind, [])) < examples:
                wrong[kind].append(example)
    kinds = {kind: counts[kind] for kind in KINDS if counts[kind]}
    means = {kind: sum(positions[kind]) / len(positions[kind]) for kind in kinds if kind in positions}
    return ErrorCounts(counts.total(), kinds, means, wrong)


def summarize_errors(predictions: Iterable[Prediction], characters: bool = False) -> dict[str, ErrorKind]:
    """Return the kinds of these predictions, as a record has them."""
    return count_errors(predictions, 0, characters).summary()


def _kind_at_equal_length(target: list[str], prediction: list[str]) -> str:
    if any(prediction == target[cut:] + target[:cut] for cut in range(1, len(target))):
        return "swapped parts"
    predicted: dict[str, set[str]] = {}
    for expected, actual in zip(target, prediction, strict=True):
        predicted.setdefault(expected, set()).add(actual)
    replaced = [tokens for token, tokens in predicted.items() if tokens != {token}]
    consistent = all(len(tokens) == 1 for tokens in predicted.values())
    return "one token replaced" if consistent and len(replaced) == 1 else "other, correct length"


def _has_repeated_part(target: list[str], prediction: list[str]) -> bool:
    """Return whether the prediction is the target with one part repeated, once or more, directly after it."""
    extra = len(prediction) - len(target)
    begin = first_error(target, prediction) or 0
    for width in (w for w in range(1, min(extra, len(target)) + 1) if extra % w == 0):
        for start in range(max(0, begin - width), min(begin, len(target) - width) + 1):
            part = target[start : start + width]
            if target[: start + width] + part * (extra // width) + target[start + width :] == prediction:
                return True
    return False


def _has_omitted_part(target: list[str], prediction: list[str]) -> bool:
    """Return whether the prediction is the target without one contiguous part."""
    omitted, begin = len(target) - len(prediction), first_error(target, prediction) or 0
    return any(target[:cut] + target[cut + omitted :] == prediction for cut in range(begin + 1))


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
