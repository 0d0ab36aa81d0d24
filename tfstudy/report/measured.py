"""What instruments measured, by condition: means over the rows of a run and then over seeds."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from tfstudy.analysis.collection import RunRecord
from tfstudy.analysis.conditions import Condition, conditions
from tfstudy.analysis.intervals import Interval, interval
from tfstudy.errors import UserError
from tfstudy.report.markup import plural
from tfstudy.runs.measurement_record import Cell, Chart, Measurement, read_measurement, saved_instruments
from tfstudy.runs.metrics import metric_name

MAX_NAMED = 3  # runs that a note names
Key = tuple[Cell, Cell, Cell]  # facet, series (the hue, or the y of a heatmap) and x


class Measured(NamedTuple):
    """What one instrument measured on the runs of a condition, with the same settings."""

    label: str  # of the condition; unique
    arch: str
    records: Sequence[Measurement]  # of each run

    @property
    def chart(self) -> Chart:
        """How it is drawn."""
        return self.records[0].chart


def by_condition(pairs: Iterable[tuple[RunRecord, Measurement]]) -> list[Measured]:
    """Return the measurements of one instrument with the same settings by condition, in the order of a table."""
    records = {run.result.run: (run, record) for run, record in pairs}
    unique = {c.experiment: c for c in conditions(run for run, _ in records.values())}
    several = len({(c.task, c.split_label) for c in unique.values()}) > 1
    return [
        Measured(_label(condition, several), condition.arch, [records[run.result.run][1] for run in condition.runs])
        for condition in unique.values()
        if condition.runs
    ]


def _label(condition: Condition, several: bool) -> str:
    return f"{condition.task} {condition.split}: {condition.label}" if several else condition.label


def saved_measurements(runs: Iterable[RunRecord]) -> tuple[dict[str, list[Measured]], list[str]]:
    """Return the saved measurements of these runs by instrument, and notes on those that are left out.

    Of each instrument those with the settings that most runs have are compared.
    """
    found: dict[str, dict[str, list[tuple[RunRecord, Measurement]]]] = {}
    notes: list[str] = []
    for run in (run for run in runs if run.finished):
        for name in saved_instruments(run.path):
            try:
                record = read_measurement(run.path, name)
            except UserError as error:
                notes.append(f"Not shown: {error}.")
                continue
            found.setdefault(name, {}).setdefault(f"{record.digest} {record.chart}", []).append((run, record))
    measured: dict[str, list[Measured]] = {}
    for name, groups in sorted(found.items()):
        most = max(groups.values(), key=len)
        notes += [_other_settings(name, group) for group in groups.values() if group is not most]
        measured[name] = by_condition(most)
    return measured, notes


def _other_settings(name: str, group: Sequence[tuple[RunRecord, Measurement]]) -> str:
    """Return the note on measurements that are left out: how many, of which runs, and with which settings."""
    runs = ["/".join(run.path.parts[-2:]) for run, _ in group]
    named = ", ".join(runs[:MAX_NAMED]) + (f" and {len(runs) - MAX_NAMED} more" if len(runs) > MAX_NAMED else "")
    settings = f" ({shown})" if (shown := group[0][1].shown_settings) else ""
    return f"Not shown: {plural(len(group), 'measurement')} of {name} with other settings: {named}{settings}."


def intervals(measured: Measured) -> dict[Key, Interval]:
    """Return the mean over runs, and its interval, at each facet, series and x that has a number."""
    values: dict[Key, list[float]] = {}
    for record in measured.records:
        for key, value in _means(record, ranked=len(measured.records) > 1).items():
            values.setdefault(key, []).append(value)
    return {key: interval(own) for key, own in values.items()}


def _means(record: Measurement, ranked: bool) -> dict[Key, float]:
    """Return the mean of all rows of a run with the same facet, series and x; with ranks for the ranked column."""
    chart, empty = record.chart, [""] * len(record.columns[record.chart.x])
    names = (chart.facet, series_of(chart), chart.x, chart.ranked)
    keys = zip(*(record.columns[name] if name else empty for name in names), strict=True)
    groups: dict[tuple[Key, Cell], list[float]] = {}
    for (facet, series, x, one), value in zip(keys, record.columns[chart.value], strict=True):
        groups.setdefault(((facet, series, "" if chart.x == chart.ranked else x), one), []).append(float(value))
    means = {key: fmean(values) for key, values in groups.items()}
    if chart.ranked and ranked:
        means = _with_ranks(means)
    return {_divided(key, one, chart): value for (key, one), value in means.items()}


def _with_ranks(means: Mapping[tuple[Key, Cell], float]) -> dict[tuple[Key, Cell], float]:
    """Replace what is ranked by 1 for the largest of the numbers with the same key, 2 for the next, and so on."""
    own: dict[Key, list[float]] = {}
    for (key, _), value in means.items():
        own.setdefault(key, []).append(value)
    ordered = {key: sorted(values, reverse=True) for key, values in own.items()}
    return {(key, rank): value for key, values in ordered.items() for rank, value in enumerate(values, 1)}


def _divided(key: Key, one: Cell, chart: Chart) -> Key:
    """Return a key with the value of the ranked column: as x, or behind the series."""
    facet, series, x = key
    if not chart.ranked:
        return key
    return (facet, series, one) if chart.x == chart.ranked else (facet, f"{series}.{one}", x)


def rank_note(all_measured: Sequence[Measured]) -> str:
    """Return what to say of ranks, if there are any: `head 1 has the largest number in its run`."""
    ranked = all_measured[0].chart.ranked
    several = any(len(one.records) > 1 for one in all_measured)
    return f"{ranked} 1 has the largest number in its run" if ranked and several else ""


def value_label(all_measured: Sequence[Measured]) -> str:
    """Return what is measured, and what each number is a mean over: `entropy / log T, mean over heads`."""
    chart = all_measured[0].chart
    label = chart.hue_label if chart.kind == "heatmap" else chart.y_label
    names = dict.fromkeys(name for one in all_measured for record in one.records for name in averaged_columns(record))
    averaged = [f"mean over {' and '.join(f'{words(name)}s' for name in names)}"] if names else []
    return ", ".join([label or words(chart.value), *averaged])


def averaged_columns(record: Measurement) -> list[str]:
    """Return the columns of texts and integers whose different values are averaged in one number of the chart."""
    own = [record.columns[name] for name in record.chart.columns if name != record.chart.value]
    keys = list(zip(*own, strict=True))
    others = {
        name: cells
        for name, cells in record.columns.items()
        if name not in record.chart.columns and not any(isinstance(cell, float) for cell in cells)
    }
    return [name for name, cells in others.items() if len(set(zip(keys, cells, strict=True))) > len(set(keys))]


def notes_of(all_measured: Sequence[Measured]) -> list[str]:
    """Return what the measurements lack and why, with the condition if there are several."""
    found = dict.fromkeys((one.label, record.note) for one in all_measured for record in one.records if record.note)
    return [f"{label}: {note}" if len(all_measured) > 1 else note for label, note in found]


def words(name: str) -> str:
    """Return the name of a column, a metric or an instrument as words."""
    return metric_name(name)


def series_of(chart: Chart) -> str:
    """Return the column of series: the rows of a heat map, or what has colours."""
    return chart.y if chart.kind == "heatmap" else chart.hue


def in_order(values: Iterable[Cell]) -> list[Cell]:
    """Return the different values: numbers by size, then texts in the order of their first appearance."""
    unique = list(dict.fromkeys(values))
    numbers: list[Cell] = sorted(value for value in unique if not isinstance(value, str))
    return [*numbers, *(value for value in unique if isinstance(value, str))]
