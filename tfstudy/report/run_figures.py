"""The published figures for the split scheme of a run, and how their settings differ from the run's."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from tfstudy.analysis.collection import RunRecord, experiment_settings
from tfstudy.analysis.conditions import Condition, conditions
from tfstudy.analysis.counterparts import has_settings, unlike
from tfstudy.analysis.published import Figure, best_known, published
from tfstudy.report.terminal import plain_table
from tfstudy.runs.metrics import metric_name
from tfstudy.runs.schema import Result


def published_parts(result: Result, path: Path | None = None) -> list[Table | Text | str]:
    """Return a table of published figures, the run's own architecture last; nothing without figures.

    The table names the preset that has the settings of a figure. With the folder of the run, a line for
    each paper on its architecture says how the settings differ.
    """
    figures = published_figures(result)
    if not figures:
        return []
    records = [RunRecord(path, result)] if path else []
    known = conditions(records) if experiment_settings(records) else []  # a config may be unreadable
    own = [figure for figure in figures if figure.family == result.arch]
    notes = dict.fromkeys(_difference(figure, known) for figure in own)
    return [_table(result, figures), *(Text(note, style="dim") for note in notes if note), ""]


def published_figures(result: Result) -> list[Figure]:
    """Return, of each paper, metric and kind of network, the figure under its own settings, or else the highest.

    The figures of the result's own architecture come last.
    """
    groups: dict[tuple[str, str], list[Figure]] = {}
    for figure in published(result.task, result.split):
        if figure.test in result.splits and figure.method == "plain":
            groups.setdefault((figure.metric, figure.family), []).append(figure)
    chosen = [figure for members in groups.values() for figure in best_known(members)]
    return sorted(chosen, key=lambda figure: figure.family == result.arch)


def _table(result: Result, figures: Sequence[Figure]) -> Table:
    table = plain_table(f"published for {result.task} {result.split} (percent)")
    for name in ("network", "metric", "published", "paper", "preset"):
        table.add_column(name, justify="right" if name == "published" else "left")
    for one in figures:
        metric = metric_name(one.metric).removeprefix("exact match, ")
        style = "bold" if one.family == result.arch else ""
        table.add_row(one.arch, metric, one.text, one.citation, one.preset, style=style)
    return table


def _difference(figure: Figure, known: Sequence[Condition]) -> str:
    own = [condition for condition in known if condition.test_set == figure.test]
    if not own:
        return ""
    return f"{figure.citation}: {'the same settings' if has_settings(figure, own[0]) else unlike(figure, own[0])}"
