"""Which rows differ, and by how much."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tasks.errors import UserError
from tfstudy.analysis.comparisons import Verdict, verdicts
from tfstudy.analysis.conditions import Condition, main_metrics
from tfstudy.report.markup import p_value
from tfstudy.report.plots.layout import Picture, canvas, listed, metric_name, place, plain
from tfstudy.report.plots.series_style import colours_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 60  # verdicts in a picture
WIDE = 56  # letters of two labels that stand in one line
LINE = 0.14  # inches
NOTE = "in the colour of the higher one; in brackets: further seeds that it would need"
MINUS = "\N{MINUS SIGN}"


def differences(rows: Sequence[Condition]) -> Picture:
    """Every difference of two rows of the same examples with its 95 % interval and corrected p."""
    metrics = main_metrics(rows)
    found = verdicts(rows, metrics)
    tested = [verdict for verdict in found if not math.isnan(verdict.p)]
    if not tested:
        raise UserError("no two rows of the same examples have 2 seeds each, so no difference is tested")
    clear = [
        f"{place(one.first, rows)}: {one.first.label} {_points(one)} {one.second.label} ({_p(one)})"
        for one in tested
        if one.significant
    ]
    alt = (
        f"Differences between rows with 95 % intervals: {len(clear)} of {len(tested)} are significant"
        + (f", {listed(clear)}" if clear else "")
        + "."
    )
    notes = _notes(len(found) - len(tested), len(tested))
    least = sorted(range(len(tested)), key=lambda number: tested[number].p)[:MOST]
    shown = [tested[number] for number in sorted(least)]
    return Picture("differences", lambda: _draw(shown, rows, metrics, notes), alt)


def _names(verdict: Verdict) -> str:
    """Both rows, in two lines if they are long."""
    first, second = plain(verdict.first.label), plain(verdict.second.label)
    return f" {MINUS} ".join([first, second]) if len(first + second) <= WIDE else f"{first} {MINUS}\n{second}"


def _points(verdict: Verdict) -> str:
    return f"{verdict.found.mean:+.1f}".replace("-", MINUS) + " points to"


def _p(verdict: Verdict) -> str:
    """`p = .034`, or `p < .001`."""
    return f"p = {p_value(verdict.p)}".replace("= <", "< ")


def _notes(untested: int, tested: int) -> list[str]:
    few = [f"{untested} pairs with a single seed are not tested"] if untested else []
    return [*few, *([f"the {MOST} of {tested} with the smallest p"] if tested > MOST else [])]


def _draw(
    found: Sequence[Verdict], rows: Sequence[Condition], metrics: Mapping[str, str], notes: Sequence[str]
) -> "Figure":
    texts = [_names(verdict) for verdict in found]
    places: dict[str, list[int]] = {}
    for number, verdict in enumerate(found):
        places.setdefault(place(verdict.first, rows), []).append(number)
    name = 0.068 * max(len(line) for text in texts for line in text.splitlines())
    heights = [0.09 + LINE * (text.count("\n") + 1) for text in texts]
    figure = canvas(5.2 + name, 1.3 + sum(heights) + 0.32 * len(places), "Differences, with 95 % intervals")
    axes = figure.subplots()
    colours = colours_of(row.arch for row in rows)
    top, ticks = 0.0, []  # in inches
    for where, numbers in places.items():
        level = axes.get_yaxis_transform()
        axes.text(0, top + 0.14, f" {where}", transform=level, va="center", weight="bold", fontsize=8)
        top += 0.24
        for number in numbers:
            ticks.append(top + heights[number] / 2)
            _whisker(axes, found[number], ticks[-1], colours)
            top += heights[number]
        top += 0.08
        axes.axhline(top, color="0.85", lw=0.8)
    axes.axvline(0, color="0.3", lw=1)
    axes.set(yticks=ticks, yticklabels=texts, xlim=_ends(found), ylim=(top, 0))
    axes.grid(visible=False, axis="y")
    unit = metric_name(metrics).replace("(%)", "(points)")
    axes.set_xlabel("\n".join([f"difference in {unit}", *notes]))
    _legend(figure)
    return figure


def _ends(found: Sequence[Verdict]) -> tuple[float, float]:
    """Of the axis: as wide as the intervals are, within what differences of shares can be."""
    far = max(max(abs(v.found.low), abs(v.found.high), abs(v.found.mean)) for v in found)
    far = min(104.0, max(2.0, 1.06 * far))
    return -far, far


def _whisker(axes: "Axes", verdict: Verdict, level: float, colours: Mapping[str, str]) -> None:
    one = verdict.found
    colour = colours[(verdict.first if one.mean > 0 else verdict.second).arch]
    face = colour if verdict.significant else "white"
    axes.plot([max(one.low, -200), min(one.high, 200)], [level, level], color=colour, lw=1.5, solid_capstyle="butt")
    axes.plot(one.mean, level, marker="o", ms=5.5, mfc=face, mec=colour, mew=1.3, zorder=3)
    text = _p(verdict)
    text += f"  (+{n} seed{'s' * (n > 1)})" if (n := verdict.more_seeds) else ""
    axes.text(1.02, level, text, transform=axes.get_yaxis_transform(), va="center", fontsize=8)


def _legend(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    marks = {"significant (Holm, .05)": "0.3", "undecided": "white"}
    handles = [Line2D([], [], marker="o", lw=1.5, color="0.3", mfc=face, label=text) for text, face in marks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, title=NOTE)
