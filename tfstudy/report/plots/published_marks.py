"""The published figures beside the results of a plot: which are drawn in which row, and how."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.published import Figure, papers
from tfstudy.report.quotations import quotations

SPREADS = {
    "sd": "standard deviation", "sem": "standard error", "ci95": "95 % interval", "range": "lowest to highest run",
    "unknown": "±, not explained",
}  # fmt: skip
SAME, OTHER, APPROXIMATE, UPPER, LOWER = "same", "other", "approximate", "upper_bound", "lower_bound"
SIGNS: dict[str, tuple[str, str, str]] = {  # marker, its face, and its meaning
    SAME: ("D", "black", "published, the settings of these runs"),
    OTHER: ("D", "white", "published, other settings"),
    APPROXIMATE: (r"$\approx$", "black", "published, approximate"),
    UPPER: ("<", "white", "published upper bound"),
    LOWER: (">", "white", "published lower bound"),
}


class Mark(NamedTuple):
    """A published figure in the row of a condition."""

    figure: Figure
    same_settings: bool  # as the runs of the row
    source: int  # number of the paper in the notes

    @property
    def sign(self) -> str:
        """Its key in `SIGNS`."""
        kind = self.figure.value_kind
        return kind if kind in SIGNS else SAME if self.same_settings else OTHER

    @property
    def text(self) -> str:
        """The figure as text, and that it is of one run."""
        return f"{self.figure.text}{' (one run)' if self.figure.value_kind == 'single' else ''}"

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of its spread; None without one."""
        figure = self.figure
        if figure.spread is not None:
            return max(0.0, figure.value - figure.spread), min(100.0, figure.value + figure.spread)
        if figure.spread_low is not None and figure.spread_high is not None:
            return figure.spread_low, figure.spread_high
        return None


def marks_beside(conditions: Sequence[Condition], metrics: Mapping[str, str]) -> dict[int, list[Mark]]:
    """Return the figures in the row of each condition, by its id: those that are beside it in a table.

    If some of the conditions has the settings of a figure, the figure is beside this condition only.
    """
    quoted = {id(condition): quotations(condition, metrics[condition.task]) for condition in conditions}
    same = {one.figure.id for own in quoted.values() for one in own if one.same_settings}
    sources: dict[str, int] = {}
    marks: dict[int, list[Mark]] = {}
    for key, own in quoted.items():
        beside = [one for one in own if one.same_settings or one.figure.id not in same]
        numbers = [sources.setdefault(one.figure.paper, len(sources) + 1) for one in beside]
        marks[key] = [Mark(one.figure, one.same_settings, n) for one, n in zip(beside, numbers, strict=True)]
    return marks


def draw_mark(axes: Axes, mark: Mark, level: float) -> None:
    """Draw a figure and its spread at this height."""
    marker, face, _ = SIGNS[mark.sign]
    if mark.ends:
        axes.plot(mark.ends, [level, level], color="black", lw=0.7, zorder=2)
    axes.plot(mark.figure.value, level, **_style(marker, face), zorder=2.5, clip_on=False)


def mark_handles(marks: Sequence[Mark]) -> list[Any]:
    """Return the legend handles of the marks that are drawn."""
    drawn = {mark.sign for mark in marks}
    handles = [
        Line2D([], [], lw=0, label=SIGNS[sign][2], **_style(*SIGNS[sign][:2])) for sign in SIGNS if sign in drawn
    ]
    kinds = list(dict.fromkeys(SPREADS[mark.figure.spread_kind or "range"] for mark in marks if mark.ends))
    bar = f"published spread:\n{' or '.join(kinds)}"
    return handles + ([Line2D([], [], color="black", lw=0.7, label=bar)] if kinds else [])


def source_notes(marks: Sequence[Mark]) -> list[str]:
    """Return the note that gives the papers by their numbers; none without marks."""
    texts = {mark.source: f"[{mark.source}]\N{NO-BREAK SPACE}{_source(mark.figure)}" for mark in marks}
    return [f"Published: {'; '.join(texts[number] for number in sorted(texts))}"] if texts else []


def _source(figure: Figure) -> str:
    quoted = papers().get(figure.quoted_from)
    return f"{figure.citation}{f', quoted by {quoted.short}' if quoted else ''}"


def _style(marker: str, face: str) -> dict[str, Any]:
    size = 6.0 if marker.startswith("$") else 3.4
    return {
        "marker": marker,
        "ms": size,
        "mfc": face,
        "mec": "black",
        "mew": 0.3 if size > 4 else 0.8,
        "color": "black",
    }
