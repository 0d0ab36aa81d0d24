"""Curves of several series in one panel, visible even where they coincide."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from tfstudy.analysis.intervals import clipped, interval
from tfstudy.report.plots.series_style import SeriesStyle

TOLERANCE = 0.5  # curves that are closer than this coincide
DASH = 3.5  # length of a dash of one colour where curves coincide, in line widths
MAX_MARKERS = 25  # longer curves have none

Points = Mapping[int, Sequence[float]]  # the value of each seed at each x


class Stretch(NamedTuple):
    """A part of a curve on which the same other curves coincide with it."""

    x: list[int]
    curves: tuple[int, ...]  # that coincide, including itself


def draw_percentages(axes: Axes, curves: Sequence[tuple[Points, SeriesStyle]]) -> None:
    """Draw the mean over seeds and, of several seeds, a band for its 95 % interval.

    Where curves coincide, their colours alternate.
    """
    means = [_means(points) for points, _ in curves]
    for number, (points, style) in enumerate(curves):
        _draw_band(axes, points, style)
        own = means[number]
        common = [stretch for stretch in stretches(means, number) if len(stretch.curves) > 1]
        line: dict[str, Any] = {"color": style.colour, "lw": 1.4, "ls": "none" if common else style.line}
        if len(own) <= MAX_MARKERS:
            visible = [place for place, x in enumerate(own) if _has_marker(means, number, x)]
            line |= {"marker": style.marker, "ms": 3.5, "mec": "white", "mew": 0.4, "markevery": visible}
        axes.plot(list(own), list(own.values()), zorder=3, **line)
        for stretch in stretches(means, number) if common else []:
            dashes = _alternating(stretch.curves.index(number), len(stretch.curves), style)
            axes.plot(stretch.x, [own[x] for x in stretch.x], color=style.colour, lw=1.4, ls=dashes, zorder=2.5)


def coincide(curves: Sequence[Points]) -> bool:
    """Whether any two curves coincide on some part."""
    means = [_means(points) for points in curves]
    return any(len(stretch.curves) > 1 for number in range(len(means)) for stretch in stretches(means, number))


def _means(points: Points) -> dict[int, float]:
    return {x: mean(values) for x, values in points.items()}


def stretches(curves: Sequence[Mapping[int, float]], number: int) -> list[Stretch]:
    """Return the parts of a curve, in their order, each with the curves that coincide on it."""
    xs = list(curves[number])
    out: list[Stretch] = []
    for start, end in pairwise(xs):
        same = tuple(sorted(set(_coinciding(curves, number, start)) & set(_coinciding(curves, number, end))))
        if out and out[-1].curves == same:
            out[-1].x.append(end)
        else:
            out.append(Stretch([start, end], same))
    return out


def _coinciding(curves: Sequence[Mapping[int, float]], number: int, x: int) -> list[int]:
    """Return the curves that have this curve's value at x, itself included."""
    own = curves[number][x]
    return [other for other, curve in enumerate(curves) if x in curve and abs(curve[x] - own) <= TOLERANCE]


def _has_marker(curves: Sequence[Mapping[int, float]], number: int, x: int) -> bool:
    """Whether it is this curve's turn: curves with the same value take turns in having a marker."""
    same = _coinciding(curves, number, x)
    return same[sorted(curves[number]).index(x) % len(same)] == number


def _alternating(rank: int, count: int, style: SeriesStyle) -> Any:
    """Return dashes that leave room for those of the other curves."""
    return (DASH * (count - rank), (DASH, DASH * (count - 1))) if count > 1 else style.line


def _draw_band(axes: Axes, points: Points, style: SeriesStyle) -> None:
    if all(len(values) < 2 for values in points.values()):
        return
    ends = [clipped(interval(values)) for values in points.values()]
    low, high = [end.low for end in ends], [end.high for end in ends]
    axes.fill_between(list(points), low, high, color=style.colour, alpha=0.18, lw=0)
