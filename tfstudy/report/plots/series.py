"""What plots share besides their layout: which conditions stand together, how a series is drawn, and the words."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.summary import rows_of
from tfstudy.errors import some
from tfstudy.report.markup import count_range, short_number
from tfstudy.runs.schema import metric_name

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


def in_panels(conditions: pd.DataFrame, by_split: bool = False) -> pd.DataFrame:
    """Return the conditions with a result and the column `panel`: their test set.

    Or `by_split` all conditions and the split scheme, where runs count once. Panels keep their order; the conditions of
    each are in the order of the legend.
    """
    frame = conditions.drop_duplicates("experiment") if by_split else conditions[conditions["mean"].notna()]
    names = (frame["split"] + " " + frame["corpus"]).str.strip() if by_split else frame["split_label"]
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
    return f"{'One seed' if seeds == '1 seed' else seeds} per condition; {steps}; {' to '.join(sizes)} parameters"


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
