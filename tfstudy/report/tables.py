"""Tables of studies: a line for each condition."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfstudy.analysis.comparisons import compare_conditions, group_letters
from tfstudy.analysis.conditions import Condition, conditions, main_metrics, sort_key
from tfstudy.analysis.frame import Study, read_finished_runs
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.report.markup import plural
from tfstudy.report.table_columns import Table, build_line, quoted_figures, shown_columns
from tfstudy.report.table_notes import table_notes

MAX_LABEL = 300  # characters of a label in a message: it must be possible to copy it
ORDER_KEYS = ("task", "split", "arch", "preset")  # what `--by` may name besides a tag


def table(
    study: Path, by: str = "", metric: str = "", baseline: str = "", columns: str = "", seeds: bool = False
) -> Table:
    """Return the table of a study, or of all studies under a folder.

    `by` sets the order, such as `split,arch`; a tag such as `length` in it makes a line for each of its values.
    `baseline`, with which the others are compared, is an architecture or a label (`lstm train.steps=600`).
    `columns` are the keys of the columns to show, separated by commas; `seeds` adds the result of each seed.
    `UserError` if there is no finished run, for unknown names, or if several conditions are called `baseline`.
    """
    finished = read_finished_runs(study)
    keys, shown = _names(by, "--by"), _names(columns, "--columns")
    tags = [key for key in keys if key not in ORDER_KEYS]
    if tags:
        # of test examples, from one run of each experiment
        results = {run.result.experiment: run.result for run in finished.runs[::-1]}.values()
        scores = [one for result in results for one in result.splits.values() if one.role == "test"]
        known = sorted({tag for one in scores for tag in one.slices})
        for tag in tags:
            one_of("tag or split", tag, (*ORDER_KEYS, *known))
    if len(tags) > 1:
        raise UserError(f"--by takes at most one tag, got {' and '.join(tags)}")
    ordered = sort_conditions(conditions(finished.runs, "".join(tags)), keys)
    return build_table(finished, ordered, metric, baseline, shown, seeds)


def _names(text: str, option: str) -> list[str]:
    """Return the names in the text of an option; `UserError` for an empty one between commas."""
    names = [name.strip() for name in text.split(",")] if text else []
    if not all(names):
        raise UserError(f"{option} must be names separated by commas, but is {quoted(text)}")
    return list(dict.fromkeys(names))


def build_table(
    study: Study,
    conditions: Sequence[Condition],
    metric: str = "",
    baseline: str = "",
    columns: Sequence[str] = (),
    seeds: bool = False,
) -> Table:
    """Return the table of these conditions of a study."""
    metrics = main_metrics(conditions, metric)
    comparisons = compare_conditions(conditions, metrics)
    letters = group_letters(conditions, comparisons, metrics)
    baselines = baseline_conditions(conditions, baseline) if baseline else {}
    # the best group is marked only where another group is significantly worse
    lettered = list(zip(conditions, letters, strict=True))
    several_groups = {condition.comparison_key for condition, group in lettered if group and "a" not in group}
    # each condition's comparison with the baseline of its comparison key
    both = [one for comparison in comparisons for one in (comparison, comparison.swapped())]
    against = {id(one.first): one for one in both if one.second is baselines.get(one.second.comparison_key)}
    lines = [
        build_line(c, metrics[c.task], group, "a" in group and c.comparison_key in several_groups, against.get(id(c)))
        for c, group in lettered
    ]
    out = Table(lines, comparisons, baseline, [], columns, seeds)
    keys = [column.key for column in shown_columns(out)]
    notes = table_notes(study, conditions, metrics, comparisons, keys, quoted_figures(out))
    if baselines and (uncompared := sum(c.comparison_key not in baselines for c in conditions)):
        notes.append(
            f"no difference in {uncompared} of {plural(len(conditions), 'row')}: {baseline} has no run with their test "
            "examples and amount of training data"
        )
    return out._replace(notes=notes)


def baseline_conditions(conditions: Sequence[Condition], name: str) -> dict[tuple[str, ...], Condition]:
    """Return the condition with this label, or else of this architecture, by comparison key.

    `UserError` for an unknown name, or if it is that of several conditions with the same key.
    """
    one_of("baseline", name, sorted({known for c in conditions for known in (c.label, c.arch)}))
    labelled = {c.comparison_key: [c] for c in conditions if c.label == name}
    of_architecture: dict[tuple[str, ...], list[Condition]] = {}
    for condition in (c for c in conditions if c.arch == name):
        of_architecture.setdefault(condition.comparison_key, []).append(condition)
    found = of_architecture | labelled
    labels = list(dict.fromkeys(c.label for members in found.values() if len(members) > 1 for c in members))
    if labels:
        listed = ", ".join(quoted(label, MAX_LABEL) for label in labels)
        raise UserError(f"--baseline {name} names {len(labels)} conditions: {listed}; name one of them")
    return {key: member for key, [member] in found.items()}


def sort_conditions(conditions: Sequence[Condition], keys: Sequence[str]) -> list[Condition]:
    """Return the conditions, ordered by these keys first."""

    def key(c: Condition) -> tuple[Any, ...]:
        usual = sort_key(c)
        own = {"task": usual[:1], "split": usual[1:5], "arch": (c.arch,), "preset": (c.preset, c.settings)}
        return tuple(own.get(name, usual[5:6]) for name in keys)

    return sorted(conditions, key=key) if keys else list(conditions)
