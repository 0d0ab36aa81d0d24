"""`--kind errors`: the kinds of wrong predictions."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from tfstudy.analysis.labels import Condition
from tfstudy.errors import UserError
from tfstudy.evaluation.breakdown import CORRECT
from tfstudy.report.error_examples import error_kinds
from tfstudy.report.plots import layout, series

# Colour and hatch. Too short is blue, too long is orange, of the right length green or purple (after Okabe & Ito 2008).
STYLES = {
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
DARK = ("empty", "stops early", "runs on", "one token replaced")  # whose numbers are white
MIN_LABELLED = 9.0  # percent; smaller shares are drawn without their number
MIN_VISIBLE = 0.3  # percent; the legend leaves out kinds that are never more frequent
SEED = 0.05  # inches that the bar of a seed takes


def errors(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the kinds of all predictions as stacked shares: a bar for the mean over seeds and a thin one for each.

    Runs with neither a summary of their predictions nor readable predictions are left out; `UserError` if that leaves
    none.
    """
    shares = {c.key: shares_by_seed(c) for c in conditions}
    shown = [condition for condition in conditions if len(shares[condition.key])]
    if not shown:
        raise UserError("no run has saved predictions on a test set")
    groups = series.group_by_test_set(shown)
    thin = {key: SEED * len(own) + 0.06 if len(own) > 1 else 0.0 for key, own in shares.items()}  # inches
    texts = {name: [(c.label, thin[c.key]) for c in members] for name, members in groups.items()}
    panels, levels = layout.rows(sheet, "Kinds of errors", texts, 3.6)
    height = layout.LINE * sheet.points
    for axes, places, members in zip(panels.axes, levels, groups.values(), strict=True):
        for level, condition in zip(places, members, strict=True):
            own, top = shares[condition.key], level - thin[condition.key] / 2
            _draw_shares(axes, [top], own.mean().to_frame().T, height, labels=True)
            if len(own) > 1:
                seeds = [top + height / 2 + 0.04 + SEED * (number + 0.5) for number in range(len(own))]
                _draw_shares(axes, seeds, own, 0.8 * SEED)
        axes.set_xlim(0, 100)
        axes.grid(visible=False)
        axes.spines[["top", "right", "left"]].set_visible(False)
    panels.label("share of all predictions (%)", "")
    largest = pd.concat(list(shares.values())).max()
    legend = [Patch(label=kind, **_bar(kind)) for kind in STYLES if largest[kind] >= MIN_VISIBLE]
    notes = [series.run_caption(shown)]
    notes += ["Thick bar: mean over seeds. Thin bars: each seed, in order."] if any(thin.values()) else []
    described = series.describe(groups, lambda c: _describe(shares[c.key]))
    return panels.plot("errors", f"Kinds of errors, as mean shares of all predictions: {described}.", legend, notes)


def shares_by_seed(condition: Condition) -> pd.DataFrame:
    """Return the share of each kind (columns) among the predictions of each seed (rows) in percent."""
    shares = []
    for run in condition.runs:
        scores = run.result.splits.get(condition.test)
        if scores and (kinds := error_kinds(run.path, condition.test, scores)):
            n = sum(kind.n for kind in kinds.values())
            shares.append({kind: 100 * one.n / n for kind, one in kinds.items()})
    return pd.DataFrame(shares, columns=list(STYLES), dtype=float).fillna(0.0)


def _describe(shares: pd.DataFrame) -> str:
    """Return the share that is correct, with its range over seeds, and the most frequent kind of error."""
    correct, wrong = shares[CORRECT], shares.drop(columns=CORRECT).mean()
    spread = f" (seeds {correct.min():.1f} to {correct.max():.1f})" if len(shares) > 1 else ""
    kind = f", {wrong.idxmax()} {wrong.max():.1f} %" if wrong.any() else ""
    return f"{correct.mean():.1f} % correct{spread}{kind}"


def _draw_shares(
    axes: Axes, levels: Sequence[float], shares: pd.DataFrame, height: float, labels: bool = False
) -> None:
    """Draw stacked shares, a row at each level; with `labels` the number of each large one is written on it."""
    left = shares.cumsum(axis=1) - shares
    for kind in shares:
        own = shares[kind]
        if own.any():
            bars = axes.barh(levels, own, height, left[kind], **_bar(str(kind), plain=not labels))
            texts = [f"{share:.0f}" if labels and share >= MIN_LABELLED else "" for share in own]
            axes.bar_label(bars, texts, label_type="center", fontsize=7, color="w" if kind in DARK else "k")


def _bar(kind: str, plain: bool = False) -> dict[str, Any]:
    """Return the options of a bar; a plain one has no hatch and no edge."""
    colour, hatch = STYLES[kind]
    return {"facecolor": colour} | ({"lw": 0} if plain else {"hatch": hatch, "edgecolor": "white", "linewidth": 0.4})
