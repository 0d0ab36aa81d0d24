"""`--kind data`: what more training examples are worth."""

import math
import re
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D

from tfstudy.analysis import labels
from tfstudy.analysis.frame import DEFAULT
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.stats import Fit, log_fit
from tfstudy.errors import UserError
from tfstudy.report.markup import MINUS, short_number
from tfstudy.report.plots import layout, series

SIZE_SUFFIX = re.compile(r"_p\d+$|_num\d+_rep\d+$")  # the end of a split's name that gives the amount of training data
FITTED = "mean over seeds; numbers: points for\nten times as many, log-linear fit [95 %]"


def data(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the main metric against the number of training examples: each run, means, slopes of log-linear fits."""
    metrics = series.main_metrics(conditions)
    runs = pd.DataFrame([row for task in metrics for row in sized_runs(conditions, task)])
    fits: dict[tuple[str, str], Fit] = {}  # by panel and label
    for panel, members in series.grouped(runs, "panel") if len(runs) else ():
        for name, own in series.grouped(members, "label"):
            if own["size"].nunique() > 1:
                fits[panel, name] = log_fit(own["size"].tolist(), own["value"].tolist())
    if not fits:
        raise UserError("no two conditions differ in their number of training examples only, so no trend can be drawn")
    runs = runs[runs["panel"].isin({panel for panel, _ in fits})]
    styles = series.series_styles(dict(zip(runs["label"], runs["arch"], strict=True)))
    drawn = {task: metric for task, metric in metrics.items() if task in set(runs["task"])}
    label, groups = series.metric_label(drawn), series.grouped(runs, "panel")
    panels = layout.panels(sheet, "The effect of more training examples", len(groups), (2.5, 1.75), narrowest=2.2)
    limits, slopes = layout.percent_limits(drawn.values(), runs["value"].max()), []
    for axes, (panel, members) in zip(panels.axes, groups, strict=True):
        fitted = members[[(panel, one) in fits for one in members["label"]]].drop_duplicates("label")
        for name, own in series.grouped(members, "label"):
            style = styles[name]
            axes.plot(own["size"], own["value"], style.marker, color=style.colour, ms=4.5, mew=0, alpha=0.8)
            if fit := fits.get((panel, name)):
                slopes.append(f"{panel}: {name} {_slope(fit)}")
                short = own["arch"].iloc[0] if (fitted["arch"] == own["arch"].iloc[0]).sum() == 1 else name
                text, means = panels.lines(f"{short} {_slope(fit)}", 7.5), own.groupby("size")["value"].mean()
                axes.plot(means, color=style.colour, ls=style.line, lw=1.1, label=text)
        text_sizes: dict[str, Any] = {"fontsize": min(7.5, sheet.points), "title_fontsize": min(9.0, sheet.points)}
        axes.legend(
            title=panels.lines(panel), loc="lower left", bbox_to_anchor=(0, 1), alignment="left", handlelength=0,
            labelcolor="linecolor", handletextpad=0, borderpad=0, labelspacing=0.2, **text_sizes,
        )  # fmt: skip
        sizes = sorted(set(members["size"]))
        layout.set_sizes(axes, sizes, list(map(short_number, sizes)))
        axes.set(ylim=limits)
    panels.label("training examples (log)", label)
    legend = [*series.legend_handles(styles), Line2D([], [], color="0.4", lw=1.1, label=FITTED)]
    alt = f"Effect of more training examples on {label}; points gained for ten times as many, {series.join(slopes)}."
    return panels.plot("data", alt, legend, [series.run_caption(list(runs.drop_duplicates("key")["condition"]))])


def sized_runs(conditions: Sequence[Condition], task: str) -> list[dict[str, Any]]:
    """Return the runs of a task, each with its size, the metric in percent, and the panel and the series it belongs to.

    A series has the runs that differ in their size, in what follows from it, and in their seed only.
    """
    several = len({condition.task for condition in conditions}) > 1
    alike: dict[tuple[str, str], list[tuple[Condition, int]]] = {}  # with the size
    for condition in (condition for condition in conditions if condition.task == task):
        if size := max((run.result.train_examples for run in condition.runs), default=0):
            split = SIZE_SUFFIX.sub("_*", condition.split) + condition.split_label.removeprefix(condition.split)
            alike.setdefault((f"{task} {split}" if several else split, condition.arch), []).append((condition, size))
    found = []
    for (panel, arch), members in alike.items():
        keys = {key for condition, _ in members for key in condition.config if key.startswith("data.")}
        following = {key for key in keys if _follows([(n, c.config.get(key)) for c, n in members])}
        one_preset = len({(size, condition.preset) for condition, size in members}) == len({n for _, n in members})
        for condition, _ in members:
            left_out = {*following, *(condition.config.keys() - labels.differing(condition))}
            settings = {key: value for key, value in condition.settings.items() if key not in left_out}
            label = labels.name(arch, DEFAULT if one_preset else condition.preset, settings)
            row = {"panel": panel, "label": label, "arch": arch, "task": task, "key": condition.key}
            for run in condition.runs:
                size, value = run.result.train_examples, condition.each_seed.get(run.result.seed)
                if size and value is not None:
                    found.append(row | {"condition": condition, "size": size, "value": value})
    return found


def _follows(values: Sequence[tuple[int, Any]]) -> bool:
    """Whether the numbers of a setting follow from sizes: conditions of one size have one number."""
    numbers = {(n, x) for n, x in values if isinstance(x, int | float) and not isinstance(x, bool)}
    return bool(numbers) and len(numbers) == len({size for size, _ in numbers})


def _slope(fit: Fit) -> str:
    ends = "" if math.isnan(fit.low) else f" [{fit.low:+.1f}, {fit.high:+.1f}]"
    return f"{fit.slope:+.1f}{ends}".replace("-", MINUS)
