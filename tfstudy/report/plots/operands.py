"""`--kind operands`: exact match in arithmetic, by the number of digits of both operands."""

from collections.abc import Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle

from tfstudy.analysis.conditions import Condition
from tfstudy.errors import UserError
from tfstudy.report.error_examples import predictions_if_readable
from tfstudy.report.plots import captions, layout
from tfstudy.report.plots.grouping import group_by_split, trained_range
from tfstudy.report.plots.panel_labels import label_axes, set_title

LEFT, RIGHT = "digits_left", "digits_right"  # tags
Range = tuple[tuple[int, int], tuple[int, int]]  # fewest and most digits of the left and of the right operand


def plot(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return a heat map of exact match for each condition, over its seeds and test sets; a frame marks training."""
    groups = group_by_split([condition for condition in conditions if _is_tagged(condition)])
    shown = [condition for members in groups.values() for condition in members]
    if not shown:
        raise UserError(
            f"no run was evaluated on examples with the tags {LEFT} and {RIGHT}, which arithmetic tasks set"
        )
    answers = {condition.experiment: read_answers(condition) for condition in shown}
    largest = max(int(frame[[LEFT, RIGHT]].max().max()) for frame in answers.values())
    side = min(3.5, max(2.5, 0.3 + 0.32 * largest))
    title, notes = "Exact match by digits of the operands", [captions.run_caption(shown)]
    figure, panels = layout.panels(sheet, title, len(shown), (side, side), notes=notes, narrowest=2.2)
    for axes, condition in zip(panels, shown, strict=True):
        _draw_heatmap(axes, answers[condition.experiment], largest, trained_digits(condition))
        set_title(axes, f"{condition.split}: {condition.label}")
    colours = ScalarMappable(Normalize(0, 100), "cividis")
    figure.colorbar(colours, ax=panels, label="exact match (%)\nframe: digits of training", shrink=0.8)
    if engine := figure.get_layout_engine():  # heat maps are square
        figure.set_layout_engine(ConstrainedLayoutEngine(compress=True, **engine.get()))
    label_axes(panels, "digits of the right operand", "digits of the left operand")
    shares = captions.describe(groups, lambda c: _describe(answers[c.experiment], trained_digits(c)))
    return layout.Plot("operands", figure, f"Heat maps of exact match by the digits of both operands: {shares}.")


def _is_tagged(condition: Condition) -> bool:
    return any(
        {LEFT, RIGHT} <= one.slices.keys() for run in condition.runs for one in run.result.splits.values() if one.n
    )


def read_answers(condition: Condition) -> pd.DataFrame:
    """Return a row for each prediction on the test sets of all seeds: the digits of both operands and `correct`."""
    rows = [
        (int(row.tags[LEFT]), int(row.tags[RIGHT]), row.prediction == row.target)
        for run in condition.runs
        for name, scores in run.result.splits.items()
        if scores.role == "test" and {LEFT, RIGHT} <= scores.slices.keys()
        for row in predictions_if_readable(run.path, name)
        if str(row.tags.get(LEFT)).isdecimal() and str(row.tags.get(RIGHT)).isdecimal()
    ]
    return pd.DataFrame(rows, columns=[LEFT, RIGHT, "correct"])


def trained_digits(condition: Condition) -> Range | None:
    """Return the range of digits in training; None if it is unknown."""
    left, right = (trained_range([condition], tag) for tag in (LEFT, RIGHT))
    return (left, right) if left and right else None


def _describe(answers: pd.DataFrame, trained: Range | None) -> str:
    """Return exact match within and beyond the digits of training, in words."""
    left, right = trained or ((0, 0), (0, 0))
    inside = answers[LEFT].between(*left) & answers[RIGHT].between(*right)
    within, beyond = (
        f"{100 * part.correct.mean():.1f} %" if len(part) else "not tested"
        for part in (answers[inside], answers[~inside])
    )
    return f"{within} within and {beyond} beyond the digits of training"


def _draw_heatmap(axes: Axes, answers: pd.DataFrame, largest: int, trained: Range | None) -> None:
    digits = range(1, largest + 1)
    shares = 100 * answers.pivot_table("correct", LEFT, RIGHT).reindex(index=digits, columns=digits)
    sns.heatmap(
        shares, vmin=0, vmax=100, cmap="cividis", cbar=False, square=True, annot=largest <= 8, fmt=".0f",
        annot_kws={"fontsize": 7}, linewidths=0.5, ax=axes,
    )  # fmt: skip
    axes.set_facecolor("0.9")
    axes.invert_yaxis()
    axes.tick_params(rotation=0)
    if trained:
        (bottom, top), (left, right) = trained
        frame = Rectangle((left - 1, bottom - 1), right - left + 1, top - bottom + 1, fill=False, clip_on=False)
        axes.add_patch(frame).set(edgecolor="#D55E00", lw=2.5)
