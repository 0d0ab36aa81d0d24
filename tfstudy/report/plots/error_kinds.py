"""What is wrong with wrong predictions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tasks.errors import UserError
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.error_kinds import anatomy
from tfstudy.report.error_examples import predictions
from tfstudy.report.plots.layout import Picture, beside, by_place, canvas, in_columns, listed, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Paint(NamedTuple):
    """How a kind of error is drawn."""

    colour: str
    hatch: str = ""


# Too short is blue, too long is orange, of the right length green or purple (after Okabe & Ito 2008).
PAINTS = {
    "right": Paint("#E8E8E8"),
    "empty": Paint("#222222"),
    "stops early": Paint("#0072B2"),
    "part left out": Paint("#56B4E9"),
    "other, too short": Paint("#BFE0F5", "//"),
    "runs on": Paint("#D55E00"),
    "repeated part": Paint("#E69F00"),
    "other, too long": Paint("#F8DFA6", "//"),
    "swapped parts": Paint("#CC79A7"),
    "one token for another": Paint("#009E73"),
    "other tokens, right length": Paint("#A8DCCB", "//"),
}
HEAD = 0.26  # inches above the rows of a test split
LINE = 0.15  # inches
TOLD = 9.0  # per cent from which on a share is written into its bar


def errors(rows: Sequence[Condition]) -> Picture:
    """The kinds of all predictions as stacked shares, a bar a row, over all its seeds.

    Runs whose predictions are not kept are left out; `UserError` if there are no others.
    """
    shares: dict[int, dict[str, float]] = {}
    for row in rows:
        if found := shares_of(row):
            shares[id(row)] = found
    if not shares:
        raise UserError("no run's predictions on a test split can be read")
    shown = [row for row in rows if id(row) in shares]
    told = []
    for name, members in by_place(shown).items():
        worst = [f"{row.label} {text}" for row in members if (text := most_frequent(shares[id(row)]))]
        told += [f"{name}: {', '.join(worst)}"] if worst else []
    alt = f"Kinds of errors by row; the most frequent, as shares of all predictions, {listed(told) or 'none'}."
    return Picture("errors", lambda: _draw(shown, shares), alt)


def shares_of(row: Condition) -> dict[str, float]:
    """Kind to its share of the predictions of all seeds, in per cent; empty if none can be read."""
    counts: Counter[str] = Counter()
    for run in row.runs:
        if row.test in run.result.splits and (run.path / "predictions" / f"{row.test}.jsonl.gz").exists():
            counts.update(anatomy(predictions(run.path, row.test), examples=0).kinds)
    return {kind: 100 * counts[kind] / counts.total() for kind in PAINTS if counts[kind]}


def most_frequent(shares: Mapping[str, float]) -> str:
    """The most frequent kind of error in words; empty without errors."""
    wrong = {kind: share for kind, share in shares.items() if kind != "right"}
    kind = max(wrong, key=lambda kind: wrong[kind], default="")
    return f"{kind} {wrong[kind]:.1f} %" if kind else ""


def _draw(rows: Sequence[Condition], shares: Mapping[int, Mapping[str, float]]) -> "Figure":
    columns = in_columns(by_place(rows))
    kinds = [kind for kind in PAINTS if any(kind in found for found in shares.values())]
    width = 3.6 + beside(row.label for row in rows)
    most = max(sum(HEAD + sum(map(_height, members)) for members in places.values()) for places in columns)
    height = max(0.9 + most, 0.6 + 0.19 * len(kinds))
    figure = canvas(width * len(columns) + beside(kinds), height, "Kinds of errors")
    for axes, places in zip(figure.subplots(1, len(columns), squeeze=False).flat, columns, strict=True):
        _column(axes, places, shares)
        axes.set(xlabel="share of all predictions (%)", xlim=(0, 100), ylim=(most, 0))
        axes.grid(visible=False)
        axes.spines[["top", "right", "left"]].set_visible(False)
    _legend(figure, kinds)
    return figure


def _height(row: Condition) -> float:
    return 0.06 + LINE * (wrapped(row.label).count("\n") + 1)


def _column(axes: "Axes", places: Mapping[str, Sequence[Condition]], shares: Mapping[int, Mapping[str, float]]) -> None:
    top, ticks, names = 0.0, [], []  # in inches
    for name, members in places.items():
        axes.text(0, top + HEAD - 0.08, name, va="center", weight="bold", fontsize=8)
        top += HEAD
        for row in members:
            ticks.append(top + _height(row) / 2)
            names.append(wrapped(row.label))
            _bar(axes, ticks[-1], shares[id(row)])
            top += _height(row)
    axes.set_yticks(ticks, names)


def _bar(axes: "Axes", level: float, shares: Mapping[str, float]) -> None:
    left = 0.0
    for kind, share in shares.items():
        paint = PAINTS[kind]
        axes.barh(level, share, LINE, left, color=paint.colour, hatch=paint.hatch, edgecolor="white", lw=0.4)
        if share >= TOLD:
            dark = sum(int(paint.colour[i : i + 2], 16) for i in (1, 3, 5)) < 380
            colour = "white" if dark else "black"
            axes.text(
                left + share / 2, level, f"{share:.0f}", ha="center", va="center_baseline", fontsize=7, color=colour
            )
        left += share


def _legend(figure: "Figure", kinds: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    paints = [(kind, PAINTS[kind]) for kind in kinds]
    handles = [Patch(facecolor=p.colour, hatch=p.hatch, edgecolor="white", lw=0.4, label=kind) for kind, p in paints]
    figure.legend(handles=handles, loc="outside right upper")
