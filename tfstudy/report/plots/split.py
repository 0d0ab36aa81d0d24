"""`--kind split`: each condition on each test set, beside published figures and trivial systems."""

from collections.abc import Sequence
from statistics import mean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.published import Figure, beside, papers
from tfstudy.errors import UserError
from tfstudy.report.notes import whole_scores
from tfstudy.report.plots import layout, series

BELOW, ABOVE = 0.065, -0.06  # inches from the mean of a row to its seeds and to the published figures
TRIVIAL_LINES, TRIVIAL_COLOUR = (":", "--", "-."), "0.45"
SPREADS = {
    "sd": "standard deviation", "sem": "standard error", "ci95": "95 % interval", "range": "lowest to highest run",
    "unknown": "±, not explained",
}  # fmt: skip
# an outline in the middle of its marker: as text it would be mathematical, which the theme turns off
ABOUT = TextPath((-0.419, -0.313), "≈", size=1, prop=FontProperties(family="DejaVu Sans"))
SIGNS: dict[str, tuple[Any, str, str]] = {  # of a published figure: marker, its face, and its meaning
    "same": ("D", "black", "published, the settings of these runs"),
    "other": ("D", "white", "published, other settings"),
    "approximate": (ABOUT, "black", "published, approximate"),
    "upper_bound": ("<", "white", "published upper bound"),
    "lower_bound": (">", "white", "published lower bound"),
}


