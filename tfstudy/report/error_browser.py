"""Errors to browse in a report: the kinds of each condition's predictions, with examples, the first error marked."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tasks.errors import UserError
from tfstudy.analysis.conditions import Condition, test_set_label
from tfstudy.analysis.error_kinds import CORRECT, KINDS, count_errors, first_error
from tfstudy.runs.reader import read_predictions
from tfstudy.runs.schema import Prediction

END = "(end)"  # shown for the end of a prediction or a target
MAX_EXAMPLES = 20  # of a kind and condition
ALL_EXAMPLES = 600  # of all kinds and conditions, about
MAX_FILES = 150  # of predictions that are read
MAX_TOKENS = 120  # of a text
MAX_NAMED = 10  # conditions without predictions


class MarkedText(NamedTuple):
    """A text with one of its tokens marked."""

    before: str
    token: str
    after: str


class Example(NamedTuple):
    """A wrong prediction, marked at the first wrong token."""

    seed: int
    source: str
    target: MarkedText
    prediction: MarkedText


class Kind(NamedTuple):
    """The predictions of one kind of a condition."""

    name: str
    n: int
    share: float  # percent of all its predictions that were read
    first_error: float | None  # mean position of the first wrong token, in percent of the target; None if correct
    examples: list[Example]


class ConditionErrors(NamedTuple):
    """The kinds of a condition's predictions."""

    condition: Condition
    test_set: str  # and split scheme
    seeds: list[int]  # whose predictions were read
    n: int
    kinds: list[Kind]


class ErrorBrowser(NamedTuple):
    """The errors of a study, and what is not shown."""

    conditions: list[ConditionErrors]
    kinds: list[str]  # the wrong ones that occur
    notes: list[str]


def build_error_browser(conditions: Sequence[Condition]) -> ErrorBrowser:
    """Return the kinds of these conditions' predictions, reading at most `MAX_FILES` files.

    Examples are taken evenly from a whole test set; the more conditions, the fewer of each kind.
    """
    shown = [condition for condition in conditions if condition.runs][:MAX_FILES]
    seeds = max(1, MAX_FILES // max(1, len(shown)))
    examples = max(2, min(MAX_EXAMPLES, ALL_EXAMPLES // (4 * max(1, len(shown)))))  # about 4 kinds per condition
    browsable, unreadable = [], []
    for condition in shown:
        if read := _read(condition, seeds):
            browsable.append(_condition_errors(condition, test_set_label(condition, conditions), read, examples))
        else:
            unreadable.append(condition)
    occurring = {kind.name for condition in browsable for kind in condition.kinds}
    notes = _notes(conditions, shown, unreadable, seeds, examples)
    return ErrorBrowser(browsable, [name for name in KINDS if name in occurring and name != CORRECT], notes)


def _read(condition: Condition, seeds: int) -> dict[int, list[Prediction]]:
    """Return the predictions of the first seeds that have any."""
    out: dict[int, list[Prediction]] = {}
    for run in condition.runs[:seeds]:
        with contextlib.suppress(UserError):
            out[run.result.seed] = read_predictions(run.path, condition.test_set)
    return out


def _condition_errors(
    condition: Condition, test_set: str, read: Mapping[int, list[Prediction]], max_examples: int
) -> ConditionErrors:
    seeds = {id(prediction): seed for seed, members in read.items() for prediction in members}
    counts = count_errors((prediction for members in read.values() for prediction in members), len(seeds))
    kinds = []
    for name, n in counts.kinds.items():
        shown = _evenly(counts.examples.get(name, []), max_examples)
        examples = [_example(seeds[id(prediction)], prediction) for prediction in shown]
        first = 100 * counts.first_error[name] if name in counts.first_error else None
        kinds.append(Kind(name, n, 100 * n / counts.n, first, examples))
    return ConditionErrors(condition, test_set, list(read), counts.n, kinds)


def _evenly(predictions: Sequence[Prediction], count: int) -> Sequence[Prediction]:
    total = len(predictions)
    return [predictions[number * total // count] for number in range(count)] if total > count else predictions


def _example(seed: int, prediction: Prediction) -> Example:
    position = first_error(prediction.target.split(), prediction.prediction.split())
    texts = (marked(text, position) for text in (prediction.target, prediction.prediction))
    return Example(seed, prediction.source, *texts)


def marked(text: str, position: int | None) -> MarkedText:
    """Return the text with this token marked, or its end beyond the last one; long texts are cut around it."""
    tokens = text.split()
    at = len(tokens) if position is None else min(position, len(tokens))
    first = max(0, min(at - MAX_TOKENS // 2, len(tokens) - MAX_TOKENS))
    last = first + MAX_TOKENS
    before = " ".join(["..."] * (first > 0) + tokens[first:at])
    after = " ".join([*tokens[at + 1 : last], *["..."] * (last < len(tokens))])
    return MarkedText(before, tokens[at] if at < len(tokens) else END, after)


def _notes(
    conditions: Sequence[Condition],
    shown: Sequence[Condition],
    unreadable: Sequence[Condition],
    seeds: int,
    examples: int,
) -> list[str]:
    with_runs = sum(bool(condition.runs) for condition in conditions)
    cut = any(len(condition.runs) > seeds for condition in shown)
    which = "all seeds" if not cut else "the first seed" if seeds == 1 else f"up to {seeds} seeds"
    notes = [
        f"Up to {examples} examples of each kind are shown per condition, taken evenly from its predictions; counts "
        f"are over all predictions of {which}."
    ]
    if with_runs > len(shown):
        notes.append(f"Only the first {len(shown):,} of {with_runs:,} conditions are shown, to keep the page small.")
    if unreadable:
        names = [f"{condition.task} {condition.split_label} {condition.label}" for condition in unreadable]
        more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
        notes.append(f"Conditions without readable predictions: {', '.join(names[:MAX_NAMED])}{more}.")
    return notes
