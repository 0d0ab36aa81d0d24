"""`--kind errors`: the kinds of wrong predictions; `--kind slices`: the main metric by the values of a tag."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.summary import tag_value_key
from tfstudy.errors import UserError
from tfstudy.evaluation.breakdown import CORRECT
from tfstudy.report.error_examples import error_kinds
from tfstudy.report.plots import layout, series

# Colour and hatch. Too short is blue, too long is orange, of the right length green or purple (after Okabe & Ito 2008).
KIND_STYLES = {
    CORRECT: ("#E8E8E8", ""),
    "empty": ("#222222", ""),
    "stops early": ("#0072B2", ""),
    "omitted part": ("#56B4E9", ""),
    "other, too short": ("#BFE0F5", "//"),
    "runs on": ("#D55E00", ""),
    "repeated part": ("#E69F00", ""),
    "other, too long": ("#F8DFA6", "//"),
    "swapped parts": ("#CC79A7", ""),
    "one token replaced": ("#009E73", ""),
    "other, correct length": ("#A8DCCB", "//"),
}
MIN_LABELLED = 9.0  # percent; smaller shares are drawn without their number
MIN_VISIBLE = 0.3  # percent; the legend leaves out kinds that are never more frequent
SEED = 0.05  # inches that the bar of a seed takes
MAX_WIDTH = 11.0  # inches of all panels of slices in a row
MAX_TICKS = 25  # of a horizontal axis
MAX_LENGTH = 7.0  # inches of a panel along its values, unless they need more
BAR, MIN_VALUE = 0.13, 0.17  # inches of a bar, and the minimum for all bars of a value
Shares = Mapping[str, float]  # kind to percent of the predictions


# Kinds of errors


def errors(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the kinds of all predictions as stacked shares: a bar for the mean over seeds and a thin one for each.

    Runs with neither a summary of their predictions nor readable predictions are left out; `UserError` if that leaves
    none.
    """
    shares = {c.key: shares_by_seed(c) for c in conditions}
    shown = [condition for condition in conditions if shares[condition.key]]
    groups = series.group_by_test_set(shown)
    if not groups:
        raise UserError("no run has saved predictions on a test set")
    thin = {key: SEED * len(own) + 0.06 if len(own) > 1 else 0.0 for key, own in shares.items()}  # inches
    visible = {
        kind for seeds in shares.values() for own in seeds for kind, share in own.items() if share >= MIN_VISIBLE
    }
    legend = [Patch(label=kind, **_bar(kind)) for kind in KIND_STYLES if kind in visible]
    notes = [series.run_caption(shown)]
    notes += ["Thick bar: mean over seeds. Thin bars: each seed, in order."] if any(thin.values()) else []
    figure, panels = layout.row_panels(
        sheet, "Kinds of errors", groups, lambda c: series.wrapped(c.label, sheet.label_letters),
        "share of all predictions (%)", 3.6, legend, notes, extra=lambda c: thin[c.key],
    )  # fmt: skip
    for axes, rows in panels:
        for condition, level in rows:
            seeds, top = shares[condition.key], level - thin[condition.key] / 2
            _draw_shares(axes, top, mean_shares(seeds), sheet.line, 7.0)
            for number, own in enumerate(seeds if len(seeds) > 1 else []):
                _draw_shares(axes, top + sheet.line / 2 + 0.04 + SEED * (number + 0.5), own, 0.8 * SEED)
        axes.set_xlim(0, 100)
        axes.grid(visible=False)
        axes.spines[["top", "right", "left"]].set_visible(False)
    described = series.describe(groups, lambda c: _describe_shares(shares[c.key]))
    return layout.Plot("errors", figure, f"Kinds of errors, as mean shares of all predictions: {described}.")


def shares_by_seed(condition: Condition) -> list[Shares]:
    """Return the share of each kind among the predictions of each seed, in percent; empty without predictions."""
    shares: list[Shares] = []
    for run in condition.runs:
        scores = run.result.splits.get(condition.test)
        if scores and (kinds := error_kinds(run.path, condition.test, scores)):
            n = sum(kind.n for kind in kinds.values())
            shares.append({kind: 100 * kinds[kind].n / n for kind in KIND_STYLES if kind in kinds})
    return shares


def mean_shares(shares: Sequence[Shares]) -> dict[str, float]:
    """Return the mean share of each kind over seeds."""
    means = {kind: sum(own.get(kind, 0.0) for own in shares) / len(shares) for kind in KIND_STYLES}
    return {kind: share for kind, share in means.items() if share}


def _describe_shares(shares: Sequence[Shares]) -> str:
    """Return the share that is correct, with its range over seeds, and the most frequent kind of error."""
    correct, means = [own.get(CORRECT, 0.0) for own in shares], mean_shares(shares)
    spread = f" (seeds {min(correct):.1f} to {max(correct):.1f})" if len(correct) > 1 else ""
    wrong = {kind: share for kind, share in means.items() if kind != CORRECT}
    kind = max(wrong, key=lambda kind: wrong[kind], default="")
    return f"{means.get(CORRECT, 0.0):.1f} % correct{spread}{f', {kind} {wrong[kind]:.1f} %' if kind else ''}"


