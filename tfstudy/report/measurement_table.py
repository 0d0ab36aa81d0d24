"""What instruments measured as a text table: a line for each condition, facet and series."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.table import Table
from rich.text import Text

from tfstudy.analysis.intervals import Interval
from tfstudy.report.markup import count_range
from tfstudy.report.measured import Key, Measured, in_order, intervals, notes_of, rank_note, series_of, value_label
from tfstudy.report.terminal import Terminal, plain_table
from tfstudy.runs.measurement_record import Cell

MAX_SHOWN = 6  # values of x, if they are numbers
MAX_NAMES = 20  # if they are names
WIDEST = 1000  # characters

Means = Sequence[tuple[str, dict[Key, Interval]]]  # by condition


def show(all_measured: Sequence[Measured]) -> None:
    """Print the table of means, with the measured number and the settings above it."""
    console, first = Terminal(soft_wrap=True), all_measured[0].records[0]
    name = f"{all_measured[0].label}, " if len(all_measured) == 1 else ""
    title = f"{name}{first.instrument}: {value_label(all_measured)}"
    title = ", ".join(filter(None, [title, first.shown_settings]))
    means = [(one.label, intervals(one)) for one in all_measured]
    values = in_order(x for _, cells in means for *_, x in cells)
    most = min(MAX_NAMES if any(isinstance(value, str) for value in values) else MAX_SHOWN, len(values))
    for count in range(most, 0, -1):  # values of x, as many as fit
        shown = _columns(means, count)
        lines = _lines_of(_table(all_measured, means, shown))
        if max(map(len, lines)) <= console.width or count <= 2:
            break
    more = f"{len(shown)} of {len(values)} values of {first.chart.x} are shown; --format json has all"
    read = [record.examples for one in all_measured for record in one.records]
    notes = [
        *([more] if len(shown) < len(values) else []),
        *([f"measured on {count_range(read, 'example')}"] if len(set(read)) > 1 else []),
        *filter(None, [rank_note(all_measured)]),
        *notes_of(all_measured),
    ]
    wrapped = (part for note in notes for part in wrap(note, console.width, subsequent_indent="  "))
    for line in [*wrap(title, console.width, subsequent_indent="  "), *lines, *wrapped]:
        console.print(line)


def _lines_of(table: Table) -> list[str]:
    """Return the lines of a table, however long."""
    console = Terminal(width=WIDEST, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


def _table(all_measured: Sequence[Measured], means: Means, columns: Sequence[Cell]) -> Table:
    """Return a table of means: a line for each condition, facet and series, a column for some values of x."""
    chart = all_measured[0].chart
    series_name = series_of(chart)
    table = plain_table()
    alone = len(all_measured) == 1
    head = chart.y_label if chart.kind == "heatmap" and chart.ranked and chart.ranked != chart.x else series_name
    heads = (*(["condition"] if not alone else []), *filter(None, (chart.facet, head)))
    by_name = any(isinstance(x, str) for x in columns)  # names say themselves what they are
    first = [] if by_name else [f"{chart.x} {columns[0]}"]
    for number, head in enumerate([*heads, *first, *map(_text, columns[len(first) :])]):
        table.add_column(Text(head), justify="left" if number < len(heads) else "right", no_wrap=True)
    for label, facet, series, *numbers in _lines(means, columns):
        named = [cell for cell, name in ((facet, chart.facet), (series, series_name)) if name]
        table.add_row(*map(Text, [*([] if alone else [label]), *named, *numbers]))
    return table


def _lines(means: Means, columns: Sequence[Cell]) -> Iterator[list[str]]:
    for label, cells in means:
        for facet in in_order(key[0] for key in cells):
            for series in in_order(key[1] for key in cells if key[0] == facet):
                numbers = [cells.get((facet, series, x)) for x in columns]
                yield [label, _text(facet), _text(series), *(_text(one.mean) if one else "" for one in numbers)]


def _columns(means: Means, most: int) -> list[Cell]:
    """Return at most so many values of x, spread evenly, with the first and the last.

    There are more if a line of the table would be empty otherwise.
    """
    values, lines = in_order(x for _, cells in means for *_, x in cells), _values_by_line(means)
    count = min(most, len(values))
    kept = {values[round(number * (len(values) - 1) / max(1, count - 1))] for number in range(count)}
    for line in lines:
        if kept.isdisjoint(line):
            kept.add(next(value for value in values if value in line))
    for value in values[1:-1]:
        others = kept - {value}
        if len(kept) > most and not any(others.isdisjoint(line) for line in lines):
            kept = others
    return [value for value in values if value in kept]


def _values_by_line(means: Means) -> list[set[Cell]]:
    """Return the values of x at which each line of the table has a number."""
    lines: dict[tuple[str, Cell, Cell], set[Cell]] = {}
    for label, cells in means:
        for facet, series, x in cells:
            lines.setdefault((label, facet, series), set()).add(x)
    return list(lines.values())


def _text(cell: Cell) -> str:
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
