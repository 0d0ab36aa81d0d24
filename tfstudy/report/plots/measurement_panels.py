"""The panels of an instrument's figure: which numbers each shows."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfstudy.analysis.intervals import Interval
from tfstudy.report.measured import Key, Measured, in_order, intervals, words
from tfstudy.runs.measurement_record import Cell, Chart

Series = Mapping[Cell, Mapping[Cell, Interval]]  # by hue, condition or y: a number at each x


class Panel(NamedTuple):
    """What one panel shows."""

    title: str
    facet: Cell
    series: Series


def panels_of(chart: Chart, measured: Sequence[Measured]) -> list[Panel]:
    """Return the panels: one per facet where conditions have colours, else one per condition and facet."""
    means = {one.label: intervals(one) for one in measured}
    facets = in_order(key[0] for cells in means.values() for key in cells)
    if chart.hue:
        both = [(label, facet) for label in means for facet in facets]
        found = [Panel(_panel_title(label, facet, chart), facet, _series(means[label], facet)) for label, facet in both]
        return [panel for panel in found if panel.series]
    return [
        Panel(
            _panel_title("", facet, chart),
            facet,
            {label: _series(cells, facet).get("", {}) for label, cells in means.items()},
        )
        for facet in facets
    ]


def _series(cells: Mapping[Key, Interval], facet: Cell) -> Series:
    own = {key: value for key, value in cells.items() if key[0] == facet}
    order = in_order(x for *_, x in own)
    return {
        name: {x: own[facet, name, x] for x in order if (facet, name, x) in own}
        for name in in_order(key[1] for key in own)
    }


def _panel_title(label: str, facet: Cell, chart: Chart) -> str:
    text = f"{words(chart.facet)} {facet}" if not isinstance(facet, str) else words(facet)
    return ", ".join(filter(None, [label, text]))
