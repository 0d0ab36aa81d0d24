"""`--kind errors`: the kinds of errors in wrong predictions."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from tfstudy.analysis.conditions import Condition
from tfstudy.errors import UserError
from tfstudy.evaluation.error_kinds import CORRECT
from tfstudy.report.error_examples import error_kinds
from tfstudy.report.plots import captions, layout
from tfstudy.report.plots.grouping import group_by_test_set
from tfstudy.report.plots.rows import row_panels

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
Shares = Mapping[str, float]  # kind to percent of the predictions


def plot(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the kinds of all predictions as stacked shares: a bar for the mean over seeds and a thin one for each.

    Runs with neither a summary of their predictions nor readable predictions are left out; `UserError` if that leaves
    none.
    """
    shares = {id(c): shares_by_seed(c) for c in conditions}
    shown = [condition for condition in conditions if shares[id(condition)]]
    groups = group_by_test_set(shown)
    if not groups:
        raise UserError("no run has saved predictions on a test set")
    means = {id(c): mean_shares(shares[id(c)]) for c in shown}
    visible = {
        kind for seeds in shares.values() for own in seeds for kind, share in own.items() if share >= MIN_VISIBLE
    }
    legend = [Patch(label=kind, **_bar(kind)) for kind in KIND_STYLES if kind in visible]
    several = any(len(own) > 1 for own in shares.values())
    notes = [
        captions.run_caption(shown),
        *(["Thick bar: mean over seeds. Thin bars: each seed, in order."] if several else []),
    ]
    figure, panels = row_panels(
        sheet, "Kinds of errors", groups, lambda c: captions.wrap(c.label, sheet.label_letters),
        "share of all predictions (%)", 3.6, legend, notes, extra=lambda c: _seeds_height(shares[id(c)]),
    )  # fmt: skip
    for axes, rows in panels:
        for condition, level in rows:
            _draw_condition(axes, level, means[id(condition)], shares[id(condition)], sheet)
        axes.set_xlim(0, 100)
        axes.grid(visible=False)
        axes.spines[["top", "right", "left"]].set_visible(False)
    described = captions.describe(groups, lambda c: _describe(shares[id(c)]))
    return layout.Plot("errors", figure, f"Kinds of errors, as mean shares of all predictions: {described}.")


def shares_by_seed(condition: Condition) -> list[Shares]:
    """Return the share of each kind among the predictions of each seed, in percent; empty without predictions."""
    test_set = condition.test_set
    shares: list[Shares] = []
    for run in condition.runs:
        scores = run.result.splits.get(test_set)
        if scores and (kinds := error_kinds(run.path, test_set, scores)):
            n = sum(kind.n for kind in kinds.values())
            shares.append({kind: 100 * kinds[kind].n / n for kind in KIND_STYLES if kind in kinds})
    return shares


def mean_shares(shares: Sequence[Shares]) -> dict[str, float]:
    """Return the mean share of each kind over seeds."""
    means = {kind: sum(own.get(kind, 0.0) for own in shares) / len(shares) for kind in KIND_STYLES}
    return {kind: share for kind, share in means.items() if share}


def _describe(shares: Sequence[Shares]) -> str:
    """Return the share that is correct, with its range over seeds, and the most frequent kind of error."""
    correct, means = [own.get(CORRECT, 0.0) for own in shares], mean_shares(shares)
    spread = f" (seeds {min(correct):.1f} to {max(correct):.1f})" if len(correct) > 1 else ""
    wrong = {kind: share for kind, share in means.items() if kind != CORRECT}
    kind = max(wrong, key=lambda kind: wrong[kind], default="")
    return f"{means.get(CORRECT, 0.0):.1f} % correct{spread}{f', {kind} {wrong[kind]:.1f} %' if kind else ''}"


def _seeds_height(shares: Sequence[Shares]) -> float:
    """Return the inches that the bars of the seeds take."""
    return SEED * len(shares) + 0.06 if len(shares) > 1 else 0.0


def _draw_condition(axes: Axes, level: float, means: Shares, seeds: Sequence[Shares], sheet: layout.Sheet) -> None:
    thin = _seeds_height(seeds)
    _draw_bar(axes, level - thin / 2, means, sheet.line, 7.0)
    for number, own in enumerate(seeds if thin else []):
        _draw_bar(axes, level - thin / 2 + sheet.line / 2 + 0.04 + SEED * (number + 0.5), own, 0.8 * SEED)


def _draw_bar(axes: Axes, level: float, shares: Shares, height: float, points: float = 0.0) -> None:
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
