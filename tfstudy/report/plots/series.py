"""What plots share besides their layout: which conditions stand together, how a series is drawn, and the words."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.summary import test_set_labels
from tfstudy.report.markup import count_range, short_number
from tfstudy.runs.display import metric_name

if TYPE_CHECKING:
    import pandas as pd

COLOURS = {"transformer": "#0072B2", "lstm": "#D55E00", "cnn": "#009E73"}  # Okabe & Ito 2008, safe for the colour-blind
OTHER_COLOURS = ("#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7F7F7F")  # for other architectures
MARKERS = ("o", "D", "s", "^", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oo")
MAX_LETTERS = 34  # in a line of a legend
MAX_MARKERS = 25  # longer lines have none


class SeriesStyle(NamedTuple):
    """How a series is drawn."""

    colour: str
    marker: str
    line: Any  # a line style of matplotlib
    hatch: str  # of its bars

    @property
    def bar(self) -> dict[str, Any]:
        """Matplotlib's options for a bar."""
        return {"facecolor": self.colour, "hatch": self.hatch, "edgecolor": "white", "linewidth": 0.4}


Styles = Mapping[Any, SeriesStyle]  # by label


def style_number(number: int, colour: str) -> SeriesStyle:
    """Return one of the styles with this colour; 28 of them are distinct."""
    return SeriesStyle(colour, *(options[number % len(options)] for options in (MARKERS, LINES, HATCHES)))


def series_styles(architectures: Mapping[str, str]) -> dict[str, SeriesStyle]:
    """Return the style of each label, given the architecture of each label, in the order of the legend.

    An architecture has the same colour in all plots; its labels differ in marker and line.
    """
    styles: dict[str, SeriesStyle] = {}
    for arch, colour in architecture_colours(architectures.values()).items():
        labels = sorted((label for label, own in architectures.items() if own == arch), key=_natural_key)
        styles |= {label: style_number(number, colour) for number, label in enumerate(labels)}
    return styles


def condition_styles(conditions: Iterable[Condition]) -> dict[str, SeriesStyle]:
    """Return the style of each condition by its label."""
    return series_styles({condition.label: condition.arch for condition in conditions})


def architecture_colours(architectures: Iterable[str]) -> dict[str, str]:
    """Return the colour of each architecture: a fixed one, or one chosen by its name, or the next unused one."""
    names = set(architectures)
    colours = {name: colour for name, colour in COLOURS.items() if name in names}
    for name in sorted(names - colours.keys()):
        start = crc32(name.encode()) % len(OTHER_COLOURS)
        candidates = (*OTHER_COLOURS[start:], *OTHER_COLOURS[:start])
        colours[name] = next((colour for colour in candidates if colour not in colours.values()), candidates[0])
    return colours


def _natural_key(label: str) -> list[Any]:
    """Sort `dim=64` before `dim=128`, and `dropout=0.15` before `dropout=0.3`."""
    return [float(part) if number % 2 else part for number, part in enumerate(re.split(r"(\d+(?:\.\d+)?)", label))]


def legend_handles(styles: Styles, kind: str = "points", size: float = 5) -> list[Any]:
    """Return a legend handle for each series, as `points`, `lines` or `bars`; `size` is that of markers in points."""
    labels = {name: fill(str(name), MAX_LETTERS) for name in styles}
    if kind == "bars":
        return [Patch(label=labels[name], **style.bar) for name, style in styles.items()]
    line: dict[str, Any] = {"ls": ""} if kind == "points" else {}
    return [
        Line2D([], [], color=own.colour, marker=own.marker, ms=size, label=labels[name], **{"ls": own.line} | line)
        for name, own in styles.items()
    ]


def draw_line(axes: Axes, points: "pd.DataFrame", style: SeriesStyle, **options: Any) -> None:
    """Draw the column `mean` against the index, and a band between `low` and `high` where they are numbers."""
    marker = style.marker if len(points) <= MAX_MARKERS else ""
    look = {"color": style.colour, "ls": style.line, "marker": marker, "ms": 3.5, "mec": "white", "mew": 0.4, "lw": 1.4}
    axes.plot(points.index, points["mean"], **look | {"zorder": 3} | options)
    if points["low"].notna().any():
        low, high = (points[end].fillna(points["mean"]) for end in ("low", "high"))
        axes.fill_between(points.index, low, high, color=style.colour, alpha=0.18, lw=0)


