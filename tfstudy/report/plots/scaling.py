"""`--kind scaling`: what more parameters are worth; `--kind data` plots training examples in the same way."""

import re
from collections.abc import Callable, Collection, Sequence
from math import log10
from statistics import mean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tfstudy.analysis.collection import RunRecord
from tfstudy.analysis.conditions import DEFAULT, OUTDATED, Condition, differing_settings, main_metrics, test_set_label
from tfstudy.analysis.intervals import Fit, log_fit
from tfstudy.errors import UserError
from tfstudy.report.markup import MINUS
from tfstudy.report.plots import captions, layout
from tfstudy.report.plots.panel_labels import label_axes, set_title
from tfstudy.report.plots.series_style import Styles, series_styles

SIZE_SUFFIX = re.compile(r"_p\d+$|_num\d+_rep\d+$")  # the end of a split's name that gives the amount of training data
BETWEEN_SETTINGS = re.compile(r" (?=[\w.]+=)")


class Size(NamedTuple):
    """What varies between runs."""

    kind: str  # of plot
    unit: str
    of: Callable[[RunRecord], int]


class Series(NamedTuple):
    """Runs that differ in their size, in what follows from it, and in their seed only."""

    label: str
    arch: str
    points: list[tuple[int, float]]  # the size and the metric in percent of each run
    conditions: list[Condition]

    @property
    def fit(self) -> Fit | None:
        """The fit to the logarithm of the size; None if there is one size."""
        sizes, values = zip(*self.points, strict=True)
        return log_fit(sizes, values) if len(set(sizes)) > 1 else None

    @property
    def means(self) -> dict[int, float]:
        """The mean over the runs of each size, by increasing size."""
        by_size: dict[int, list[float]] = {}
        for size, value in sorted(self.points):
            by_size.setdefault(size, []).append(value)
        return {size: mean(values) for size, values in by_size.items()}