def split(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the main metric of each condition on each test set: mean, 95 % interval, seeds and published figures.

    Lines show the trivial systems that were evaluated on the same test sets.
    """
    metrics = series.main_metrics(conditions)
    shown = [condition for condition in conditions if condition.each_seed]
    if not shown:
        raise UserError("no finished run was evaluated on a test set")
    label, styles = series.metric_label(metrics), series.condition_styles(shown)
    groups = series.group_by_test_set(shown)
    marks = marks_beside([condition for members in groups.values() for condition in members])
    every_mark = [mark for own in marks.values() for mark in own]
    trivial = {condition.key: trivial_results(condition) for condition in shown}
    lines: dict[str, dict[str, Any]] = {
        name: {"color": TRIVIAL_COLOUR, "ls": TRIVIAL_LINES[number % len(TRIVIAL_LINES)], "lw": 1.1}
        for number, name in enumerate(dict.fromkeys(name for own in trivial.values() for name in own))
    }
    texts = {name: [(c.label, 0.05) for c in members] for name, members in groups.items()}
    panels, levels = layout.rows(sheet, "Generalisation to each test set", texts, 4.0)
    for axes, places, members in zip(panels.axes, levels, groups.values(), strict=True):
        for level, condition in zip(places, members, strict=True):
            own = marks[condition.key]
            for name, value in trivial[condition.key].items():
                axes.vlines(value, level - 0.1, level + 0.1, zorder=2, **lines[name])
            _draw_condition(axes, condition, level, styles[condition.label])
            for mark in own:
                _draw_mark(axes, mark, level + ABOVE)
            written = [f"[{mark.source}]" if sheet == layout.COLUMN else f"{mark.text} [{mark.source}]" for mark in own]
            layout.write_beside(axes, level, "  ".join(written))
        if any(marks[condition.key] for condition in members):
            layout.write_beside(axes, -0.1, "published")
    panels.axes[0].set_xlim(layout.percent_limits(metrics.values(), max(axes.dataLim.x1 for axes in panels.axes)))
    panels.label(label, "")
    legend = [*_legend(shown), *(Line2D([], [], label=f"trivial system: {n}", **s) for n, s in lines.items())]
    means = series.describe(groups, lambda c: _describe(c, marks[c.key]))
    notes = [series.run_caption(shown), *_sources(every_mark)]
    alt = f"Mean {label} on each test set: {means}."
    return panels.plot("split", alt, [*legend, *_mark_handles(every_mark)], notes)


def _describe(condition: Condition, marks: Sequence["Mark"]) -> str:
    """Return the mean, and the published figures under the settings of these runs."""
    own = [f"{mark.text} with the same settings" for mark in marks if mark.same_settings]
    return f"{condition.mean:.1f}" + (f" (published: {', '.join(own)})" if own else "")


def _legend(conditions: Sequence[Condition]) -> list[Any]:
    """Return handles for the marks of our runs."""
    grey: dict[str, Any] = {"color": "0.4", "marker": "o"}
    seeds = [len(condition.each_seed) for condition in conditions]
    within = "\n(one seed: within its run)" if min(seeds) == 1 else ""
    handles = [Line2D([], [], lw=1.6, ms=5, label=f"mean and 95 % interval{within}", **grey)]
    return handles + ([Line2D([], [], lw=0, ms=2.5, alpha=0.6, label="one seed", **grey)] if max(seeds) > 1 else [])


def _draw_condition(axes: Axes, condition: Condition, level: float, style: series.SeriesStyle) -> None:
    values = list(condition.each_seed.values())
    axes.hlines(level, condition.low, condition.high, color=style.colour, lw=1.6, zorder=3)
    if len(values) > 1:
        axes.scatter(values, [level + BELOW] * len(values), color=style.colour, s=7, alpha=0.6, lw=0, zorder=4)
    axes.plot(condition.mean, level, color=style.colour, marker=style.marker, ms=5.5, mec="white", mew=0.6, zorder=5)


def trivial_results(condition: Condition) -> dict[str, float]:
    """Return the metric of each trivial system, such as copying the source, in percent, the mean over runs."""
    found: dict[str, list[float]] = {}
    for scores in whole_scores(condition):
        for name, metrics in scores.baselines.items():
            if condition.metric in metrics:
                found.setdefault(name, []).append(100 * metrics[condition.metric])
    return {name: mean(values) for name, values in found.items()}


# Published figures


class Mark(NamedTuple):
    """A published figure in the row of a condition."""

    figure: Figure
    same_settings: bool  # as the runs of the row
    source: int  # number of the paper in the notes

    @property
    def sign(self) -> str:
        """Its key in `SIGNS`."""
        kind = self.figure.value_kind
        return kind if kind in SIGNS else "same" if self.same_settings else "other"

    @property
    def text(self) -> str:
        """The figure as text, and that it is of one run."""
        return f"{self.figure.text}{' (one run)' if self.figure.value_kind == 'single' else ''}"

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of its spread; None without one."""
        figure = self.figure
        if figure.spread is not None:
            return max(0.0, figure.value - figure.spread), min(100.0, figure.value + figure.spread)
        if figure.spread_low is not None and figure.spread_high is not None:
            return figure.spread_low, figure.spread_high
        return None


def marks_beside(conditions: Sequence[Condition]) -> dict[str, list[Mark]]:
    """Return the figures in the row of each condition, by its key: those that are beside it in a table.

    If some of the conditions has the settings of a figure, the figure is beside this condition only.
    """
    quoted = {condition.key: beside(condition, condition.metric) for condition in conditions}
    same = {one.figure.id for own in quoted.values() for one in own if one.same_settings}
    sources: dict[str, int] = {}
    marks: dict[str, list[Mark]] = {}
    for key, own in quoted.items():
        shown = [one for one in own if one.same_settings or one.figure.id not in same]
        numbers = [sources.setdefault(one.figure.paper, len(sources) + 1) for one in shown]
        marks[key] = [Mark(one.figure, one.same_settings, n) for one, n in zip(shown, numbers, strict=True)]
    return marks


def _draw_mark(axes: Axes, mark: Mark, level: float) -> None:
    """Draw a figure and its spread at this height."""
    if mark.ends:
        axes.plot(mark.ends, [level, level], color="black", lw=0.7, zorder=2)
    axes.plot(mark.figure.value, level, **_mark_style(mark.sign), zorder=2.5, clip_on=False)


def _mark_style(sign: str) -> dict[str, Any]:
    marker, face, _ = SIGNS[sign]
    size, edge = (7.0, 0.0) if sign == "approximate" else (3.4, 0.8)  # an edge would join its strokes
    return {"marker": marker, "ms": size, "mfc": face, "mec": "black", "mew": edge, "color": "black"}


def _mark_handles(marks: Sequence[Mark]) -> list[Any]:
    """Return the legend handles of the marks that are drawn."""
    drawn = {mark.sign for mark in marks}
    handles = [Line2D([], [], lw=0, label=SIGNS[sign][2], **_mark_style(sign)) for sign in SIGNS if sign in drawn]
    kinds = list(dict.fromkeys(SPREADS[mark.figure.spread_kind or "range"] for mark in marks if mark.ends))
    bar = f"published spread:\n{' or '.join(kinds)}"
    return handles + ([Line2D([], [], color="black", lw=0.7, label=bar)] if kinds else [])


def _sources(marks: Sequence[Mark]) -> list[str]:
    """Return the note that gives the papers by their numbers; none without marks."""
    texts = {}
    for figure, _, number in marks:
        quoted = f", quoted by {papers()[figure.quoted_from].short}" if figure.quoted_from in papers() else ""
        texts[number] = f"[{number}]\N{NO-BREAK SPACE}{figure.citation}{quoted}"
    return [f"Published: {'; '.join(texts[number] for number in sorted(texts))}"] if texts else []
