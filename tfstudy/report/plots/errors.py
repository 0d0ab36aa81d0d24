"""`--kind errors`: the kinds of errors in wrong predictions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from tasks.errors import UserError
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.error_kinds import CORRECT, count_errors
from tfstudy.report.error_examples import predictions
from tfstudy.report.plots import layout

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
Shares = Mapping[str, float]  # kind to percent of the predictions


def plot(conditions: Sequence[Condition]) -> layout.Plot:
    """Return the kinds of all predictions as stacked shares, a bar for each condition, over all its seeds.

    Runs without saved predictions are left out; `UserError` if that leaves none.
    """
    shares = {id(c): error_shares(c) for c in conditions}
    groups = layout.group_by_test_set([c for c in conditions if shares[id(c)]])
    if not groups:
        raise UserError("no run has saved predictions on a test set")
    legend = [Patch(label=kind, **_bar(kind)) for kind in KIND_STYLES if any(kind in own for own in shares.values())]
    figure, panels = layout.row_panels(
        "Kinds of errors", groups, lambda c: layout.wrap(c.label), "share of all predictions (%)", 3.6, legend
    )
    for axes, rows in panels:
        _draw_bars(axes, [level for _, level in rows], [shares[id(condition)] for condition, _ in rows])
        axes.set_xlim(0, 100)
        axes.grid(visible=False)
        axes.spines[["top", "right", "left"]].set_visible(False)
    frequent = layout.describe(groups, lambda c: most_frequent(shares[id(c)])) or "none"
    alt = f"Kinds of errors; the most frequent, as shares of all predictions, {frequent}."
    return layout.Plot("errors", figure, alt)


def error_shares(condition: Condition) -> dict[str, float]:
    """Return the share of each kind among the predictions of all seeds, in percent; empty without predictions."""
    counts: Counter[str] = Counter()
    test_set = condition.test_set
    for run in condition.runs:
        if test_set in run.result.splits and (run.path / "predictions" / f"{test_set}.jsonl.gz").exists():
            counts.update(count_errors(predictions(run.path, test_set), examples=0).kinds)
    return {kind: 100 * counts[kind] / counts.total() for kind in KIND_STYLES if counts[kind]}


def most_frequent(shares: Shares) -> str:
    """Return the most frequent kind of error and its share; empty without errors."""
    wrong = {kind: share for kind, share in shares.items() if kind != CORRECT}
    kind = max(wrong, key=lambda kind: wrong[kind], default="")
    return f"{kind} {wrong[kind]:.1f} %" if kind else ""


def _draw_bars(axes: Axes, levels: Sequence[float], shares: Sequence[Shares]) -> None:
    left = [0.0] * len(levels)
    for kind, (colour, _) in KIND_STYLES.items():
        widths = [own.get(kind, 0.0) for own in shares]
        if any(widths):
            bars = axes.barh(levels, widths, layout.LINE, left, **_bar(kind))
            dark = sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) < 380
            labels = [f"{width:.0f}" if width >= MIN_LABELLED else "" for width in widths]
            axes.bar_label(bars, labels, label_type="center", fontsize=7, color="white" if dark else "black")
            left = [start + width for start, width in zip(left, widths, strict=True)]


def _bar(kind: str) -> dict[str, Any]:
    colour, hatch = KIND_STYLES[kind]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.4}
