"""What plots share besides their layout: which conditions stand together, how a series is drawn, and the words."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.summary import rows_of
from tfstudy.report.markup import count_range, short_number
from tfstudy.runs.schema import metric_name

if TYPE_CHECKING:
    import pandas as pd

COLOURS = {"transformer": "#0072B2", "lstm": "#D55E00", "cnn": "#009E73"}  # Okabe & Ito 2008, safe for the colour-blind
OTHER_COLOURS = ("#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7F7F7F")  # for other architectures
MARKERS = ("o", "D", "s", "^", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
MAX_LETTERS = 34  # in a line of a legend
MAX_MARKERS = 25  # longer lines have none


# Which conditions share a panel


def in_panels(conditions: "pd.DataFrame", by_split: bool = False) -> "pd.DataFrame":
    """Return conditions with the column `panel`: the test set, or `by_split` the split scheme, where runs count once.

    Panels keep their order; the conditions of each are in the order of the legend.
    """
    frame = conditions.drop_duplicates("experiment") if by_split else conditions
    names = (frame["split"] + " " + frame["corpus"]).str.strip() if by_split else frame["split_label"]
    frame = frame.assign(panel=frame["task"] + " " + names if frame["task"].nunique() > 1 else names)
    order = [[*frame["panel"].unique()], [*styles_of(frame)]]
    places = frame.assign(
        first=frame["panel"].map(order[0].index), second=frame["label"].map(order[1].index)
    ).sort_values(["first", "second"], kind="stable")
    return frame.loc[places.index]


def measured(conditions: "pd.DataFrame") -> "pd.DataFrame":
    """Return the conditions with a result."""
    return conditions[conditions["each_seed"].map(bool)]


# How a series is drawn


class Style(NamedTuple):
    """How a series is drawn."""

    colour: str
    marker: str
    line: Any  # a line style of matplotlib


def style_number(number: int, colour: str) -> Style:
    """Return one of the styles with this colour; 28 of them are distinct."""
    return Style(colour, MARKERS[number % len(MARKERS)], LINES[number % len(LINES)])


def styles_of(frame: "pd.DataFrame") -> dict[str, Style]:
    """Return the style of each value of the column `label`, in the order of the legend, by the column `arch`.

    An architecture has the same colour in all plots; its labels differ in marker and line.
    """
    found: dict[str, Style] = {}
    for arch, colour in architecture_colours(frame["arch"]).items():
        labels = sorted(frame[frame["arch"] == arch]["label"].unique(), key=_natural_key)
        found |= {label: style_number(number, colour) for number, label in enumerate(labels)}
    return found


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


def legend_handles(styles: Mapping[Any, Style], lines: bool = False, markers: bool = True) -> list[Any]:
    """Return a legend handle for each series, as points, as lines, or both."""
    return [
        Line2D([], [], color=own.colour, marker=own.marker * markers, ms=4, ls=own.line if lines else "",
               label=fill(str(name), MAX_LETTERS))
        for name, own in styles.items()
    ]  # fmt: skip


def draw_line(axes: Axes, points: "pd.DataFrame", style: Style, **options: Any) -> None:
    """Draw the column `mean` against the index, and a band between `low` and `high` where they are numbers."""
    marker = style.marker if len(points) <= MAX_MARKERS else ""
    look = {"color": style.colour, "ls": style.line, "marker": marker, "ms": 3.5, "mec": "white", "mew": 0.4, "lw": 1.4}
    axes.plot(points.index, points["mean"], **look | {"zorder": 3} | options)
    if points["low"].notna().any():
        low, high = (points[end].fillna(points["mean"]) for end in ("low", "high"))
        axes.fill_between(points.index, low, high, color=style.colour, alpha=0.18, lw=0)


def draw_mean(axes: Axes, row: Any, level: float, style: Style, size: float = 5.5) -> None:
    """Draw a condition's mean with its interval at a height."""
    axes.hlines(level, row.low, row.high, color=style.colour, lw=1.6, zorder=3)
    axes.plot(row.mean, level, color=style.colour, marker=style.marker, ms=size, mec="white", mew=0.6, zorder=5)


def draw_seeds(axes: Axes, values: Sequence[float], level: float, colour: str) -> None:
    """Draw the results of several seeds as dots at a height."""
    if len(values) > 1:
        axes.scatter(values, [level] * len(values), color=colour, s=7, alpha=0.6, lw=0, zorder=4)


def seeds_handle(label: str = "one seed", colour: str = "0.4") -> Line2D:
    """Return the legend handle of what `draw_seeds` draws."""
    return Line2D([], [], lw=0, marker="o", ms=2.5, alpha=0.6, color=colour, label=label)


# Words: the line about the runs under the axes, and alt texts


def run_caption(conditions: "pd.DataFrame") -> str:
    """Return seeds, steps and model sizes: `5 seeds per condition; 3,000 steps; 0.665M to 0.668M parameters`."""
    parameters = [run.result.parameters for runs in conditions["runs"] for run in runs]
    seeds = count_range([len(runs) for runs in conditions["runs"] if runs], "seed")
    sizes = dict.fromkeys(map(short_number, (min(parameters), max(parameters))))
    steps = count_range([int(config.get("train.steps", 0)) for config in conditions["config"]], "step")
    return f"{'One seed' if seeds == '1 seed' else seeds} per condition; {steps}; {' to '.join(sizes)} parameters"


def metric_label(conditions: "pd.DataFrame") -> str:
    """Return the axis label of the tasks' main metrics: `exact match (%)`, `exact match, translation: BLEU (%)`."""
    names = {task: metric_name(metric) for task, metric in zip(conditions["task"], conditions["metric"], strict=True)}
    if len(set(names.values())) == 1:
        return f"{next(iter(names.values()))} (%)"
    others = [f"{task}: {name}" for task, name in names.items() if name != "exact match"]
    return ", ".join(["exact match", *others] if len(others) < len(names) else others) + " (%)"


def describe(conditions: "pd.DataFrame", text: Callable[[Condition], str]) -> str:
    """Return what an alt text says about each condition, by panel; conditions without a text are left out."""
    parts: dict[str, list[str]] = {}
    for row in rows_of(conditions):
        if said := text(row):
            parts.setdefault(row.panel, []).append(f"{row.label} {said}")
    return join([f"{panel}: {', '.join(own)}" for panel, own in parts.items()])


def join(parts: Sequence[str], max_parts: int = 12) -> str:
    """Join parts of an alt text; those beyond `max_parts` are counted."""
    return "; ".join([*parts[:max_parts], *([f"and {len(parts) - max_parts} more"] if len(parts) > max_parts else [])])
