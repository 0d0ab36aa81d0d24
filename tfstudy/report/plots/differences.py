"""`--kind differences`: which conditions differ, and by how much."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.lines import Line2D

from tfstudy.analysis.labels import Condition
from tfstudy.analysis.stats import MAX_SEEDS
from tfstudy.analysis.summary import more_seeds, pairs, rows_of, test_set_labels
from tfstudy.errors import UserError
from tfstudy.report.comparisons import Pair
from tfstudy.report.markup import MINUS, q_equals, signed
from tfstudy.report.plots import layout, series

if TYPE_CHECKING:
    import pandas as pd

MAX_COMPARISONS = 60  # in one plot
MAX_LETTERS = 56  # of two labels on one line
COLOURS = "Colour: the condition with the higher mean; in brackets: further seeds needed, at this size of difference."


def differences(conditions: Sequence[Condition], sheet: layout.Sheet, family: "pd.DataFrame") -> layout.Plot:
    """Return the difference of every two conditions on the same examples, with its 95 % interval and its q.

    `family` has all conditions of the study, whose comparisons are one family of tests; `conditions` are shown.
    """
    found, keys = rows_of(family), {condition.key for condition in conditions}
    every = [Pair(found[one.first], found[one.second], one) for one in rows_of(pairs(family))]
    comparisons = [pair for pair in every if pair.first.key in keys]
    tested = [pair for pair in comparisons if pair.row.tested]
    if not tested:
        raise UserError(
            "no two conditions with the same test set and amount of training data have 2 seeds each, so none is tested"
        )
    smallest = sorted(range(len(tested)), key=lambda number: tested[number].row.p)[:MAX_COMPARISONS]
    shown = [tested[number] for number in sorted(smallest)]
    few = f", the {len(shown)} with the smallest q of {len(tested):,}" if len(shown) < len(tested) else ""
    title, names = f"Differences between conditions{few}", test_set_labels(conditions)
    groups: dict[str, list[Pair]] = {}
    for one in shown:
        groups.setdefault(names[one.first.place], []).append(one)
    texts = {name: [(_pair_label(one, sheet), 0.0) for one in own] for name, own in groups.items()}
    panels, places = layout.rows(sheet if sheet.width else sheet._replace(letters=MAX_LETTERS), title, texts, 5.0, 1)
    colours = series.architecture_colours(condition.arch for condition in conditions)
    for axes, levels, own in zip(panels.axes, places, groups.values(), strict=True):
        hues = [colours[(one.first if one.row.mean > 0 else one.second).arch] for one in own]
        faces = [hue if one.row.significant else "white" for hue, one in zip(hues, own, strict=True)]
        means = [one.row.mean for one in own]
        axes.axvline(0, color="0.3", lw=1)
        axes.hlines(
            levels, [max(one.row.low, -200) for one in own], [min(one.row.high, 200) for one in own], hues, lw=1.5
        )
        axes.scatter(means, levels, 12 if sheet.width else 20, faces, edgecolors=hues, linewidths=1.3, zorder=3)
        for level, one in zip(levels, own, strict=True):
            layout.write_beside(axes, level, q_equals(one.row.q) + _further_seeds(one))
    furthest = max(abs(x) for one in shown for x in (one.row.low, one.row.high, one.row.mean))
    limit = min(104.0, max(2.0, 1.06 * furthest))
    panels.axes[0].set_xlim(-limit, limit)
    metrics = series.main_metrics(one.first for one in shown)
    panels.label(f"difference in {series.metric_label(metrics).replace('(%)', '(points)')}", "")
    significant = [
        f"{names[c.first.place]}: {c.first.label} {signed(c.row.mean)} points to {c.second.label} ({q_equals(c.row.q)})"
        for c in tested
        if c.row.significant
    ]
    summary = ", ".join(
        filter(None, [f"{len(significant)} of {len(tested)} are significant", series.join(significant)])
    )
    tests = sum(pair.row.tested for pair in every)
    q = f"q: p adjusted for {tests} comparisons" if tests > 1 else "q: p, of one comparison"
    intervals = f"95 % intervals; {q}, below .05 where a difference is significant."
    notes = [series.run_caption([c for one in shown for c in (one.first, one.second)]), intervals, COLOURS]
    notes += [f"{n} pairs with a single seed are not tested"] if (n := len(comparisons) - len(tested)) else []
    return panels.plot("differences", f"{title}: {summary}. {intervals}", _legend(shown), notes)


def _legend(shown: Sequence[Pair]) -> list[Line2D]:
    """Return handles for the marks that are drawn."""
    marks = {True: ("significant (q < .05)", "0.3"), False: ("undecided", "white")}
    drawn = [marks[decided] for decided in marks if any(comparison.row.significant is decided for comparison in shown)]
    return [Line2D([], [], marker="o", lw=1.5, color="0.3", mfc=face, label=label) for label, face in drawn]


def _pair_label(comparison: Pair, sheet: layout.Sheet) -> str:
    """Return both conditions, on two lines if they are long; what architectures share stands once, in brackets."""
    first, second = comparison.first.label, comparison.second.label
    shared = first.removeprefix(comparison.first.arch)
    if comparison.first.arch != comparison.second.arch and shared and second == comparison.second.arch + shared:
        first, second = comparison.first.arch, f"{comparison.second.arch} ({shared.strip()})"
    longest = sheet.letters if sheet.width else MAX_LETTERS
    return f"{first} {MINUS}{' ' if len(first + second) <= longest else chr(10)}{second}"


def _further_seeds(comparison: Pair) -> str:
    """Return the number of further seeds in brackets; empty if the difference is decided or the number unknown."""
    more = more_seeds(comparison.row, min(len(comparison.first.runs), len(comparison.second.runs)))
    return "" if not more else f" (+{more:,})" if more <= MAX_SEEDS else f" (>{MAX_SEEDS:,})"