def _draw_shares(axes: Axes, level: float, shares: Shares, height: float, points: float = 0.0) -> None:
    """Draw stacked shares, with numbers of this size in points, if any."""
    left = 0.0
    for kind, share in shares.items():
        colour, _ = KIND_STYLES[kind]
        bars = axes.barh([level], [share], height, [left], **_bar(kind, plain=not points))
        left += share
        if points and share >= MIN_LABELLED:
            dark = sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) < 380
            ink = "white" if dark else "black"
            axes.bar_label(bars, [f"{share:.0f}"], label_type="center", fontsize=points, color=ink)


def _bar(kind: str, plain: bool = False) -> dict[str, Any]:
    """Return the options of a bar; a plain one has no hatch and no edge."""
    colour, hatch = KIND_STYLES[kind]
    return {"facecolor": colour} | ({"lw": 0} if plain else {"hatch": hatch, "edgecolor": "white", "linewidth": 0.4})


# Slices


def slices(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return bars with 95 % intervals for each value of a tag; each condition is restricted to one value."""
    metrics = series.main_metrics(conditions)
    shown = [condition for condition in conditions if condition.each_seed]
    if not shown:
        raise UserError("no run was evaluated by this tag")
    tag, metric = shown[0].tag.replace("_", " "), series.metric_label(metrics)
    groups, styles = series.group_by_test_set(shown), series.condition_styles(shown)
    horizontal = not all(condition.value.isdecimal() for condition in shown)  # words fit beside horizontal bars
    lengths = []  # of the panels along their values, in inches
    for members in groups.values():
        count = len(_values(members))
        lengths.append(count * max(MIN_VALUE, min(BAR * (len(_labels(members)) + 1), MAX_LENGTH / count)))
    longest = max(len(condition.value) for condition in shown)
    width = 2.3 + sheet.letter * longest if horizontal else max(2.6, *lengths)
    heights = [length + 0.5 for length in lengths] if horizontal else [2.1] * len(groups)
    columns = max(1, min(3, int((sheet.width or MAX_WIDTH) // width)))
    drawn = any(condition.low < condition.high for condition in shown)
    title = f"Results by {tag}{', with 95 % intervals' * drawn}"
    single = any(len(condition.runs) == 1 for condition in shown)
    notes = [series.run_caption(shown), *["The interval of one seed is within its run."] * (drawn and single)]
    ends = [end for condition in shown for end in (condition.mean, condition.high) if not math.isnan(end)]
    highest = layout.percent_limits(metrics.values(), max(ends))[1]
    legend = series.legend_handles(styles, "bars")
    figure, panels = layout.uneven_panels(sheet, title, heights, width, columns, legend, notes)
    for axes, (name, members) in zip(panels, groups.items(), strict=True):
        _draw_slices(axes, members, styles, horizontal, highest)
        layout.set_title(axes, name)
    layout.label_axes(panels, *((metric, tag) if horizontal else (tag, metric)))
    parts = [part for name, members in groups.items() for part in _describe_slices(name, members)]
    return layout.Plot(f"slices-{shown[0].tag}", figure, f"Mean {metric} by {tag}: {series.join(parts)}.")


def _values(conditions: Sequence[Condition]) -> list[str]:
    """Return the values of the tag, numbers in their order."""
    return sorted({condition.value for condition in conditions}, key=tag_value_key)


def _labels(conditions: Sequence[Condition]) -> list[str]:
    return list(dict.fromkeys(condition.label for condition in conditions))


def _describe_slices(name: str, conditions: Sequence[Condition]) -> list[str]:
    """Return a text for each label: its mean for all values if they are few, else for the first and the last."""
    parts = []
    for label in _labels(conditions):
        own = [f"{c.value} {c.mean:.0f}" for c in conditions if c.label == label]
        parts.append(f"{name} {label}: {', '.join(own if len(own) <= 4 else [own[0], own[-1]])}")
    return parts


def _draw_slices(
    axes: Axes, conditions: Sequence[Condition], styles: series.Styles, horizontal: bool,
    highest: float,
) -> None:  # fmt: skip
    values, labels = _values(conditions), _labels(conditions)
    thickness, draw = 0.84 / len(labels), axes.barh if horizontal else axes.bar
    for condition in conditions:
        centre = values.index(condition.value) + (labels.index(condition.label) - (len(labels) - 1) / 2) * thickness
        draw(centre, condition.mean, thickness, **styles[condition.label].bar)
        ends, centres = (condition.low, condition.high), (centre, centre)
        axes.plot(*((ends, centres) if horizontal else (centres, ends)), color="0.15", lw=0.9)
    axis = axes.yaxis if horizontal else axes.xaxis
    every = 1 if horizontal else math.ceil(len(values) / MAX_TICKS)
    axis.set_ticks(range(0, len(values), every), values[::every])
    axis.grid(visible=False)
    percent, limits = (0, highest), (-0.6, len(values) - 0.4)
    axes.set(xlim=percent, ylim=limits[::-1]) if horizontal else axes.set(ylim=percent, xlim=limits)
