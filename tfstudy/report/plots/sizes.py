"""`--kind data`, `--kind scaling`: what more training examples, or more parameters, are worth."""

import re
from collections.abc import Callable, Collection, Sequence
from math import log10
from statistics import mean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tfstudy.analysis import labels
from tfstudy.analysis.frame import DEFAULT, RunRecord
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.stats import Fit, log_fit
from tfstudy.errors import UserError
from tfstudy.report.markup import MINUS, short_number
from tfstudy.report.plots import layout, series

SIZE_SUFFIX = re.compile(r"_p\d+$|_num\d+_rep\d+$")  # the end of a split's name that gives the amount of training data


class Size(NamedTuple):
    """What varies between runs."""

    kind: str  # of plot
    unit: str
    section: str  # of the config: the settings that may follow from the size
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


def data(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the main metric against the number of training examples: each run, means, slopes of log-linear fits."""
    return _plot(Size("data", "training examples", "data.", lambda run: run.result.train_examples), conditions, sheet)


def scaling(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the main metric against the number of parameters in the same way."""
    return _plot(Size("scaling", "parameters", "model.", lambda run: run.result.parameters), conditions, sheet)


def _plot(size: Size, conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the main metric against the size of runs, a panel for each test set."""
    metrics = series.main_metrics(conditions)
    groups: dict[str, list[Series]] = {}
    drawn: dict[str, str] = {}  # the tasks that can be drawn, and their metrics
    for task, metric in metrics.items():
        own = find_series([condition for condition in conditions if condition.task == task], metric, size)
        groups |= {f"{task} {name}" if len(metrics) > 1 else name: members for name, members in own.items()}
        drawn |= {task: metric} if own else {}
    every = [one for members in groups.values() for one in members]
    if not every:
        raise UserError(f"no two conditions differ in their number of {size.unit} only, so no trend can be drawn")
    label, styles = series.metric_label(drawn), series.series_styles({one.label: one.arch for one in every})
    fitted = "mean over seeds; numbers: points for\nten times as many, log-linear fit [95 %]"
    legend = [*series.legend_handles(styles), Line2D([], [], color="0.4", lw=1.1, label=fitted)]
    notes = [series.run_caption([condition for one in every for condition in one.conditions])]
    fits = max(sum(one.fit is not None for one in members) for members in groups.values())
    figure, panels = layout.panels(
        sheet, f"The effect of more {size.unit}", len(groups), (3.0, 2.2 + 0.14 * fits), 3, legend, notes, narrowest=2.2
    )
    largest = max(value for one in every for _, value in one.points)
    for axes, (name, members) in zip(panels, groups.items(), strict=True):
        _draw_panel(axes, name, members, styles)
        axes.set(ylim=layout.percent_limits(drawn.values(), largest))
    layout.label_axes(panels, f"{size.unit} (log)", label)
    slopes = [f"{name}: {one.label} {_slope(fit)}" for name in groups for one in groups[name] if (fit := one.fit)]
    alt = f"Effect of more {size.unit} on {label}; points gained for ten times as many, {series.join(slopes)}."
    return layout.Plot(size.kind, figure, alt)


def find_series(conditions: Sequence[Condition], metric: str, size: Size) -> dict[str, list[Series]]:
    """Return the series of each test set on which at least one has several sizes."""
    alike: dict[tuple[str, str], list[Condition]] = {}
    for condition in conditions:
        split = SIZE_SUFFIX.sub("_*", condition.split) if size.kind == "data" else condition.split
        if any(map(size.of, condition.runs)):
            task = f"{condition.task} " * (len({one.task for one in conditions}) > 1)
            name = f"{task}{split}{condition.split_label.removeprefix(condition.split)}"
            alike.setdefault((name, condition.arch), []).append(condition)
    groups: dict[str, dict[str, Series]] = {}
    for (name, arch), members in alike.items():
        keys = size_settings(members, size)
        one_preset = _follows([(condition, condition.preset) for condition in members], size)
        for condition in members:
            by_seed = condition.values.get(metric, {})
            runs = [run for run in condition.runs if size.of(run) and run.result.seed in by_seed]
            label = _label_without(condition, keys, DEFAULT if one_preset else condition.preset)
            if runs:
                one = groups.setdefault(name, {}).setdefault(label, Series(label, arch, [], []))
                one.conditions.append(condition)
                one.points.extend((size.of(run), by_seed[run.result.seed]) for run in runs)
    return {name: list(own.values()) for name, own in groups.items() if any(one.fit for one in own.values())}


def size_settings(conditions: Sequence[Condition], size: Size) -> set[str]:
    """Return the numeric settings that follow from the size."""
    values: dict[str, list[tuple[Condition, Any]]] = {}
    for condition in conditions:
        for key, value in condition.config.items():
            if key.startswith(size.section) and isinstance(value, int | float) and not isinstance(value, bool):
                values.setdefault(key, []).append((condition, value))
    return {key for key, own in values.items() if _follows(own, size)}


def _follows(values: Sequence[tuple[Condition, Any]], size: Size) -> bool:
    """Whether a value follows from the size: conditions of one size have one value."""
    by_size: dict[int, set[Any]] = {}
    for condition, value in values:
        by_size.setdefault(max(map(size.of, condition.runs)), set()).add(value)
    return all(len(own) == 1 for own in by_size.values())


def _label_without(condition: Condition, keys: Collection[str], preset: str) -> str:
    """Return the label with this preset, and without the settings that determine its size or are its own preset's."""
    left_out = {*keys, *(condition.config.keys() - labels.differing(condition))}
    settings = {key: value for key, value in condition.settings.items() if key not in left_out}
    return labels.name(condition.arch, preset, settings)


def _slope(fit: Fit) -> str:
    ends = "" if fit.low != fit.low else f" [{fit.low:+.1f}, {fit.high:+.1f}]"
    return f"{fit.slope:+.1f}{ends}".replace("-", MINUS)


def _draw_panel(axes: Axes, name: str, members: Sequence[Series], styles: series.Styles) -> None:
    sizes = sorted({size for one in members for size, _ in one.points})
    fits = [(one, fit) for one in members if (fit := one.fit)]
    for one in members:
        style = styles[one.label]
        x, y = zip(*one.points, strict=True)
        axes.scatter(x, y, color=style.colour, marker=style.marker, s=22, alpha=0.8, lw=0, zorder=3)
    for number, (one, fit) in enumerate(reversed(fits)):
        style = styles[one.label]
        by_size: dict[int, list[float]] = {}
        for size, value in sorted(one.points):
            by_size.setdefault(size, []).append(value)
        axes.plot(list(by_size), list(map(mean, by_size.values())), color=style.colour, ls=style.line, lw=1.1)
        unique = sum(other.arch == one.arch for other, _ in fits) == 1
        text, corner = f"{one.arch if unique else one.label} {_slope(fit)}", (0, 5 + 10 * number)
        axes.annotate(text, (0, 1), corner, "axes fraction", "offset points", color=style.colour, fontsize=7.5)
    layout.set_title(axes, name, loc="left", pad=8 + 10 * len(fits))
    axes.set(xscale="log", xlim=(sizes[0] / 1.3, sizes[-1] * 1.3))
    ticks = sizes[:1]  # those whose labels do not overlap
    for size in sizes[1:]:
        if log10(size / ticks[-1]) > log10(sizes[-1] / sizes[0]) / 6:
            ticks.append(size)
    axes.set_xticks(ticks, list(map(short_number, ticks)))
    axes.minorticks_off()
