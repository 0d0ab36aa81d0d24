"""The layout that all plots share: panels or labelled rows, a legend, notes below, one theme."""

import io
import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill, wrap
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.style
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine

from tfstudy.errors import UserError, printable
from tfstudy.report.plots.series import Item
from tfstudy.runs.files import write_atomically

PERCENT = (-3.0, 103.0)  # limits of an axis of percentages
CORPUS_METRICS = frozenset(("bleu", "chrf"))  # of all outputs together, not shares of examples
MAX_PIXELS = 60_000  # matplotlib draws at most 65,536
MARGIN = 0.05  # inches
FONTS = "'DejaVu Sans', Verdana, sans-serif"  # Verdana is as wide
LETTER = 0.0077  # inches of a letter, for each point of its size
BESIDE = "beside"  # label of a legend on the right of the panels
MAX_ROWS = 45  # in a column of rows


class Sheet(NamedTuple):
    """The width of a figure and the size of its text."""

    width: float | None  # inches; None: what the content needs, with the legend on the right instead of below
    points: float  # of most text
    label_letters: int  # in a line of a row's label
    dpi: int = 300

    @property
    def letter(self) -> float:
        """Inches that a letter takes, on average."""
        return self.points * LETTER

    @property
    def line(self) -> float:
        """Inches that a line of text takes."""
        return self.points * 0.017

    @property
    def small(self) -> float:
        """The size of notes, headings and what stands beside a panel, in points."""
        return min(8.0, self.points)


SCREEN, COLUMN, PAGE = Sheet(None, 8.8, 34, 160), Sheet(3.35, 7.0, 20), Sheet(6.9, 7.5, 30)
SHEETS = {"": SCREEN, "column": COLUMN, "page": PAGE}


class Plot(NamedTuple):
    """A figure, its name and the text for readers who cannot see it."""

    name: str
    figure: Figure
    alt: str

    def encode(self, file_type: str, fonttype: str = "path") -> bytes:
        """Return the plot as a file that contains its alt text; the same records give the same bytes.

        The letters of an SVG are outlines, or text with the `fonttype` "none".
        """
        buffer, alt = io.BytesIO(), printable(self.alt)  # XML has no control characters
        metadata = {
            ".svg": {"Date": None, "Description": alt},
            ".pdf": {"CreationDate": None, "Subject": alt},
        }.get(file_type, {"Description": alt})
        dpi = min(self.figure.dpi, MAX_PIXELS / max(self.figure.get_size_inches()))
        with theme(), mpl.rc_context({"svg.hashsalt": self.name, "svg.fonttype": fonttype}):
            self.figure.savefig(buffer, format=file_type[1:], dpi=dpi, metadata=metadata)
        return buffer.getvalue()

    def svg(self) -> str:
        """Return the plot as an SVG for a page, in which text is text."""
        return self.encode(".svg", fonttype="none").decode().replace("'DejaVu Sans'", FONTS)

    def save(self, path: Path) -> None:
        """Write the plot in the format of the path's suffix; `UserError` if the file cannot be written."""
        try:
            write_atomically(path, self.encode(path.suffix.lower()))
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None


