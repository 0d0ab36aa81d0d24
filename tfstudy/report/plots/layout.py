"""What plots share: equal panels or labelled rows, a legend, notes below; how a series is drawn; the words.

Matplotlib's constrained layout places everything on the width of a page; the figure then gets the height at which its
panels are as high as wanted (`Panels.plot`), so that no text is measured here.
"""

import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.style
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from tfstudy.analysis.summary import Condition, rows_of
from tfstudy.errors import UserError, printable, some
from tfstudy.report.markup import count_range, plural, short_number
from tfstudy.runs.files import write_atomically
from tfstudy.runs.schema import metric_name

CORPUS_METRICS = ("bleu", "chrf")  # of all outputs together, not shares of examples
DPI, MAX_PIXELS = 200, 60_000  # matplotlib draws at most 65,536
FONTS = b"'DejaVu Sans', Verdana, sans-serif"  # Verdana is as wide
WIDTH, POINTS = 6.9, 7.5  # inches of a figure: of a page; and the size of its text
LETTERS = 44  # in a line of the label of a row
EDGE = 0.006  # share of the width on the left of titles and notes
LETTER, LINE = 0.0077 * POINTS, 0.017 * POINTS  # inches of an average letter, and of a line of text
MAX_ROWS = 45  # in a column of rows
MAX_TICKS = 30  # names on an axis of a heat map
Style = dict[str, Any]  # how matplotlib draws a series: its `color`, `marker` and line style `ls`
COLOURS = {  # after Okabe & Ito 2008, safe for the colour-blind
    "transformer": "#0072B2", "lstm": "#D55E00", "cnn": "#009E73",
    "deltanet": "#CC79A7", "mingru": "#7F7F7F", "stack_rnn": "#56B4E9",
}  # fmt: skip
OTHER_COLOURS = ("#E69F00", "#882255", "#332288", "#999933")  # of the architectures of plug-ins
MARKERS = ("o", "D", "s", "^", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
MAX_LETTERS = 34  # in a line of a legend
MAX_MARKERS = 25  # longer lines have none


class Plot(NamedTuple):
    """A figure, its name and the text for readers who cannot see it."""

    name: str
    figure: Figure
    alt: str

    def encode(self, file_type: str) -> bytes:
        """Return the plot as a file that contains its alt text; the same records give the same bytes.

        Text in an SVG is text, in our font or one as wide.
        """
        buffer, alt = io.BytesIO(), printable(self.alt)  # XML has no control characters
        metadata = {
            ".svg": {"Date": None, "Description": alt},
            ".pdf": {"CreationDate": None, "Subject": alt},
        }.get(file_type, {"Description": alt})
        dpi = min(self.figure.dpi, MAX_PIXELS / max(self.figure.get_size_inches()))
        with theme(), mpl.rc_context({"svg.hashsalt": self.name, "svg.fonttype": "none"}):
            self.figure.savefig(buffer, format=file_type[1:], dpi=dpi, metadata=metadata)
        content = buffer.getvalue()
        return content.replace(b"'DejaVu Sans'", FONTS) if file_type == ".svg" else content

    def save(self, path: Path) -> None:
        """Write the plot in the format of the path's suffix; `UserError` if the file cannot be written."""
        try:
            write_atomically(path, self.encode(path.suffix.lower()))
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None


@contextmanager
def theme() -> Iterator[None]:
    """Draw and save in our style, whatever the user's own matplotlib settings are."""
    sizes = ("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize", "axes.titlesize")
    ours: dict[str, Any] = dict.fromkeys((*sizes, "figure.labelsize"), POINTS) | {"figure.titlesize": 8}
    ours |= {"font.family": "DejaVu Sans", "text.parse_math": False}  # a dollar in a name is a dollar
    ours |= {"legend.frameon": False, "grid.color": "0.88", "grid.linewidth": 0.7, "axes.edgecolor": "0.75"}
    styles = ["default", sns.axes_style("whitegrid"), sns.plotting_context("paper"), ours]
    with matplotlib.style.context(styles), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # it is drawn as a box
        yield


class Panels(NamedTuple):
    """The panels of a figure, to be drawn on, row by row."""

    figure: Figure
    axes: list[Axes]
    height: float  # inches of the panels above each other
    columns: int

    def label(self, x: str, y: str) -> None:
        """Label the x axes of the lowest panels and the y axes of the first panel in each row."""
        for number, axes in enumerate(self.axes):
            if number + self.columns >= len(self.axes):
                axes.set_xlabel(self.lines(x))
                axes.tick_params(labelbottom=True)
            axes.set_ylabel("" if number % self.columns else fill(y, 26))

    def lines(self, text: str) -> str:
        """Return a text in lines that are about as wide as a panel."""
        return fill(text, int((WIDTH / self.columns - 0.5) / LETTER))

    def plot(self, name: str, alt: str, legend: Sequence[Any] = (), notes: Sequence[str] = ()) -> Plot:
        """Return the plot, with a legend and notes, as high as its panels and all texts need."""
        figure = self.figure
        figure.supxlabel("\n".join(notes), x=EDGE, ha="left", color="0.3", wrap=True)
        figure.set_figheight(figure.get_figheight() + 0.3 * len(legend))
        if legend:
            longest = max(len(line) for handle in legend for line in handle.get_label().splitlines())
            columns = max(1, int(WIDTH / (0.5 + LETTER * longest)))
            figure.subfigs[0].legend(handles=legend, loc="outside lower left", ncols=columns, handlelength=2.2)
        for _ in range(2):
            figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
            heights = [axes.get_window_extent().height / figure.dpi for axes in self.axes[:: self.columns]]
            figure.set_figheight(max(1.0, figure.get_figheight() + self.height - sum(heights)))
        return Plot(name, figure, alt)


def panels(title: str, count: int, columns: int = 3, ratio: float = 0.6) -> Panels:
    """Return equal panels, so many in a row; `ratio` is height to width."""
    columns = min(count, 2 if count == 4 else columns)
    return uneven_panels(title, [min(2.4, ratio * WIDTH / columns)] * count, columns)


def uneven_panels(
    title: str, heights: Sequence[float], columns: int = 1, sharex: bool = False, width: float = WIDTH
) -> Panels:
    """Return panels of these heights in inches; those in one row are as high as the highest of them."""
    rows = [max(heights[first : first + columns]) for first in range(0, len(heights), columns)]
    size = (width, 1.3 * sum(rows) + len(rows) + 3)  # in the beginning: too high
    figure = Figure(size, dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=0.045, h_pad=0.045))
    figure.suptitle(title, x=EDGE, ha="left", wrap=True)
    inner: Any = figure.subfigures()  # whose legend and panels are between the title and the notes
    every = inner.subplots(len(rows), columns, squeeze=False, height_ratios=rows, sharex=sharex).flat
    for unused in every[len(heights) :]:
        unused.remove()
    return Panels(figure, list(every[: len(heights)]), sum(rows), columns)