def draw_bars(axes: Axes, points: "pd.DataFrame", styles: Styles, horizontal: bool = False) -> None:
    """Draw the column `mean` as bars, with a line from `low` to `high`, at the places 0, 1, 2, ... of the column `x`.

    Bars at one place differ in the column `label`.
    """
    labels = [label for label in styles if label in set(points["label"])]
    width, draw = 0.84 / len(labels), axes.barh if horizontal else axes.bar
    for number, label in enumerate(labels):
        own = points[points["label"] == label]
        centres = own["x"] + (number - (len(labels) - 1) / 2) * width
        draw(centres, own["mean"], width, **styles[label].bar)
        (axes.hlines if horizontal else axes.vlines)(centres, own["low"], own["high"], color="0.15", lw=0.9)


def grouped(frame: "pd.DataFrame", column: str) -> "list[tuple[str, pd.DataFrame]]":
    """Return the rows of each text in a column, in their order."""
    return [(str(name), own) for name, own in frame.groupby(column, sort=False)]


# Which conditions share a panel


def group_by_test_set(conditions: Sequence[Condition]) -> dict[str, list[Condition]]:
    """Group the conditions by test set, each group in the order of the legend."""
    order, names = list(condition_styles(conditions)), test_set_labels(conditions)
    groups: dict[str, list[Condition]] = {names[condition.place]: [] for condition in conditions}
    for condition in sorted(conditions, key=lambda c: order.index(c.label)):
        groups[names[condition.place]].append(condition)
    return groups


def group_by_split(conditions: Sequence[Condition]) -> dict[str, list[Condition]]:
    """Group the conditions by split scheme, in the order of the legend; the test sets of the same runs count once."""
    whole = [
        c._replace(place=(c.task, c.split, c.corpus), split_label=f"{c.split} {c.corpus}".strip()) for c in conditions
    ]
    groups = group_by_test_set(whole)
    return {name: list({c.label: c for c in members}.values()) for name, members in groups.items()}


# Words: the line about the runs under the axes, and alt texts


def run_caption(conditions: Sequence[Condition]) -> str:
    """Return seeds, steps and model sizes: `5 seeds per condition; 3,000 steps; 0.665M to 0.668M parameters`."""
    parameters = [run.result.parameters for condition in conditions for run in condition.runs]
    seeds = count_range([len(condition.runs) for condition in conditions if condition.runs], "seed")
    sizes = dict.fromkeys(map(short_number, (min(parameters), max(parameters))))
    parts = [
        f"{'One seed' if seeds == '1 seed' else seeds} per condition",
        count_range([int(condition.config.get("train.steps", 0)) for condition in conditions], "step"),
        f"{' to '.join(sizes)} parameters",
    ]
    return "; ".join(parts)


def main_metrics(conditions: Iterable[Condition]) -> dict[str, str]:
    """Return the main metric of each task."""
    return {condition.task: condition.metric for condition in conditions}


def metric_label(metrics: Mapping[str, str]) -> str:
    """Return the axis label of the tasks' main metrics: `exact match (%)`, `exact match, translation: BLEU (%)`."""
    names = {task: metric_name(metric) for task, metric in metrics.items()}
    if len(set(names.values())) == 1:
        return f"{next(iter(names.values()))} (%)"
    others = [f"{task}: {name}" for task, name in names.items() if name != "exact match"]
    return ", ".join(["exact match", *others] if len(others) < len(names) else others) + " (%)"


def describe(groups: Mapping[str, Sequence[Condition]], text: Callable[[Condition], str]) -> str:
    """Return what an alt text says about each condition; conditions without a text are left out."""
    texts = {name: [(c.label, text(c)) for c in members] for name, members in groups.items()}
    described = {name: [f"{label} {text}" for label, text in pairs if text] for name, pairs in texts.items()}
    return join([f"{name}: {', '.join(parts)}" for name, parts in described.items() if parts])


def join(parts: Sequence[str], max_parts: int = 12) -> str:
    """Join parts of an alt text; those beyond `max_parts` are counted."""
    return "; ".join([*parts[:max_parts], *([f"and {len(parts) - max_parts} more"] if len(parts) > max_parts else [])])
