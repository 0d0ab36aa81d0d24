"""The layout that all plots share: panels in rows, labelled rows under headings, a legend on the right, one theme."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple, TypeVar

import matplotlib as mpl
import matplotlib.style
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tasks.errors import UserError
from tfstudy.analysis.conditions import Condition, test_set_label
from tfstudy.analysis.intervals import clipped, interval
from tfstudy.analysis.metrics import metric_name
from tfstudy.report.plots.series_style import SeriesStyle, Styles, condition_styles
from tfstudy.runs.files import write_atomically

PERCENT = (-3.0, 103.0)  # limits of an axis of percentages
LETTER, LINE, HEADING = 0.068, 0.15, 0.3  # inches of a letter, of a line of text, of a heading above rows
MAX_PIXELS = 60_000  # matplotlib draws at most 65,536
MAX_ROWS = 45  # in a column of rows

Item = TypeVar("Item")


class Plot(NamedTuple):
    """A figure, its name and the text for readers who cannot see it."""

    name: str
    figure: Figure
    alt: str

    def encode(self, file_type: str, salt: str = "tfstudy") -> bytes:
        """Return the plot as a file; the same records give the same bytes.

        `salt` determines the ids within an SVG, so that plots on one page can have different ids.
        """
        buffer = io.BytesIO()
        undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(file_type)
        dpi = min(160, MAX_PIXELS / max(self.figure.get_size_inches()))
        with theme(), mpl.rc_context({"svg.hashsalt": salt}):
            self.figure.savefig(buffer, format=file_type[1:], dpi=dpi, metadata=undated)
        return buffer.getvalue()

    def svg(self) -> str:
        """Return the plot as the text of an SVG file, with ids unlike those of other plots."""
        return self.encode(".svg", self.name).decode()

    def save(self, path: Path) -> None:
        """Write the plot in the format of the path's suffix; `UserError` if the file cannot be written."""
        try:
            write_atomically(path, self.encode(path.suffix.lower()))
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None


@contextmanager
def theme() -> Iterator[None]:
    """Draw and save in our style, whatever the user's own matplotlib settings are."""
    ours = {"font.family": "DejaVu Sans", "svg.hashsalt": "tfstudy", "axes.titlesize": 9, "figure.titlesize": 10}
    ours |= {"legend.frameon": False, "grid.color": "0.88", "grid.linewidth": 0.7, "axes.edgecolor": "0.75"}
    with matplotlib.style.context(["default", sns.axes_style("whitegrid"), sns.plotting_context("paper"), ours]):
        yield


def panels(
    title: str, count: int, size: tuple[float, float] = (2.9, 2.2), columns: int = 3, legend: Sequence[Any] = ()
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its equal panels of `size` inches, a single one enlarged, with these handles as legend."""
    width, height = (1.35 * side if count == 1 else side for side in size)
    return uneven_panels(title, [height] * count, width, 2 if count == 4 and columns == 3 else columns, legend)


def uneven_panels(
    title: str, heights: Sequence[float], width: float, columns: int, legend: Sequence[Any]
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, a height in inches for each, filled row by row."""
    columns = min(columns, len(heights))
    rows = [max(heights[first : first + columns]) for first in range(0, len(heights), columns)]
    labels = [handle.get_label().splitlines() for handle in legend]
    legend_width = 0.6 + LETTER * max(len(line) for label in labels for line in label) if labels else 0.0
    legend_height = 0.3 + sum(0.155 * len(label) + 0.065 for label in labels)
    total = max(columns * width, 0.085 * len(title)) + legend_width, max(sum(rows) + 0.4, legend_height)
    figure = Figure(figsize=total, layout=ConstrainedLayoutEngine(w_pad=0.07, h_pad=0.07))
    figure.suptitle(title, x=0.01, ha="left")
    axes = list(figure.subplots(len(rows), columns, squeeze=False, height_ratios=rows).flat)
    for unused in axes[len(heights) :]:
        unused.remove()
    if legend:
        figure.legend(handles=legend, loc="outside right upper", handlelength=2.6)
    return figure, axes[: len(heights)]


def row_panels(
    title: str,
    groups: Mapping[str, Sequence[Item]],
    label: Callable[[Item], str],
    xlabel: str,
    width: float,
    legend: Sequence[Any],
    max_columns: int = 3,
) -> tuple[Figure, list[tuple[Axes, list[tuple[Item, float]]]]]:
    """Return a figure with a row for each item below the heading of its group, and the y positions in each panel.

    `width` is that of a panel without its labels, in inches. Many rows are distributed over several panels.
    """
    columns = balanced_columns(groups, max_columns)
    labels = {id(item): label(item) for items in groups.values() for item in items}
    heights = [sum(HEADING + sum(_row_height(labels[id(i)]) for i in items) for items in c.values()) for c in columns]
    width += LETTER * max(len(line) for text in labels.values() for line in text.split("\n"))
    height = max(heights) + 0.35 + LINE * len(xlabel.splitlines())
    figure, panels = uneven_panels(title, [height] * len(columns), width, len(columns), legend)
    rows = []
    for axes, column in zip(panels, columns, strict=True):
        levels = _place_rows(axes, {name: [labels[id(i)] for i in items] for name, items in column.items()})
        axes.set(xlabel=xlabel, ylim=(max(heights) + 0.04, 0.04))
        rows.append((axes, list(zip([i for items in column.values() for i in items], levels, strict=True))))
    return figure, rows


def _place_rows(axes: Axes, groups: Mapping[str, Sequence[str]]) -> list[float]:
    """Draw the headings and labels; return the positions of the rows in inches from the top of the panel."""
    top, levels = 0.0, []
    style: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "weight": "bold", "size": 8}
    for heading, labels in groups.items():
        axes.axhline(top + 0.04, color="0.85", lw=0.8)
        axes.text(0, top + 0.2, f" {heading}", **style)
        top += HEADING
        for label in labels:
            levels.append(top + _row_height(label) / 2)
            top += _row_height(label)
    axes.set_yticks(levels, [label for labels in groups.values() for label in labels])
    axes.grid(visible=False, axis="y")
    return levels