@contextmanager
def theme(sheet: Sheet = SCREEN) -> Iterator[None]:
    """Draw and save in our style, whatever the user's own matplotlib settings are."""
    ours = {"font.family": "DejaVu Sans", "axes.titlesize": 9, "figure.titlesize": 10}
    ours |= {"text.parse_math": False}  # a dollar in a name is a dollar
    ours |= {"legend.frameon": False, "grid.color": "0.88", "grid.linewidth": 0.7, "axes.edgecolor": "0.75"}
    if sheet.width:
        texts = ("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
        ours |= dict.fromkeys(texts, sheet.points) | {"axes.titlesize": sheet.points, "figure.titlesize": 8}
    styles = ["default", sns.axes_style("whitegrid"), sns.plotting_context("paper"), ours]
    with matplotlib.style.context(styles), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # it is drawn as a box
        yield


def percent_limits(metrics: Collection[str], largest: float) -> tuple[float, float]:
    """Return the limits of an axis of these metrics in percent, of which `largest` is the largest value drawn.

    All shares of examples have the same axis, up to 100; BLEU and chrF, which rarely come near 100, have one up to the
    next ten.
    """
    if not CORPUS_METRICS.issuperset(metrics):
        return PERCENT
    scale = min(1.0, max(1, math.ceil(largest / 10)) / 10)
    return PERCENT[0] * scale, 100 * scale + (PERCENT[1] - 100) * scale


# Panels


def panels(
    sheet: Sheet, title: str, count: int, size: tuple[float, float] = (2.9, 2.2), columns: int = 3,
    legend: Sequence[Any] = (), notes: Sequence[str] = (), narrowest: float = 1.5,
) -> tuple[Figure, list[Axes]]:  # fmt: skip
    """Return a figure and its equal panels of `size` inches, a single one enlarged, with a legend and notes.

    Where the sheet has a width, as many panels of at least `narrowest` inches are in a row as fit.
    """
    width, height = (1.35 * side if count == 1 else side for side in size)
    columns = min(count, 2 if count == 4 and columns == 3 else columns)
    if sheet.width:
        columns = min(columns, max(1, int(sheet.width / narrowest)))
        height *= min(1.0, max(0.65, sheet.width / columns / width))
    return uneven_panels(sheet, title, [height] * count, width, columns, legend, notes)


def uneven_panels(
    sheet: Sheet, title: str, heights: Sequence[float], width: float, columns: int, legend: Sequence[Any] = (),
    notes: Sequence[str] = (),
) -> tuple[Figure, list[Axes]]:  # fmt: skip
    """Return a figure and its panels, a height in inches for each, filled row by row; the notes are below.

    A panel is `width` inches wide, unless the sheet has a width.
    """
    columns = min(columns, len(heights))
    rows = [max(heights[first : first + columns]) for first in range(0, len(heights), columns)]
    beside = [] if sheet.width else list(legend)
    legend_width, legend_height = _legend_size(beside)
    total = sheet.width or max(columns * width, 0.085 * len(title)) + legend_width
    figure = Figure(figsize=(total, 1), dpi=sheet.dpi)  # the height follows from what is in it
    heading = wrap(title, int(total / 0.085))
    figure.suptitle("\n".join(heading), x=MARGIN / total, ha="left")
    below = _place_below(figure, sheet, notes, [] if beside else legend)
    height = max(sum(rows) + 0.25 + 0.15 * len(heading), legend_height) + below
    figure.set_size_inches(total, height)
    pad = 0.07 if sheet.width is None else 0.03
    free = (0, below / height, 1, 1 - below / height)
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=pad, h_pad=pad, rect=free))
    axes = list(figure.subplots(len(rows), columns, squeeze=False, height_ratios=rows).flat)
    for unused in axes[len(heights) :]:
        unused.remove()
    if beside:
        figure.legend(handles=beside, loc="outside right upper", handlelength=2.6).set_label(BESIDE)
    return figure, axes[: len(heights)]


def _legend_size(legend: Sequence[Any]) -> tuple[float, float]:
    """Return the width and height that a legend on the right takes, in inches."""
    labels = [handle.get_label().splitlines() for handle in legend]
    if not labels:
        return 0.0, 0.0
    longest = max(len(line) for label in labels for line in label)
    return 0.6 + SCREEN.letter * longest, 0.3 + sum(0.155 * len(label) + 0.065 for label in labels)


def _place_below(figure: Figure, sheet: Sheet, notes: Sequence[str], legend: Sequence[Any]) -> float:
    """Write the notes at the lower edge of a figure, with the legend above; return the inches that they take."""
    inches, width = figure.dpi_scale_trans, figure.get_figwidth() - 2 * MARGIN
    lines = [line for note in notes for line in wrap(note, int(width / sheet.letter / 0.92))]
    top = MARGIN
    if lines:
        text = figure.text(MARGIN, top, "\n".join(lines), transform=inches, va="bottom", color="0.3")
        text.set(fontsize=sheet.small, linespacing=1.3)
        top += text.get_window_extent().height / figure.dpi + MARGIN
    for columns in range(min(5, len(legend)), 0, -1):
        box = figure.legend(
            handles=legend, loc="lower left", bbox_to_anchor=(MARGIN, top), bbox_transform=inches, ncols=columns,
            handlelength=2.2, columnspacing=1.2, borderaxespad=0, borderpad=0.1,
        )  # fmt: skip
        extent = box.get_window_extent()
        if extent.width <= width * figure.dpi or columns == 1:
            return top + extent.height / figure.dpi + MARGIN
        box.remove()
    return top


def label_axes(axes: Sequence[Axes], x: str, y: str) -> None:
    """Label the x axes of the lowest panels and the y axes of the first panel in each row."""
    for number, panel in enumerate(axes):
        place = _place(panel)
        lowest = number + place.get_gridspec().ncols >= len(axes)
        panel.set_xlabel(_wrapped(panel, x, float(panel.xaxis.label.get_fontsize())) if lowest else "")
        panel.set_ylabel(fill(y, 26) if place.is_first_col() else "")


def set_title(axes: Axes, title: str, **options: Any) -> None:
    """Set a panel's title, in several lines if it is wider than the panel."""
    axes.set_title(_wrapped(axes, title, float(axes.title.get_fontsize())), **options)