def plot(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the main metric against the number of parameters: each run, means, and the slopes of log-linear fits."""
    return plot_size(Size("scaling", "parameters", lambda run: run.result.parameters), conditions, sheet)


def plot_size(size: Size, conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the main metric against the size of runs, a panel for each test set."""
    metrics = main_metrics(conditions)
    groups: dict[str, list[Series]] = {}
    drawn: dict[str, str] = {}  # the tasks that can be drawn, and their metrics
    for task, metric in metrics.items():
        own = find_series([condition for condition in conditions if condition.task == task], metric, size)
        groups |= {f"{task} {name}" if len(metrics) > 1 else name: members for name, members in own.items()}
        drawn |= {task: metric} if own else {}
    if not groups:
        raise UserError(f"no two conditions differ in their number of {size.unit} only, so no trend can be drawn")
    label, styles = (
        captions.metric_label(drawn),
        series_styles({s.label: s.arch for own in groups.values() for s in own}),
    )
    note = Line2D(
        [],
        [],
        color="0.4",
        lw=1.1,
        label="mean over seeds; numbers: points for\nten times as many, log-linear fit [95 %]",
    )
    fits = max(sum(series.fit is not None for series in members) for members in groups.values())
    legend = [*layout.legend_handles(styles), note]
    title, notes = (
        f"The effect of more {size.unit}",
        [captions.run_caption([c for own in groups.values() for series in own for c in series.conditions])],
    )
    area = (3.0, 2.2 + 0.14 * fits)
    figure, panels = layout.panels(sheet, title, len(groups), area, 3, legend, notes, narrowest=2.2)
    largest = max(value for own in groups.values() for series in own for _, value in series.points)
    for axes, (name, members) in zip(panels, groups.items(), strict=True):
        _draw_panel(axes, name, members, styles)
        axes.set(ylim=layout.percent_limits(drawn.values(), largest))
    label_axes(panels, f"{size.unit} (log)", label)
    slopes = [
        f"{name}: {series.label} {_slope(fit)}" for name in groups for series in groups[name] if (fit := series.fit)
    ]
    alt = f"Effect of more {size.unit} on {label}; points gained for ten times as many, {captions.join(slopes)}."
    return layout.Plot(size.kind, figure, alt)


def find_series(conditions: Sequence[Condition], metric: str, size: Size) -> dict[str, list[Series]]:
    """Return the series of each test set on which at least one has several sizes."""
    alike: dict[tuple[str, str], list[Condition]] = {}
    for condition in conditions:
        split = SIZE_SUFFIX.sub("_*", condition.split) if size.kind == "data" else condition.split
        if any(map(size.of, condition.runs)):
            name = test_set_label(condition._replace(split=split), conditions)
            alike.setdefault((name, condition.arch), []).append(condition)
    groups: dict[str, dict[str, Series]] = {}
    for (name, arch), members in alike.items():
        keys, one_preset = size_settings(members, size), _presets_follow(members, size)
        for condition in members:
            by_seed = condition.by_seed(metric)
            runs = [run for run in condition.runs if size.of(run) and run.result.seed in by_seed]
            label = _label_without(condition, keys, DEFAULT if one_preset else condition.preset)
            if runs:
                series = groups.setdefault(name, {}).setdefault(label, Series(label, arch, [], []))
                series.conditions.append(condition)
                series.points.extend((size.of(run), by_seed[run.result.seed]) for run in runs)
    return {name: list(own.values()) for name, own in groups.items() if any(series.fit for series in own.values())}


def size_settings(conditions: Sequence[Condition], size: Size) -> set[str]:
    """Return the numeric settings that follow from the size: conditions of one size have one value of each."""
    section = "data." if size.kind == "data" else "model."
    values: dict[str, dict[int, set[Any]]] = {}
    for condition in conditions:
        for key, value in condition.config.items():
            if key.startswith(section) and isinstance(value, int | float) and not isinstance(value, bool):
                values.setdefault(key, {}).setdefault(max(map(size.of, condition.runs)), set()).add(value)
    return {key for key, by_size in values.items() if all(len(own) == 1 for own in by_size.values())}


def _presets_follow(conditions: Sequence[Condition], size: Size) -> bool:
    """Whether the preset follows from the size: conditions of one size have one preset."""
    by_size: dict[int, set[str]] = {}
    for condition in conditions:
        by_size.setdefault(max(map(size.of, condition.runs)), set()).add(condition.preset)
    return all(len(presets) == 1 for presets in by_size.values())


def _label_without(condition: Condition, keys: Collection[str], preset: str) -> str:
    """Return the label with this preset, and without the settings that determine its size or are its own preset's."""
    settings = [setting for setting in BETWEEN_SETTINGS.split(condition.settings) if setting]
    left_out = {*keys, *(condition.config.keys() - differing_settings(condition))}
    others = [setting for setting in settings if setting.split("=")[0] not in left_out or setting.endswith(OUTDATED)]
    return condition._replace(settings=" ".join(others), preset=preset).label


def _slope(fit: Fit) -> str:
    ends = "" if fit.low != fit.low else f" [{fit.low:+.1f}, {fit.high:+.1f}]"
    return f"{fit.slope:+.1f}{ends}".replace("-", MINUS)


def _draw_panel(axes: Axes, name: str, members: Sequence[Series], styles: Styles) -> None:
    sizes = sorted({size for series in members for size, _ in series.points})
    fits = [(series, fit) for series in members if (fit := series.fit)]
    for series in members:
        style = styles[series.label]
        x, y = zip(*series.points, strict=True)
        axes.scatter(x, y, color=style.colour, marker=style.marker, s=22, alpha=0.8, lw=0, zorder=3)
    for number, (series, fit) in enumerate(reversed(fits)):
        style = styles[series.label]
        axes.plot([*series.means], [*series.means.values()], color=style.colour, ls=style.line, lw=1.1)
        unique = sum(other.arch == series.arch for other, _ in fits) == 1
        text, corner = f"{series.arch if unique else series.label} {_slope(fit)}", (0, 5 + 10 * number)
        axes.annotate(text, (0, 1), corner, "axes fraction", "offset points", color=style.colour, fontsize=7.5)
    set_title(axes, name, loc="left", pad=8 + 10 * len(fits))
    axes.set(xscale="log", xlim=(sizes[0] / 1.3, sizes[-1] * 1.3))
    ticks = _readable_ticks(sizes)
    axes.set_xticks(ticks, [captions.short_number(size) for size in ticks])
    axes.minorticks_off()


def _readable_ticks(sizes: Sequence[int]) -> list[int]:
    """Return those of the sorted sizes whose labels do not overlap on a logarithmic axis."""
    ticks = [sizes[0]]
    for size in sizes[1:]:
        if log10(size / ticks[-1]) > log10(sizes[-1] / sizes[0]) / 6:
            ticks.append(size)
    return ticks
