"""The layout that all plots share: equal panels or labelled rows, a title, a legend, notes below, one theme.

Matplotlib's constrained layout places everything; a figure then gets the size at which its panels are as large as
wanted (`Panels.plot`), so that no text is measured here.
"""

import io
import math
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.style
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from tfstudy.errors import UserError, printable
from tfstudy.runs.files import write_atomically

PERCENT = (-3.0, 103.0)  # limits of an axis of percentages
CORPUS_METRICS = frozenset(("bleu", "chrf"))  # of all outputs together, not shares of examples
MAX_PIXELS = 60_000  # matplotlib draws at most 65,536
FONTS = "'DejaVu Sans', Verdana, sans-serif"  # Verdana is as wide
LETTER = 0.0077  # inches of an average letter, for each point of its size
LINE = 0.017  # inches of a line of text, in the same way
EDGE = 0.006  # share of the width on the left of titles and notes
MAX_ROWS = 45  # in a column of rows


class Sheet(NamedTuple):
    """The width of a figure and the size of its text."""

    width: float | None  # inches; None: what the content needs, with the legend on the right instead of below
    points: float  # of most text
    letters: int  # in a line of a label
    dpi: int = 300

    def wrapped(self, label: str) -> str:
        """Return the label of a row in lines."""
        return "\n".join(fill(line, self.letters) for line in label.split("\n"))


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
    ours = {"font.family": "DejaVu Sans", "axes.titlesize": 9, "figure.titlesize": 10, "figure.labelsize": 8}
    ours |= {"text.parse_math": False}  # a dollar in a name is a dollar
    ours |= {"legend.frameon": False, "grid.color": "0.88", "grid.linewidth": 0.7, "axes.edgecolor": "0.75"}
    if sheet.width:
        texts = ["font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize"]
        texts += ["axes.titlesize", "figure.labelsize"]
        ours |= dict.fromkeys(texts, sheet.points) | {"figure.titlesize": 8}
    styles = ["default", sns.axes_style("whitegrid"), sns.plotting_context("paper"), ours]
    with matplotlib.style.context(styles), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # it is drawn as a box
        yield


# Panels


class Panels(NamedTuple):
    """The panels of a figure, to be drawn on, row by row."""

    figure: Figure
    axes: list[Axes]
    sheet: Sheet
    width: float  # inches of a panel, where the sheet has no width
    height: float  # inches of the panels above each other
    columns: int

    def label(self, x: str, y: str) -> None:
        """Label the x axes of the lowest panels and the y axes of the first panel in each row."""
        for number, axes in enumerate(self.axes):
            if number + self.columns >= len(self.axes):
                axes.set_xlabel(self.lines(x, mpl.rcParams["axes.labelsize"]))
                axes.tick_params(labelbottom=True)
            axes.set_ylabel("" if number % self.columns else fill(y, 26))

    def lines(self, text: str, points: float = 9) -> str:
        """Return a text in letters of this size in lines that are about as wide as a panel."""
        width = self.sheet.width / self.columns - 0.7 if self.sheet.width else self.width + 0.3
        return fill(text, int(width / LETTER / min(points, self.sheet.points)))

    def plot(self, name: str, alt: str, legend: Sequence[Any] = (), notes: Sequence[str] = ()) -> Plot:
        """Return the plot, with a legend and notes, as large as its panels and all texts need."""
        figure, handles = self.figure, list(legend)
        inner, below = figure.subfigs[0], figure.supxlabel("\n".join(notes), x=EDGE, ha="left", color="0.3", wrap=True)
        figure.set_figheight(figure.get_figheight() + 0.3 * len(handles))
        shown = None
        if handles and self.sheet.width:
            longest = max(len(line) for handle in handles for line in handle.get_label().splitlines())
            columns = int(self.sheet.width / (0.5 + LETTER * self.sheet.points * longest))
            inner.legend(handles=handles, loc="outside lower left", ncols=max(1, columns), handlelength=2.2)
        elif handles:
            shown = inner.legend(handles=handles, loc="outside right upper", handlelength=2.6)
        for _ in range(4):  # each step comes closer, since a change of the width changes the lines of text
            figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
            boxes = [axes.get_position().transformed(axes.get_figure().transSubfigure) for axes in self.axes]  # type: ignore[union-attr]
            boxes = [box.transformed(figure.dpi_scale_trans.inverted()) for box in boxes]
            more = self.height - sum(box.height for box in boxes[:: self.columns])
            if shown:
                more = max(more, (below.get_window_extent().y1 - shown.get_window_extent().y0) / figure.dpi)
            wider = 0.0 if self.sheet.width else self.columns * (self.width - boxes[0].width)
            width, height = figure.get_size_inches()
            if max(abs(wider), abs(more)) < 0.02:
                break
            figure.set_size_inches(max(1.0, width + wider), max(1.0, height + more))
        return Plot(name, figure, alt)