def _wrapped(axes: Axes, text: str, points: float) -> str:
    """Return a text in lines as wide as a panel: without its tick labels, and away from a legend on the right."""
    figure = axes.get_figure(root=True)
    assert figure is not None  # noqa: S101 - always true; for the type checker
    beside = sum(box.get_window_extent().width for box in figure.legends if box.get_label() == BESIDE) / figure.dpi
    width = (figure.get_figwidth() - beside) / _place(axes).get_gridspec().ncols - (0.7 if beside else 0.35)
    return fill(text, int(width / (LETTER * points)), break_long_words=False, break_on_hyphens=False)


def _place(axes: Axes) -> SubplotSpec:
    place = axes.get_subplotspec()
    assert place is not None  # noqa: S101 - always true; for the type checker
    return place


# Rows


class Row(NamedTuple):
    """A labelled row of a panel."""

    label: str
    height: float  # inches


def row_panels(
    sheet: Sheet, title: str, groups: Mapping[str, Sequence[Item]], label: Callable[[Item], str], xlabel: str,
    width: float, legend: Sequence[Any], notes: Sequence[str] = (), max_columns: int = 3,
    extra: Callable[[Item], float] = lambda _: 0.0,
) -> tuple[Figure, list[tuple[Axes, list[tuple[Item, float]]]]]:  # fmt: skip
    """Return a figure with a row for each item below the heading of its group, and the y positions in each panel.

    `width` is that of a panel without its labels, in inches, `extra` what a row needs in addition to its label.
    Many rows are distributed over several panels.
    """
    columns = balanced_columns(groups, min(max_columns, int(sheet.width / 3) if sheet.width else max_columns))
    share = 0.4 if sheet == COLUMN else 0.5  # of a panel: at most that for the labels of its rows
    longest = int(share * sheet.width / len(columns) / sheet.letter) if sheet.width else 0
    rows: dict[int, Row] = {}  # by the id of their item
    for item in (item for items in groups.values() for item in items):
        text = label(item)
        if longest:  # lines are broken even within a word
            text = "\n".join(part for line in text.split("\n") for part in wrap(line, longest))
        rows[id(item)] = Row(text, 0.06 + sheet.line * (text.count("\n") + 1) + extra(item))
    beside = sheet.letter * max(len(line) for row in rows.values() for line in row.label.split("\n"))
    width += beside
    letters = int(((sheet.width / len(columns) if sheet.width else width) - beside - 0.15) / sheet.letter / 1.25)
    columns = [{"\n".join(wrap(name, letters)): items for name, items in column.items()} for column in columns]
    heights = [
        sum(_heading_height(sheet, name) + sum(rows[id(i)].height for i in items) for name, items in column.items())
        for column in columns
    ]
    height = max(heights) + 0.35 + sheet.line
    figure, axes = uneven_panels(sheet, title, [height] * len(columns), width, len(columns), legend, notes)
    placed = []
    for panel, column in zip(axes, columns, strict=True):
        levels = _place_rows(panel, sheet, {name: [rows[id(i)] for i in items] for name, items in column.items()})
        panel.set(xlabel=xlabel, ylim=(max(heights) + 0.04, 0.04))
        placed.append((panel, list(zip([i for items in column.values() for i in items], levels, strict=True))))
    return figure, placed


def balanced_columns(groups: Mapping[str, Sequence[Item]], max_columns: int = 3) -> list[dict[str, Sequence[Item]]]:
    """Distribute the groups over at most this many columns with a similar number of items in each."""
    total = sum(map(len, groups.values()))
    count = min(max_columns, math.ceil(total / MAX_ROWS))
    columns: list[dict[str, Sequence[Item]]] = [{} for _ in range(count)]
    before = 0
    for name, items in groups.items():
        columns[before * count // total][name] = items
        before += len(items)
    return [column for column in columns if column]


def _place_rows(axes: Axes, sheet: Sheet, groups: Mapping[str, Sequence[Row]]) -> list[float]:
    """Draw the headings and labels; return the positions of the rows in inches from the top of the panel."""
    top, levels = 0.0, []
    for heading, rows in groups.items():
        height = _heading_height(sheet, heading)
        axes.axhline(top + 0.04, color="0.85", lw=0.8)
        axes.text(
            0.015, top + height / 2 + 0.33 * sheet.line, heading, transform=axes.get_yaxis_transform(), va="center",
            size=sheet.small, weight="bold", bbox={"fc": "white", "lw": 0, "pad": 0.8},
        )  # fmt: skip
        top += height
        for row in rows:
            levels.append(top + row.height / 2)
            top += row.height
    axes.set_yticks(levels, [row.label for rows in groups.values() for row in rows])
    axes.grid(visible=False, axis="y")
    return levels


def _heading_height(sheet: Sheet, heading: str) -> float:
    return sheet.line * (heading.count("\n") + 2)


def write_beside(axes: Axes, level: float, text: str, sheet: Sheet) -> None:
    """Write a text on the right of a row."""
    axes.text(1.02, level, text, transform=axes.get_yaxis_transform(), va="center", fontsize=sheet.small)
