"""Errors to browse in a report: the kinds of each condition's predictions, with examples beside their targets."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from tfstudy.analysis.conditions import Condition, test_set_label
from tfstudy.errors import UserError
from tfstudy.evaluation.error_kinds import CORRECT, KINDS, add_errors, count_errors, first_error
from tfstudy.runs.reader import read_predictions
from tfstudy.runs.schema import ErrorKind, Prediction
from tfstudy.tasks.scoring import compared

T = TypeVar("T")

END = "(end)"  # shown for the end of a prediction or a target
MAX_EXAMPLES = 5  # of a kind and condition
ALL_EXAMPLES = 150  # of all kinds and conditions, about
MAX_FILES = 150  # of predictions that are read
EXAMPLE_SEEDS = 5  # of a condition, from which examples are taken
MAX_TOKENS = 120  # of a source
BEFORE, AFTER = 2, 6  # tokens shown of target and prediction around the first difference
MAX_NAMED = 10  # conditions without predictions


class Example(NamedTuple):
    """A wrong prediction and its target, token by token around their first difference."""

    seed: int
    source: str
    before: int  # equal tokens before those shown
    target: list[str]  # as many as of the prediction; empty texts where one of the two has ended
    prediction: list[str]
    at: int  # the first difference, in these lists
    target_rest: int  # tokens after those shown
    prediction_rest: int


class Kind(NamedTuple):
    """The predictions of one kind of a condition."""

    name: str
    n: int
    share: float  # percent of all predictions
    first_error: float | None  # mean position of the first wrong token, in percent of the target; None if correct
    examples: list[Example]


class ConditionErrors(NamedTuple):
    """The kinds of a condition's predictions."""

    condition: Condition
    test_set: str  # and split scheme
    seeds: list[int]  # whose predictions are counted
    n: int
    kinds: list[Kind]


@dataclass
class _Read:
    """What is known of a condition's predictions."""

    summaries: dict[int, Mapping[str, ErrorKind]]  # of each seed
    examples: dict[str, list[Example]]  # of each wrong kind
    files: int  # that were read


class ErrorBrowser(NamedTuple):
    """The errors of a study, and what is not shown."""

    conditions: list[ConditionErrors]
    kinds: list[str]  # the wrong ones that occur
    notes: list[str]


def build_error_browser(conditions: Sequence[Condition]) -> ErrorBrowser:
    """Return the kinds of these conditions' predictions, with examples.

    Counts are from the records. Predictions are only read for examples, and to count those of records of older code:
    at most `MAX_FILES` files. Examples are taken evenly from a whole test set; the more conditions, the fewer of each.
    """
    shown = [condition for condition in conditions if condition.runs][:MAX_FILES]
    seeds = max(1, MAX_FILES // max(1, len(shown)))
    examples = max(2, min(MAX_EXAMPLES, ALL_EXAMPLES // (4 * max(1, len(shown)))))  # about 4 kinds per condition
    browsable, unreadable = [], []
    for condition in shown:
        read = _read(condition, seeds, examples)
        if read.summaries:
            browsable.append(_condition_errors(condition, test_set_label(condition, conditions), read, examples))
        if not read.files:
            unreadable.append(condition)
    occurring = {kind.name for condition in browsable for kind in condition.kinds}
    notes = _notes(conditions, shown, unreadable, _counted(browsable, seeds), examples)
    return ErrorBrowser(browsable, [name for name in KINDS if name in occurring and name != CORRECT], notes)


def _read(condition: Condition, max_files: int, max_examples: int) -> _Read:
    """Return the kinds of each seed, and examples from the first seeds; at most `max_files` files are read."""
    read = _Read({}, {}, 0)
    for number, run in enumerate(condition.runs):
        scores = run.result.splits.get(condition.test_set)
        summary = scores.errors if scores else {}
        if number < (EXAMPLE_SEEDS if summary else max_files) and read.files < max_files:
            with contextlib.suppress(UserError):
                predictions = read_predictions(run.path, condition.test_set)
                read.files += 1
                counts = count_errors(predictions, len(predictions))
                summary = summary or counts.summary()
                for kind, wrong in counts.examples.items() if read.files <= EXAMPLE_SEEDS else ():
                    chosen = _evenly(wrong, max_examples)
                    read.examples.setdefault(kind, []).extend(_example(run.result.seed, one) for one in chosen)
        if summary:
            read.summaries[run.result.seed] = summary
    return read


def _condition_errors(condition: Condition, test_set: str, read: _Read, max_examples: int) -> ConditionErrors:
    total = add_errors(list(read.summaries.values()))
    n = sum(kind.n for kind in total.values())
    kinds = []
    for name, kind in total.items():
        first = None if kind.first_error is None else 100 * kind.first_error
        examples = _evenly(read.examples.get(name, []), max_examples)
        kinds.append(Kind(name, kind.n, 100 * kind.n / n, first, list(examples)))
    return ConditionErrors(condition, test_set, list(read.summaries), n, kinds)


def _counted(browsable: Sequence[ConditionErrors], seeds: int) -> str:
    """Return which seeds' predictions are counted, in words."""
    if all(len(one.seeds) == len(one.condition.runs) for one in browsable):
        return "all seeds"
    return "the first seed" if seeds == 1 else f"up to {seeds} seeds"


def _evenly(items: Sequence[T], count: int) -> Sequence[T]:
    total = len(items)
    return [items[number * total // count] for number in range(count)] if total > count else items


def _example(seed: int, prediction: Prediction) -> Example:
    source = prediction.source.split()
    shown = " ".join([*source[:MAX_TOKENS], *["..."] * (len(source) > MAX_TOKENS)])
    return align(seed, shown, *compared(prediction.target, prediction.prediction))


def align(seed: int, source: str, target: Sequence[str], prediction: Sequence[str]) -> Example:
    """Return the tokens of both around the first position where they differ; the shorter one has its end there."""
    at = first_error(target, prediction)
    at = min(len(target), len(prediction)) if at is None else at
    first, last = max(0, at - BEFORE), min(at + AFTER + 1, max(len(target), len(prediction)) + 1)
    shown = [[*tokens, END][first:last] for tokens in (target, prediction)]
    expected, predicted = ([*tokens, *[""] * (last - first - len(tokens))] for tokens in shown)
    rest, predicted_rest = (max(0, len(tokens) - last) for tokens in (target, prediction))
    return Example(seed, source, first, expected, predicted, at - first, rest, predicted_rest)


def _notes(
    conditions: Sequence[Condition],
    shown: Sequence[Condition],
    unreadable: Sequence[Condition],
    counted: str,
    examples: int,
) -> list[str]:
    with_runs = sum(bool(condition.runs) for condition in conditions)
    notes = [
        f"Up to {examples} examples of each kind are shown per condition, taken evenly from its predictions; counts "
        f"are over all predictions of {counted}."
    ]
    if with_runs > len(shown):
        notes.append(f"Only the first {len(shown):,} of {with_runs:,} conditions are shown, to keep the page small.")
    if unreadable:
        names = [f"{condition.task} {condition.split_label} {condition.label}" for condition in unreadable]
        more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
        notes.append(f"Conditions without readable predictions: {', '.join(names[:MAX_NAMED])}{more}.")
    return notes