def panels(
    sheet: Sheet, title: str, count: int, size: tuple[float, float] = (2.45, 1.75), columns: int = 3,
    narrowest: float = 1.5,
) -> Panels:  # fmt: skip
    """Return equal panels of `size` inches, a single one enlarged.

    Where the sheet has a width, as many panels of at least `narrowest` inches are in a row as fit.
    """
    width, height = (1.35 * side if count == 1 else side for side in size)
    columns = min(count, 2 if count == 4 and columns == 3 else columns)
    if sheet.width:
        columns = min(columns, max(1, int(sheet.width / narrowest)))
        height *= min(1.0, max(0.65, sheet.width / columns / (width + 0.5)))
    return uneven_panels(sheet, title, width, [height] * count, columns)


def uneven_panels(
    sheet: Sheet, title: str, width: float, heights: Sequence[float], columns: int, sharex: bool = False
) -> Panels:
    """Return panels of these heights in inches; those in one row are as high as the highest of them."""
    columns = min(columns, len(heights))
    rows = [max(heights[first : first + columns]) for first in range(0, len(heights), columns)]
    size = (sheet.width or columns * (width + 1) + 6, 1.3 * sum(rows) + len(rows) + 3)  # in the beginning: too large
    pad = 0.07 if sheet.width is None else 0.045
    figure = Figure(size, dpi=sheet.dpi, layout=ConstrainedLayoutEngine(w_pad=pad, h_pad=pad))
    figure.suptitle(title, x=EDGE, ha="left", wrap=True)
    inner: Any = figure.subfigures()  # whose legend and panels are between the title and the notes
    every = inner.subplots(len(rows), columns, squeeze=False, height_ratios=rows, sharex=sharex).flat
    for unused in every[len(heights) :]:
        unused.remove()
    return Panels(figure, list(every[: len(heights)]), sheet, width, sum(rows), columns)


def rows(
    sheet: Sheet, title: str, groups: Mapping[str, Sequence[tuple[str, float]]], width: float, columns: int = 3
) -> tuple[Panels, list[list[float]]]:
    """Return a panel for each group with a labelled row for each of its texts, and the y of the rows of each panel.

    With each text stands by how much its row is higher, in inches, which are the unit of the y axes; `width` is that of
    a panel. Many rows are in several columns.
    """
    count = sum(map(len, groups.values()))
    columns = min(len(groups), columns, math.ceil(count / MAX_ROWS), int((sheet.width or 99) / 3))
    labels = [[sheet.wrapped(text) for text, _ in own] for own in groups.values()]
    heights = [
        [
            LINE * sheet.points * (label.count("\n") + 1) + 0.06 + extra
            for label, (_, extra) in zip(texts, own, strict=True)
        ]
        for texts, own in zip(labels, groups.values(), strict=True)
    ]
    levels = [[sum(own[:number]) + height / 2 for number, height in enumerate(own)] for own in heights]
    found = uneven_panels(sheet, title, width, list(map(sum, heights)), columns, sharex=True)
    for axes, name, places, texts, own in zip(found.axes, groups, levels, labels, heights, strict=True):
        axes.set_title(found.lines(name, mpl.rcParams["axes.titlesize"] * 1.1), loc="left", weight="bold")
        axes.set(yticks=places, yticklabels=texts, ylim=(sum(own), 0))
        axes.grid(visible=False, axis="y")
    return found, levels


def write_beside(axes: Axes, level: float, text: str) -> None:
    """Write a text on the right of a row."""
    size = min(8.0, mpl.rcParams["font.size"])
    axes.text(1.02, level, text, transform=axes.get_yaxis_transform(), va="center", fontsize=size)


# Axes


def percent_limits(metrics: Collection[str], largest: float) -> tuple[float, float]:
    """Return the limits of an axis of these metrics in percent, of which `largest` is the largest value drawn.

    All shares of examples have the same axis, up to 100; BLEU and chrF, which rarely come near 100, have one up to the
    next ten.
    """
    if not CORPUS_METRICS.issuperset(metrics):
        return PERCENT
    scale = min(1.0, max(1, math.ceil(largest / 10)) / 10)
    return PERCENT[0] * scale, 100 * scale + (PERCENT[1] - 100) * scale


def set_log_ticks(axis: Axis) -> None:
    """Set at least two ticks on a logarithmic axis, whatever its range."""
    low, high = sorted(axis.get_view_interval())
    twos = LogLocator(subs=(1, 2, 5)) if high < 100 * low else LogLocator(numticks=7)
    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]) if high < 5 * low else twos)
    axis.set_major_formatter("{x:,.10g}")
    axis.set_minor_formatter(NullFormatter())


def set_sizes(axes: Axes, sizes: Sequence[int], labels: Sequence[str]) -> None:
    """Make the x axis logarithmic, with a tick at each size but those whose labels would overlap."""
    axes.set(xscale="log", xlim=(sizes[0] / 1.3, sizes[-1] * 1.3))
    shown = [0]
    for number, size in enumerate(sizes):
        if math.log(size / sizes[shown[-1]]) > math.log(sizes[-1] / sizes[0]) / 6.5:
            shown.append(number)
    axes.set_xticks([sizes[number] for number in shown], [labels[number] for number in shown])
    axes.xaxis.set_minor_locator(NullLocator())