def in_rows(
    title: str, frame: pd.DataFrame, text: str = "label", extra: float = 0.11, columns: int = 2
) -> tuple[Panels, pd.DataFrame]:
    """Return a panel for each value of the column `panel`, with a labelled row for each row of the frame.

    The frame that is returned has in `axes` and `level` where each row is drawn. The unit of the y axes are inches; a
    row has `extra` inches besides those of its `text`. Many rows are in several columns.
    """
    columns = min(frame["panel"].nunique(), columns, math.ceil(len(frame) / MAX_ROWS))
    texts = in_lines(frame[text])
    heights = pd.Series([LINE * (one.count("\n") + 1) + extra for one in texts], frame.index)
    by_panel = heights.groupby(frame["panel"], sort=False)
    found = uneven_panels(title, by_panel.sum().tolist(), columns, sharex=True)
    axes = dict(zip(frame["panel"].unique(), found.axes, strict=True))
    placed = frame.assign(axes=frame["panel"].map(axes), level=by_panel.cumsum() - heights / 2, text=texts)
    for panel, own in placed.groupby("panel", sort=False):
        axes[panel].set(yticks=own["level"], yticklabels=own["text"], ylim=(heights[own.index].sum(), 0))
        axes[panel].set_title(found.lines(str(panel)), loc="left", weight="bold")
        axes[panel].grid(visible=False, axis="y")
    return found, placed


