"""`--kind differences`: which conditions differ, and by how much."""

from collections.abc import Sequence

from matplotlib.lines import Line2D

from tfstudy.analysis.comparisons import Comparison, compare_conditions
from tfstudy.analysis.conditions import Condition, main_metrics, test_set_label
from tfstudy.analysis.significance import MAX_SEEDS
from tfstudy.errors import UserError
from tfstudy.report.comparisons import needs_too_many
from tfstudy.report.markup import MINUS, p_equals, signed
from tfstudy.report.plots import layout, series

MAX_COMPARISONS = 60  # in one plot
MAX_LETTERS = 56  # of two labels on one line
COLOURS = "Colour: the condition with the higher mean; in brackets: further seeds needed, at this size of difference."


def differences(
    conditions: Sequence[Condition], sheet: layout.Sheet, family: Sequence[Condition] | None = None
) -> layout.Plot:
    """Return the difference of every two conditions on the same examples, with its simultaneous interval and its p.

    `family` has all conditions of the study, whose comparisons are one family of tests; `conditions` are shown.
    """
    metrics = main_metrics(family or conditions)
    names = {(condition.examples_key, condition.label) for condition in conditions}
    comparisons = [
        comparison
        for comparison in compare_conditions(family or conditions, metrics)
        if (comparison.first.examples_key, comparison.first.label) in names
    ]
    tested = [comparison for comparison in comparisons if comparison.tested]
    if not tested:
        raise UserError(
            "no two conditions with the same test set and amount of training data have 2 seeds each, so none is tested"
        )
    smallest = sorted(range(len(tested)), key=lambda number: tested[number].p)[:MAX_COMPARISONS]
    shown = [tested[number] for number in sorted(smallest)]
    few = f", the {len(shown)} with the smallest p of {len(tested):,}" if len(shown) < len(tested) else ""
    title = f"Differences between conditions{few}"
    shown_metrics = {task: metric for task, metric in metrics.items() if task in {one.first.task for one in shown}}
    groups: dict[str, list[Comparison]] = {}
    for one in shown:
        groups.setdefault(test_set_label(one.first, conditions), []).append(one)
    notes = [series.run_caption([c for one in shown for c in (one.first, one.second)]), _intervals(shown), COLOURS]
    notes += [f"{n} pairs with a single seed are not tested"] if (n := len(comparisons) - len(tested)) else []
    figure, [(axes, rows)] = layout.row_panels(
        sheet, title, groups, lambda one: _pair_label(one, sheet),
        f"difference in {series.metric_label(shown_metrics).replace('(%)', '(points)')}", 5.0, _legend(shown), notes,
        max_columns=1,
    )  # fmt: skip
    colours = series.architecture_colours(condition.arch for condition in conditions)
    for one, level in rows:
        difference = one.difference
        colour = colours[(one.first if difference.mean > 0 else one.second).arch]
        ends = [max(difference.low, -200), min(difference.high, 200)]
        axes.plot(ends, [level, level], color=colour, lw=1.5, solid_capstyle="butt")
        face, size = colour if one.significant else "white", 3.5 if sheet.width else 4.5
        axes.plot(difference.mean, level, marker="o", ms=size, mfc=face, mec=colour, mew=1.3)
        layout.write_beside(axes, level, p_equals(one.p) + _further_seeds(one), sheet)
    furthest = max(abs(x) for one in shown for x in (one.difference.low, one.difference.high, one.difference.mean))
    limit = min(104.0, max(2.0, 1.06 * furthest))
    axes.axvline(0, color="0.3", lw=1)
    axes.set_xlim(-limit, limit)
    significant = [
        f"{test_set_label(c.first, conditions)}: {c.first.label} {signed(c.difference.mean)} points to "
        f"{c.second.label} ({p_equals(c.p)})"
        for c in tested
        if c.significant
    ]
    summary = ", ".join([f"{len(significant)} of {len(tested)} are significant", series.join(significant)])
    return layout.Plot("differences", figure, f"{title}: {summary.removesuffix(', ')}. {_intervals(tested)}")


def _intervals(shown: Sequence[Comparison]) -> str:
    """Return which intervals are drawn."""
    tests = shown[0].tests
    if tests == 1:
        return "95 % intervals: those that exclude 0 are significant."
    return f"Simultaneous 95 % intervals over {tests} comparisons: those that exclude 0 are significant."


def _legend(shown: Sequence[Comparison]) -> list[Line2D]:
    """Return handles for the marks that are drawn."""
    marks = {True: ("significant (p < .05)", "0.3"), False: ("undecided", "white")}
    drawn = [marks[decided] for decided in marks if any(comparison.significant is decided for comparison in shown)]
    return [Line2D([], [], marker="o", lw=1.5, color="0.3", mfc=face, label=label) for label, face in drawn]


def _pair_label(comparison: Comparison, sheet: layout.Sheet) -> str:
    """Return both conditions, on two lines if they are long; what architectures share stands once, in brackets."""
    first, second = comparison.first.label, comparison.second.label
    shared = first.removeprefix(comparison.first.arch)
    if comparison.first.arch != comparison.second.arch and shared and second == comparison.second.arch + shared:
        first, second = comparison.first.arch, f"{comparison.second.arch} ({shared.strip()})"
    longest = sheet.label_letters if sheet.width else MAX_LETTERS
    return f"{first} {MINUS}{' ' if len(first + second) <= longest else chr(10)}{second}"


def _further_seeds(comparison: Comparison) -> str:
    """Return the number of further seeds in brackets; empty if the difference is decided or the number unknown."""
    if seeds := comparison.more_seeds:
        return f" (+{seeds:,})"
    return f" (>{MAX_SEEDS:,})" if needs_too_many(comparison) else ""
