"""What is computed right, by the digits of both operands."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tasks.errors import UserError
from tfstudy.analysis.conditions import Condition
from tfstudy.report.error_examples import predictions
from tfstudy.report.plots.layout import Picture, listed, name_axes, panels, wrapped
from tfstudy.report.plots.lengths import experiments
from tfstudy.report.plots.series_style import looks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT, RIGHT = "digits_left", "digits_right"  # tags
Cell = tuple[int, int]  # digits of the left and of the right operand
Counts = dict[Cell, tuple[int, int]]  # right, of how many


def operands(rows: Sequence[Condition]) -> Picture:
    """A heat map of exact match for each row, over all its seeds and test splits; what was trained on is framed."""
    once = list({(row.task, row.split, row.label): row for row in rows if _has_digits(row)}.values())
    if not once:
        raise UserError(f"no run was tested on examples with the tags {LEFT} and {RIGHT}, as those of arithmetic have")
    counts = {id(row): counts_of(row) for row in once}
    told = []
    for row in once:
        inside, outside = _shares(counts[id(row)], trained_on(row))
        told.append(f"{row.split} {row.label} {inside} within and {outside} beyond the digits trained on")
    alt = f"Heat maps of exact match by the digits of both operands: {listed(told)}."
    return Picture("operands", lambda: _draw(once, counts), alt)


def _has_digits(row: Condition) -> bool:
    return any({LEFT, RIGHT} <= part.by.keys() for run in row.runs for part in run.result.splits.values() if part.n)


def counts_of(row: Condition) -> Counts:
    """Right predictions and all, over the seeds and test splits, read from the predictions."""
    out: Counts = {}
    for run in row.runs:
        for name, part in run.result.splits.items():
            for one in predictions(run.path, name) if part.role == "test" and {LEFT, RIGHT} <= part.by.keys() else ():
                cell = int(one["tags"][LEFT]), int(one["tags"][RIGHT])
                right, n = out.get(cell, (0, 0))
                out[cell] = right + (one["prediction"] == one["target"]), n + 1
    return out


def trained_on(row: Condition) -> tuple[int, int, int, int] | None:
    """The fewest and most digits of the left, then of the right operand in validation; None if there is none."""
    parts = [run.result.splits["validation"].by for run in row.runs if "validation" in run.result.splits]
    left, right = ([int(value) for part in parts for value in part.get(tag, {})] for tag in (LEFT, RIGHT))
    return (min(left), max(left), min(right), max(right)) if left and right else None


def _shares(counts: Counts, box: tuple[int, int, int, int] | None) -> tuple[str, str]:
    """Exact match within and outside of the box."""
    found = {True: [0, 0], False: [0, 0]}
    for (left, right), (good, n) in counts.items():
        inside = box is not None and box[0] <= left <= box[1] and box[2] <= right <= box[3]
        found[inside][0] += good
        found[inside][1] += n
    inner, outer = (f"{100 * good / n:.1f} %" if n else "untested" for good, n in found.values())
    return inner, outer


def _draw(rows: Sequence[Condition], counts: Mapping[int, Counts]) -> "Figure":
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    order = list(looks_of(rows))
    shown = [
        row for members in experiments(rows).values() for row in sorted(members, key=lambda r: order.index(r.label))
    ]
    most = max(max(cell) for found in counts.values() for cell in found)
    side = min(3.2, max(2.2, 0.32 * most))
    figure, axes = panels(len(shown), "Exact match by digits of the operands", size=(side + 0.3, side + 0.3))
    for one, row in zip(axes, shown, strict=True):
        _heat(one, counts[id(row)], most, trained_on(row))
        one.set_title(wrapped(f"{row.split}: {row.label}"))
    colours = ScalarMappable(Normalize(0, 100), "cividis")
    figure.colorbar(colours, ax=axes, label="exact match (%); trained on: framed", shrink=0.8)
    name_axes(axes, "digits of the right operand", "digits of the left operand")
    return figure


def _heat(axes: "Axes", counts: Counts, most: int, box: tuple[int, int, int, int] | None) -> None:
    import pandas as pd
    import seaborn as sns
    from matplotlib.patches import Rectangle

    digits = range(1, most + 1)
    shares = {cell: 100 * right / n for cell, (right, n) in counts.items()}
    table = pd.DataFrame(
        [[shares.get((left, right)) for right in digits] for left in digits], digits, digits, dtype=float
    )
    sns.heatmap(
        table, vmin=0, vmax=100, cmap="cividis", cbar=False, square=True, annot=most <= 8, fmt=".0f",
        annot_kws={"fontsize": 7}, linewidths=0.5, ax=axes,
    )  # fmt: skip
    axes.set_facecolor("0.9")
    axes.invert_yaxis()
    axes.tick_params(rotation=0)
    if box:
        corner, width, height = (box[2] - 1, box[0] - 1), box[3] - box[2] + 1, box[1] - box[0] + 1
        axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor="#D55E00", lw=2.5, clip_on=False))