def in_lines(texts: Iterable[str], letters: int = LETTERS) -> list[str]:
    """Return the labels of rows, each in lines of so many letters."""
    return ["\n".join(fill(line, max(letters, LETTERS)) for line in text.split("\n")) for text in texts]


def write_beside(axes: Axes, level: float, text: str) -> None:
    """Write a text on the right of a row."""
    axes.text(1.02, level, text, transform=axes.get_yaxis_transform(), va="center")


def colour_bar(panels: Panels, label: str) -> None:
    """Draw the scale of colours that all panels of heat maps share."""
    images = [axes.collections[0] for axes in panels.axes if axes.collections]
    bar = panels.figure.subfigs[0].colorbar(images[0], ax=panels.axes, aspect=30, pad=0.01, fraction=0.03, label=label)
    bar.outline.set_visible(False)


def heat_map(axes: Axes, grid: pd.DataFrame, **look: Any) -> None:
    """Draw a frame as a heat map, with some of its names on both axes where there are many."""
    look |= {"cbar": False, "xticklabels": False, "yticklabels": False}  # seaborn would keep 13 MB for each label
    sns.heatmap(grid, ax=axes, **look)
    for axis, names in ((axes.xaxis, grid.columns), (axes.yaxis, grid.index)):
        step = len(names) // MAX_TICKS + 1
        axis.set_ticks([0.5 + at for at in range(0, len(names), step)], [str(name) for name in names[::step]])
    axes.set(xlabel="", ylabel="")
    axes.tick_params("x", labelrotation=90 if sum(len(str(x)) for x in grid) > 24 else 0)
    axes.tick_params("y", labelrotation=0)


# Axes


def percent_limits(conditions: pd.DataFrame, largest: float) -> tuple[float, float]:
    """Return the limits of an axis of the metrics of conditions in percent, of which `largest` is the largest value.

    All shares of examples have the same axis, up to 100; BLEU and chrF, which rarely come near 100, have one up to the
    next ten.
    """
    corpus = conditions["metric"].isin(CORPUS_METRICS).all()
    top = 10 * min(10, max(1, math.ceil(largest / 10))) if corpus else 100
    return -0.03 * top, 1.03 * top


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


# Conditions in panels and as series


def in_panels(conditions: pd.DataFrame, by_split: bool = False) -> pd.DataFrame:
    """Return the conditions with a result and the column `panel`: their test set.

    Or `by_split` all conditions and the split scheme, where runs count once. Panels keep their order; the conditions of
    each are in the order of the legend.
    """
    frame = conditions.drop_duplicates("experiment") if by_split else conditions[conditions["mean"].notna()]
    digests = frame["examples"].map(lambda digest: f" ({digest[:8]})" if digest else "")  # where examples differ
    names = (frame["split"] + " " + frame["corpus"]).str.strip() if by_split else frame["split_label"] + digests
    frame = frame.assign(panel=frame["task"] + " " + names if frame["task"].nunique() > 1 else names)
    order: dict[Any, list[str]] = {"panel": [*frame["panel"].unique()], "label": [*styles_of(frame)]}
    return frame.sort_values([*order], key=lambda column: column.map(order[column.name].index))


# How a series is drawn


def style_number(number: int, colour: str) -> Style:
    """Return one of the styles with this colour; 28 of them are distinct."""
    return {"color": colour, "marker": MARKERS[number % len(MARKERS)], "ls": LINES[number % len(LINES)]}


def styles_of(frame: pd.DataFrame) -> dict[str, Style]:
    """Return the style of each value of the column `label`, in the order of the legend, by the column `arch`.

    An architecture has one colour; its labels differ in marker and line. Sorts `dim=64` before `dim=128`.
    """

    def key(label: str) -> list[Any]:
        return [float(x) if number % 2 else x for number, x in enumerate(re.split(r"(\d+(?:\.\d+)?)", label))]

    return {
        label: style_number(number, colour)
        for arch, colour in architecture_colours(frame["arch"]).items()
        for number, label in enumerate(sorted(frame[frame["arch"] == arch]["label"].unique(), key=key))
    }


def architecture_colours(architectures: Iterable[str]) -> dict[str, str]:
    """Return the colour of each architecture: the same in all plots, but for those of several plug-ins in one plot."""
    names = set(architectures)
    others = {name: OTHER_COLOURS[n % len(OTHER_COLOURS)] for n, name in enumerate(sorted(names - COLOURS.keys()))}
    return {name: colour for name, colour in COLOURS.items() if name in names} | others


