"""What instruments measured, by condition: means over the rows of a run and then over seeds; also as a text table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from textwrap import wrap
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from tfstudy.analysis.collection import RunRecord
from tfstudy.analysis.conditions import Condition, conditions
from tfstudy.analysis.intervals import Interval, interval
from tfstudy.report.markup import plural
from tfstudy.report.terminal import Terminal, plain_table
from tfstudy.runs.measurement_record import Cell, Chart, Measurement, read_measurement, saved_instruments
from tfstudy.tasks.errors import UserError

MAX_SHOWN = 6  # values of x in a text table, if they are numbers
MAX_NAMES = 20  # if they are names
MAX_NAMED = 3  # runs that a note names
WIDEST = 1000  # characters
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


def series_of(chart: Chart) -> str:
    """Return the column of series: the rows of a heat map, or what has colours."""
    return chart.y if chart.kind == "heatmap" else chart.hue


def in_order(values: Iterable[Cell]) -> list[Cell]:
    """Return the different values: numbers by size, then texts in the order of their first appearance."""
    unique = list(dict.fromkeys(values))
    numbers: list[Cell] = sorted(value for value in unique if not isinstance(value, str))
    return [*numbers, *(value for value in unique if isinstance(value, str))]


def show(all_measured: Sequence[Measured]) -> None:
    """Print the table of means, with the measured number and the settings above it."""
    console, first = Terminal(soft_wrap=True), all_measured[0].records[0]
    label = first.chart.hue_label if first.chart.kind == "heatmap" else first.chart.y_label
    name = f"{all_measured[0].label}, " if len(all_measured) == 1 else ""
    title = f"{name}{first.instrument}: {label or first.chart.value}"
    title = ", ".join(filter(None, [title, first.shown_settings]))
    values = {x for one in all_measured for record in one.records for x in record.columns[first.chart.x]}
    names = any(isinstance(value, str) for value in values)
    for count in range(min(MAX_NAMES, len(values)) if names else MAX_SHOWN, 0, -1):  # values of x, as many as fit
        lines = _lines_of(text_table(all_measured, count))
        if max(map(len, lines)) <= console.width or count <= 2:
            break
    more = f"{count} of {len(values)} values of {first.chart.x} are shown; --format json has all"
    notes = [*([more] if names and count < len(values) else []), *filter(None, [rank_note(all_measured)])]
    for line in [*wrap(title, console.width, subsequent_indent="  "), *lines, *notes]:
        console.print(line, markup=False, highlight=False)


def _lines_of(table: Table) -> list[str]:
    """Return the lines of a table, however long."""
    console = Terminal(width=WIDEST, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


def text_table(all_measured: Sequence[Measured], shown: int = MAX_SHOWN) -> Table:
    """Return a table of means: a line for each condition, facet and series, a column for some values of x."""
    chart = all_measured[0].chart
    means = [(one.label, intervals(one)) for one in all_measured]
    columns = _thinned(in_order(x for _, cells in means for *_, x in cells), shown)
    series_name = series_of(chart)
    table = plain_table()
    alone = len(all_measured) == 1
    heads = (*(["condition"] if not alone else []), *filter(None, (chart.facet, series_name)))
    by_name = any(isinstance(x, str) for x in columns)  # names say themselves what they are
    first = [] if by_name else [f"{chart.x} {columns[0]}"]
    for number, head in enumerate([*heads, *first, *map(_text, columns[len(first) :])]):
        table.add_column(Text(head), justify="left" if number < len(heads) else "right", no_wrap=True)
    for label, facet, series, *numbers in _lines(means, columns):
        named = [cell for cell, name in ((facet, chart.facet), (series, series_name)) if name]
        table.add_row(*map(Text, [*([] if alone else [label]), *named, *numbers]))
    return table


def _lines(means: Sequence[tuple[str, dict[Key, Interval]]], columns: Sequence[Cell]) -> Iterator[list[str]]:
    for label, cells in means:
        for facet in in_order(key[0] for key in cells):
            for series in in_order(key[1] for key in cells if key[0] == facet):
                numbers = [cells.get((facet, series, x)) for x in columns]
                yield [label, _text(facet), _text(series), *(_text(one.mean) if one else "" for one in numbers)]


def _thinned(values: Sequence[Cell], most: int) -> list[Cell]:
    """Return at most so many values, spread evenly, with the first and the last."""
    count = min(most, len(values))
    return [values[round(number * (len(values) - 1) / max(1, count - 1))] for number in range(count)]


def _text(cell: Cell) -> str:
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
