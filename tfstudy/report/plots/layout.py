"""The layout that all plots share: panels in rows, a legend, notes below, one theme."""

import io
import math
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap as wrapped
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.style
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tfstudy.errors import UserError, printable
from tfstudy.report.plots import captions
from tfstudy.report.plots.compact_svg import compact_svg, numbered_clips
from tfstudy.report.plots.panel_labels import BESIDE, LETTER
from tfstudy.report.plots.series_style import Styles
from tfstudy.runs.files import write_atomically

PERCENT = (-3.0, 103.0)  # limits of an axis of percentages
CORPUS_METRICS = frozenset(("bleu", "chrf"))  # of all outputs together, not shares of examples
MAX_PIXELS = 60_000  # matplotlib draws at most 65,536
MARGIN = 0.05  # inches


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


SCREEN, COLUMN, PAGE = Sheet(None, 8.8, 34, 160), Sheet(3.35, 7.0, 20), Sheet(6.9, 7.5, 30)
SHEETS = {"": SCREEN, "column": COLUMN, "page": PAGE}


class Plot(NamedTuple):
    """A figure, its name and the text for readers who cannot see it."""

    name: str
    figure: Figure
    alt: str

    def encode(self, file_type: str, salt: str = "tfstudy", fonttype: str = "path") -> bytes:
        """Return the plot as a file that contains its alt text; the same records give the same bytes.

        `salt` determines the ids within an SVG, so that plots on one page can have different ids. Its letters are
        outlines, or text with the `fonttype` "none".
        """
        buffer, alt = io.BytesIO(), printable(self.alt)  # XML has no control characters
        metadata = {
            ".svg": {"Date": None, "Description": alt},
            ".pdf": {"CreationDate": None, "Subject": alt},
        }.get(file_type, {"Description": alt})
        dpi = min(self.figure.dpi, MAX_PIXELS / max(self.figure.get_size_inches()))
        with theme(), mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": fonttype}):
            self.figure.savefig(buffer, format=file_type[1:], dpi=dpi, metadata=metadata)
        if file_type == ".svg":
            return numbered_clips(buffer.getvalue().decode(), salt).encode()
        return buffer.getvalue()

    def svg(self) -> str:
        """Return the plot as a small SVG file for a page, with ids unlike those of other plots."""
        return compact_svg(self.encode(".svg", self.name, fonttype="none").decode())

    def save(self, path: Path) -> None:
        """Write the plot in the format of the path's suffix; `UserError` if the file cannot be written."""
        try:
            write_atomically(path, self.encode(path.suffix.lower()))
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None


def percent_limits(metrics: Collection[str], largest: float) -> tuple[float, float]:
    """Return the limits of an axis of these metrics in percent, of which `largest` is the largest value drawn.

    All shares of examples have the same axis, up to 100; BLEU and chrF, which rarely come near 100, have one up to the
    next ten.
    """
    if not CORPUS_METRICS.issuperset(metrics):
        return PERCENT
    scale = min(1.0, max(1, math.ceil(largest / 10)) / 10)
    return PERCENT[0] * scale, 100 * scale + (PERCENT[1] - 100) * scale


@contextmanager
def theme(sheet: Sheet = SCREEN) -> Iterator[None]:
    """Draw and save in our style, whatever the user's own matplotlib settings are."""
    ours = {"font.family": "DejaVu Sans", "svg.hashsalt": "tfstudy", "axes.titlesize": 9, "figure.titlesize": 10}
    ours |= {"text.parse_math": False}  # a dollar in a name is a dollar
    ours |= {"legend.frameon": False, "grid.color": "0.88", "grid.linewidth": 0.7, "axes.edgecolor": "0.75"}
    if sheet.width:
        texts = ("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
        ours |= dict.fromkeys(texts, sheet.points) | {"axes.titlesize": sheet.points, "figure.titlesize": 8}
    styles = ["default", sns.axes_style("whitegrid"), sns.plotting_context("paper"), ours]
    with matplotlib.style.context(styles), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # it is drawn as a box
        yield


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
    heading = wrapped(title, int(total / 0.085))
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
    lines = [line for note in notes for line in wrapped(note, int(width / sheet.letter / 0.92))]
    top = MARGIN
    if lines:
        text = figure.text(MARGIN, top, "\n".join(lines), transform=inches, va="bottom", color="0.3")
        text.set(fontsize=min(8.0, sheet.points), linespacing=1.3)
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


def legend_handles(styles: Styles, kind: str = "points") -> list[Any]:
    """Return a legend handle for each series, as `points`, `lines` or `bars`."""
    labels = {name: captions.wrap(name) for name in styles}
    if kind == "bars":
        return [Patch(label=labels[name], **style.bar) for name, style in styles.items()]
    return [
        Line2D([], [], color=s.colour, marker=s.marker, ms=5, ls=s.line if kind == "lines" else "", label=labels[name])
        for name, s in styles.items()
    ]