def legend_handles(styles: Mapping[Any, Style], lines: bool = False, markers: bool = True) -> list[Any]:
    """Return a legend handle for each series, as points, as lines, or both."""
    unlike = ({} if lines else {"ls": ""}) | ({} if markers else {"marker": ""})
    return [Line2D([], [], **own | unlike, ms=4, label=fill(str(name), MAX_LETTERS)) for name, own in styles.items()]


def draw_line(axes: Axes, points: pd.DataFrame, style: Style) -> None:
    """Draw the column `mean` against the index, and a band between `low` and `high` where they are numbers."""
    look = style if len(points) <= MAX_MARKERS else style | {"marker": ""}
    axes.plot(points.index, points["mean"], **look, ms=3.5, mec="white", mew=0.4, lw=1.4, zorder=3)
    if points["low"].notna().any():
        low, high = (points[end].fillna(points["mean"]) for end in ("low", "high"))
        axes.fill_between(points.index, low, high, color=style["color"], alpha=0.18, lw=0)


def draw_mean(axes: Axes, row: Any, level: float, style: Style, size: float = 5.5) -> None:
    """Draw a condition's mean with its interval at a height."""
    axes.hlines(level, row.low, row.high, color=style["color"], lw=1.6, zorder=3)
    axes.plot(row.mean, level, **style, ms=size, mec="white", mew=0.6, zorder=5)


def draw_seeds(axes: Axes, values: Sequence[float], level: float, colour: str) -> None:
    """Draw the results of several seeds as dots at a height."""
    if len(values) > 1:
        axes.scatter(values, [level] * len(values), color=colour, s=7, alpha=0.6, lw=0, zorder=4)


def seeds_handle(label: str = "one seed", colour: str = "0.4") -> Line2D:
    """Return the legend handle of what `draw_seeds` draws."""
    return Line2D([], [], lw=0, marker="o", ms=2.5, alpha=0.6, color=colour, label=label)


# Words: the line about the runs under the axes, and alt texts


def run_caption(conditions: pd.DataFrame) -> str:
    """Return seeds, steps and model sizes: `5 seeds per condition; 3,000 steps; 0.665M to 0.668M parameters`."""
    parameters = [run.result.parameters for runs in conditions["runs"] for run in runs]
    seeds = count_range([len(runs) for runs in conditions["runs"] if runs], "seed")
    sizes = dict.fromkeys(map(short_number, (min(parameters), max(parameters))))
    steps = count_range([int(config.get("train.steps", 0)) for config in conditions["config"]], "step")
    diverged = sum(map(len, conditions.drop_duplicates("experiment")["diverged"]))
    lost = f"; {plural(diverged, 'run')} diverged and left out" * bool(diverged)
    return f"{'One seed' if seeds == '1 seed' else seeds} per condition; {steps}; {' to '.join(sizes)} parameters{lost}"


def metric_label(conditions: pd.DataFrame) -> str:
    """Return the axis label of the tasks' main metrics: `exact match (%)`, `exact match, translation: BLEU (%)`."""
    names = {task: metric_name(metric) for task, metric in zip(conditions["task"], conditions["metric"], strict=True)}
    if len(set(names.values())) == 1:
        return f"{next(iter(names.values()))} (%)"
    others = [f"{task}: {name}" for task, name in names.items() if name != "exact match"]
    return ", ".join(["exact match", *others] if len(others) < len(names) else others) + " (%)"


def describe(conditions: pd.DataFrame, text: Callable[[Condition], str]) -> str:
    """Return what an alt text says about each condition, by panel; conditions without a text are left out."""
    parts: dict[str, list[str]] = {}
    for row in rows_of(conditions):
        if said := text(row):
            parts.setdefault(row.panel, []).append(f"{row.label} {said}")
    return join([f"{panel}: {', '.join(own)}" for panel, own in parts.items()])


def join(parts: Sequence[str], max_parts: int = 12) -> str:
    """Join parts of an alt text; those beyond `max_parts` are counted."""
    return some(parts, max_parts, "; ", "; and ")