def _row_height(label: str) -> float:
    return 0.06 + LINE * (label.count("\n") + 1)


def label_axes(axes: Sequence[Axes], x: str, y: str) -> None:
    """Label the x axes of the lowest panels and the y axes of the first panel in each row."""
    for number, panel in enumerate(axes):
        spec = panel.get_subplotspec()
        assert spec is not None
        panel.set_xlabel(x if number + spec.get_gridspec().ncols >= len(axes) else "")
        panel.set_ylabel(fill(y, 26) if spec.is_first_col() else "")


def draw_curve(
    axes: Axes, points: Mapping[int, Sequence[float]], style: SeriesStyle, percent: bool, width: float = 1.3
) -> None:
    """Draw the mean over seeds at each x and, where there are several seeds, a band for its 95 % interval.

    Seaborn computes both on the scale of the y axis, so on a logarithmic axis the mean is the geometric mean.
    """

    def ends(values: Sequence[float]) -> tuple[float, float]:
        estimate = clipped(interval(values)) if percent else interval(values)
        return estimate.low, estimate.high

    sns.lineplot(
        x=[x for x, values in points.items() for _ in values], y=[y for values in points.values() for y in values],
        ax=axes, errorbar=ends, err_kws={"alpha": 0.18, "lw": 0}, color=style.colour, linestyle=style.line,
        lw=width, marker=style.marker if len(points) <= 25 else "", ms=3.5, mec="white", mew=0.4,
    )  # fmt: skip


def legend_handles(styles: Styles, kind: str = "points") -> list[Any]:
    """Return a legend handle for each series, as `points`, `lines` or `bars`."""
    if kind == "bars":
        return [Patch(label=wrap(name), **style.bar) for name, style in styles.items()]
    return [
        Line2D([], [], color=s.colour, marker=s.marker, ms=5, ls=s.line if kind == "lines" else "", label=wrap(name))
        for name, s in styles.items()
    ]


def wrap(label: str) -> str:
    """Return a condition's label in lines of at most 34 letters."""
    return fill(shorten(label), 34, break_long_words=False, break_on_hyphens=False)


def shorten(label: str) -> str:
    """Return a condition's label without the name of the default preset, which adds nothing to its settings."""
    return label.replace(" default ", " ")


def metric_label(metrics: Mapping[str, str]) -> str:
    """Return the axis label of the tasks' main metrics: `exact match (%)`, `exact match, translation: BLEU (%)`."""
    names = {task: metric_name(metric) for task, metric in metrics.items()}
    if len(set(names.values())) == 1:
        return f"{next(iter(names.values()))} (%)"
    others = [f"{task}: {name}" for task, name in names.items() if name != "exact match"]
    return ", ".join(["exact match", *others] if len(others) < len(names) else others) + " (%)"


def group_by_test_set(conditions: Sequence[Condition]) -> dict[str, list[Condition]]:
    """Group the conditions by test set, each group in the order of the legend."""
    order = list(condition_styles(conditions))
    groups: dict[str, list[Condition]] = {test_set_label(condition, conditions): [] for condition in conditions}
    for condition in sorted(conditions, key=lambda c: order.index(c.label)):
        groups[test_set_label(condition, conditions)].append(condition)
    return groups


def group_by_split(conditions: Sequence[Condition]) -> dict[str, list[Condition]]:
    """Group the conditions by split scheme, in the order of the legend; the test sets of the same runs count once."""
    groups = group_by_test_set([condition._replace(test_set="test") for condition in conditions])
    return {name: list({c.label: c for c in members}.values()) for name, members in groups.items()}


def trained_range(conditions: Sequence[Condition], tag: str) -> tuple[int, int] | None:
    """Return the smallest and largest value of a tag in validation, which is in distribution; None without it."""
    splits = [run.result.splits.get("validation") for condition in conditions for run in condition.runs]
    lengths = [int(value) for scores in splits if scores for value in scores.slices.get(tag, {}) if value.isdecimal()]
    return (min(lengths), max(lengths)) if lengths else None


def balanced_columns(groups: Mapping[str, Sequence[Item]], max_columns: int = 3) -> list[dict[str, Sequence[Item]]]:
    """Distribute the groups over at most this many columns with a similar number of items in each."""
    total = sum(map(len, groups.values()))
    count = min(max_columns, ceil(total / MAX_ROWS))
    columns: list[dict[str, Sequence[Item]]] = [{} for _ in range(count)]
    before = 0
    for name, items in groups.items():
        columns[before * count // total][name] = items
        before += len(items)
    return [column for column in columns if column]


def describe(groups: Mapping[str, Sequence[Condition]], text: Callable[[Condition], str]) -> str:
    """Return what an alt text says about each condition; conditions without a text are left out."""
    texts = {name: [(c.label, text(c)) for c in members] for name, members in groups.items()}
    described = {name: [f"{label} {text}" for label, text in pairs if text] for name, pairs in texts.items()}
    return join([f"{name}: {', '.join(parts)}" for name, parts in described.items() if parts])


def join(parts: Sequence[str], max_parts: int = 12) -> str:
    """Join parts of an alt text; those beyond `max_parts` are counted."""
    return "; ".join([*parts[:max_parts], *([f"and {len(parts) - max_parts} more"] if len(parts) > max_parts else [])])
