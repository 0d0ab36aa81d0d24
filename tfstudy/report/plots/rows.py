"""Panels of labelled rows under headings."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap as wrapped
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tfstudy.report.plots import layout
from tfstudy.report.plots.grouping import Item, balanced_columns

MAX_BESIDE = 0.5  # of the width of a panel: the labels of its rows
MAX_BESIDE_NARROW = 0.4


class Row(NamedTuple):
    """A labelled row of a panel."""

    label: str
    height: float  # inches


def row_panels(
    sheet: layout.Sheet, title: str, groups: Mapping[str, Sequence[Item]], label: Callable[[Item], str], xlabel: str,
    width: float, legend: Sequence[Any], notes: Sequence[str] = (), max_columns: int = 3,
    extra: Callable[[Item], float] = lambda _: 0.0,
) -> tuple[Figure, list[tuple[Axes, list[tuple[Item, float]]]]]:  # fmt: skip
    """Return a figure with a row for each item below the heading of its group, and the y positions in each panel.

    `width` is that of a panel without its labels, in inches, `extra` what a row needs in addition to its label.
    Many rows are distributed over several panels.
    """
    columns = balanced_columns(groups, min(max_columns, int(sheet.width / 3) if sheet.width else max_columns))
    share = MAX_BESIDE_NARROW if sheet == layout.COLUMN else MAX_BESIDE
    longest = int(share * sheet.width / len(columns) / sheet.letter) if sheet.width else 0
    labels = {id(item): _broken(label(item), longest) for items in groups.values() for item in items}
    rows = {id(i): Row(labels[id(i)], _row_height(sheet, labels[id(i)]) + extra(i)) for g in groups.values() for i in g}
    beside = sheet.letter * max(len(line) for text in labels.values() for line in text.split("\n"))
    width += beside
    letters = int(((sheet.width / len(columns) if sheet.width else width) - beside - 0.15) / sheet.letter / 1.25)
    columns = [{"\n".join(wrapped(name, letters)): items for name, items in column.items()} for column in columns]
    heights = [
        sum(_heading_height(sheet, name) + sum(rows[id(i)].height for i in items) for name, items in column.items())
        for column in columns
    ]
    height = max(heights) + 0.35 + sheet.line
    figure, axes = layout.uneven_panels(sheet, title, [height] * len(columns), width, len(columns), legend, notes)
    placed = []
    for panel, column in zip(axes, columns, strict=True):
        levels = _place_rows(panel, sheet, {name: [rows[id(i)] for i in items] for name, items in column.items()})
        panel.set(xlabel=xlabel, ylim=(max(heights) + 0.04, 0.04))
        placed.append((panel, list(zip([i for items in column.values() for i in items], levels, strict=True))))
    return figure, placed


def _place_rows(axes: Axes, sheet: layout.Sheet, groups: Mapping[str, Sequence[Row]]) -> list[float]:
    """Draw the headings and labels; return the positions of the rows in inches from the top of the panel."""
    top, levels = 0.0, []
    style: dict[str, Any] = {
        "transform": axes.get_yaxis_transform(),
        "va": "center",
        "weight": "bold",
        "bbox": {"fc": "white", "lw": 0, "pad": 0.8},
    }
    for heading, rows in groups.items():
        axes.axhline(top + 0.04, color="0.85", lw=0.8)
        axes.text(
            0.015,
            top + _heading_height(sheet, heading) / 2 + 0.33 * sheet.line,
            heading,
            size=min(8.0, sheet.points),
            **style,
        )
        top += _heading_height(sheet, heading)
        for row in rows:
            levels.append(top + row.height / 2)
            top += row.height
    axes.set_yticks(levels, [row.label for rows in groups.values() for row in rows])
    axes.grid(visible=False, axis="y")
    return levels


def _broken(label: str, longest: int) -> str:
    """Return a label with lines of at most this many letters, even within a word; 0 is no limit."""
    return "\n".join(part for line in label.split("\n") for part in wrapped(line, longest)) if longest else label


def _heading_height(sheet: layout.Sheet, heading: str) -> float:
    return sheet.line * (heading.count("\n") + 2)


def _row_height(sheet: layout.Sheet, label: str) -> float:
    return 0.06 + sheet.line * (label.count("\n") + 1)
