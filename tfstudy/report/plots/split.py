"""`--kind split`: each condition on each test set, beside published figures and trivial systems."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.published import Figure, Quotation, beside, papers
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
    quoted = quotations([condition for members in groups.values() for condition in members])
    figures = [one.figure for own in quoted.values() for one in own]
    sources = {paper: n for n, paper in enumerate(dict.fromkeys(figure.paper for figure in figures), 1)}
    trivial = {condition.key: trivial_results(condition) for condition in shown}
    lines: dict[str, dict[str, Any]] = {
        name: {"color": TRIVIAL_COLOUR, "ls": TRIVIAL_LINES[number % len(TRIVIAL_LINES)], "lw": 1.1}
        for number, name in enumerate(dict.fromkeys(name for own in trivial.values() for name in own))
    }
    texts = {name: [(c.label, 0.05) for c in members] for name, members in groups.items()}
    panels, levels = layout.rows(sheet, "Generalisation to each test set", texts, 4.0)
    for axes, places, members in zip(panels.axes, levels, groups.values(), strict=True):
        for level, condition in zip(places, members, strict=True):
            for name, value in trivial[condition.key].items():
                axes.vlines(value, level - 0.1, level + 0.1, zorder=2, **lines[name])
            _draw_condition(axes, condition, level, styles[condition.label])
            written = []
            for one in quoted[condition.key]:
                _draw_published(axes, one, level + ABOVE)
                written.append(f"{_text(one)} " * (sheet != layout.COLUMN) + f"[{sources[one.figure.paper]}]")
            layout.write_beside(axes, level, "  ".join(written))
        if any(quoted[condition.key] for condition in members):
            layout.write_beside(axes, -0.1, "published")
    panels.axes[0].set_xlim(layout.percent_limits(metrics.values(), max(axes.dataLim.x1 for axes in panels.axes)))
    panels.label(label, "")
    legend = [*_legend(shown), *(Line2D([], [], label=f"trivial system: {n}", **s) for n, s in lines.items())]
    legend += _published_legend([one for own in quoted.values() for one in own])

    def described(condition: Condition) -> str:
        same = ", ".join(f"{_text(one)} with the same settings" for one in quoted[condition.key] if one.same_settings)
        return f"{condition.mean:.1f}" + f" (published: {same})" * bool(same)

    notes, cited = [series.run_caption(shown)], {figure.paper: figure for figure in figures}
    if sources:
        notes.append(f"Published: {'; '.join(_source(n, cited[paper]) for paper, n in sources.items())}")
    return panels.plot("split", f"Mean {label} on each test set: {series.describe(groups, described)}.", legend, notes)


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


def quotations(conditions: Sequence[Condition]) -> dict[str, list[Quotation]]:
    """Return the figures in the row of each condition, by its key: those that are beside it in a table.

    If some of the conditions has the settings of a figure, the figure is beside this condition only.
    """
    quoted = {condition.key: beside(condition, condition.metric) for condition in conditions}
    same = {one.figure.id for own in quoted.values() for one in own if one.same_settings}
    return {key: [one for one in own if one.same_settings or one.figure.id not in same] for key, own in quoted.items()}


def spread(figure: Figure) -> tuple[float, float] | None:
    """Return the ends of the spread of a figure; None without one."""
    if figure.spread is not None:
        return max(0.0, figure.value - figure.spread), min(100.0, figure.value + figure.spread)
    if figure.spread_low is not None and figure.spread_high is not None:
        return figure.spread_low, figure.spread_high
    return None


def _text(one: Quotation) -> str:
    return f"{one.figure.text}{' (one run)' if one.figure.value_kind == 'single' else ''}"


def _source(number: int, figure: Figure) -> str:
    quoted = f", quoted by {papers()[figure.quoted_from].short}" if figure.quoted_from in papers() else ""
    return f"[{number}]\N{NO-BREAK SPACE}{figure.citation}{quoted}"


def _sign(one: Quotation) -> str:
    """Return the key of a figure in `SIGNS`."""
    kind = one.figure.value_kind
    return kind if kind in SIGNS else "same" if one.same_settings else "other"


def _style(sign: str) -> dict[str, Any]:
    marker, face, _ = SIGNS[sign]
    size, edge = (7.0, 0.0) if sign == "approximate" else (3.4, 0.8)  # an edge would join its strokes
    return {"marker": marker, "ms": size, "mfc": face, "mec": "black", "mew": edge, "color": "black"}


def _draw_published(axes: Axes, one: Quotation, level: float) -> None:
    """Draw a figure and its spread at this height."""
    if ends := spread(one.figure):
        axes.plot(ends, [level, level], color="black", lw=0.7, zorder=2)
    axes.plot(one.figure.value, level, **_style(_sign(one)), zorder=2.5, clip_on=False)


def _published_legend(quoted: Sequence[Quotation]) -> list[Any]:
    """Return the legend handles of the figures that are drawn."""
    drawn = {_sign(one) for one in quoted}
    handles = [Line2D([], [], lw=0, label=SIGNS[sign][2], **_style(sign)) for sign in SIGNS if sign in drawn]
    kinds = dict.fromkeys(SPREADS[one.figure.spread_kind or "range"] for one in quoted if spread(one.figure))
    bar = f"published spread:\n{' or '.join(kinds)}"
    return handles + ([Line2D([], [], color="black", lw=0.7, label=bar)] if kinds else [])
