"""What instruments measured: means over the rows of a run and then over seeds, and maps of attention, as tables."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from tfstudy.analysis.frame import RunRecord
from tfstudy.analysis.stats import interval
from tfstudy.analysis.summary import conditions, rows_of
from tfstudy.errors import UserError
from tfstudy.report.markup import count_range, plural
from tfstudy.report.render import Cells, Listing
from tfstudy.runs.schema import Cell, Chart, Measurement, metric_name
from tfstudy.runs.store import read_measurement, saved_instruments

if TYPE_CHECKING:
    from tfstudy.instruments.attention import Maps  # which imports torch


class Measured(NamedTuple):
    """What one instrument measured on the runs of a condition, with the same settings."""

    label: str  # of the condition; unique
    arch: str
    records: Sequence[Measurement]  # of each run

    @property
    def chart(self) -> Chart:
        """How it is drawn."""
        return self.records[0].chart


def by_condition(pairs: Iterable[tuple[RunRecord, Measurement]]) -> list[Measured]:
    """Return the measurements of one instrument with the same settings by condition, in the order of a table."""
    records = {run.result.run: (run, record) for run, record in pairs}
    rows = rows_of(conditions(run for run, _ in records.values()))
    unique = {row.experiment: row for row in rows if row.runs}
    data = {key: " ".join(filter(None, [c.task, c.split, c.corpus])) for key, c in unique.items()}
    several = len({*data.values()}) > 1
    return [
        Measured(f"{data[key]}: " * several + c.label, c.arch, [records[run.result.run][1] for run in c.runs])
        for key, c in unique.items()
    ]


def saved_measurements(runs: Iterable[RunRecord]) -> tuple[dict[str, list[Measured]], list[str]]:
    """Return the saved measurements of these runs by instrument, and notes on those that are left out.

    Of each instrument those with the settings that most runs have are compared.
    """
    found: dict[str, list[tuple[RunRecord, Measurement]]] = {}
    notes, shown = list[str](), dict[str, list[Measured]]()
    for run in (run for run in runs if run.finished):
        for name in saved_instruments(run.path):
            try:
                found.setdefault(name, []).append((run, read_measurement(run.path, name)))
            except UserError as error:
                notes.append(f"Not shown: {error}.")
    for name, pairs in sorted(found.items()):
        [(most, count)] = Counter((one.comparable, one.chart) for _, one in pairs).most_common(1)
        same = [(run, one) for run, one in pairs if (one.comparable, one.chart) == most]
        if others := len(pairs) - count:
            settings = same[0][1].shown_settings
            notes.append(f"Not shown: {plural(others, 'measurement')} of {name} with other settings than {settings}.")
        shown[name] = by_condition(same)
    return shown, notes


def means(all_measured: Sequence[Measured], first: str = "condition") -> pd.DataFrame:
    """Return the means over the runs of each condition, with their 95 % intervals, sorted by the column `first`.

    Columns: `condition` (its label), `facet`, `series` (the hue, or the y of a heat map), `x`, `mean`, `low`, `high`.
    Numbers are sorted by size, then texts by their first appearance.
    """
    ranked = any(len(one.records) > 1 for one in all_measured)
    every = [(one.label, record) for one in all_measured for record in one.records]
    runs = pd.concat([_run_means(record, ranked).assign(condition=label) for label, record in every])
    keys = ["condition", "facet", "series", "x"]
    values = runs.groupby(keys, sort=False)["value"].agg(list)
    frame = pd.DataFrame([interval(own)[:3] for own in values], index=values.index, columns=["mean", "low", "high"])

    def places(cells: pd.Series) -> pd.Series:
        return cells.map({cell: place for place, cell in enumerate(in_order(cells))})

    order = [first, *(key for key in keys if key != first)]
    return frame.reset_index().astype(dict.fromkeys(keys, object)).sort_values(order, key=places, ignore_index=True)


def _run_means(record: Measurement, ranked: bool) -> pd.DataFrame:
    """Return the mean of all rows of a run with the same facet, series and x; with ranks for the ranked column."""
    chart = record.chart
    names = {"facet": chart.facet, "series": series_of(chart), "x": chart.x, "one": chart.ranked}
    empty = [""] * len(record.columns[chart.x])
    cells = {key: record.columns.get(name, empty) for key, name in names.items()}
    rows = pd.DataFrame(cells | {"value": record.columns[chart.value]}, dtype=object)
    found = rows.groupby(list(names), sort=False)["value"].agg(fmean).reset_index()
    if chart.ranked and ranked:  # 1 is the largest of the numbers with the same key, 2 the next, and so on
        keys = [key for key in ("facet", "series", "x") if names[key] != chart.ranked]
        found["one"] = found.groupby(keys, sort=False)["value"].rank(method="first", ascending=False).astype(int)
    if chart.ranked == chart.x:
        found["x"] = found["one"]
    elif chart.ranked:
        found["series"] = found["series"].map(str) + "." + found["one"].map(str)
    return found


def rank_note(all_measured: Sequence[Measured]) -> str:
    """Return what to say of ranks, if there are any: `head 1 has the largest number in its run`."""
    ranked = all_measured[0].chart.ranked
    several = any(len(one.records) > 1 for one in all_measured)
    return f"{ranked} 1 has the largest number in its run" if ranked and several else ""


def value_label(all_measured: Sequence[Measured]) -> str:
    """Return what is measured, such as `entropy / log T`."""
    chart = all_measured[0].chart
    return (chart.hue_label if chart.kind == "heatmap" else chart.y_label) or metric_name(chart.value)


def series_of(chart: Chart) -> str:
    """Return the column of series: the rows of a heat map, or what has colours."""
    return chart.y if chart.kind == "heatmap" else chart.hue


def in_order(values: Iterable[Cell]) -> list[Cell]:
    """Return the different values: numbers by size, then texts in the order of their first appearance."""
    unique = list(dict.fromkeys(values))
    numbers: list[Cell] = sorted(value for value in unique if not isinstance(value, str))
    return [*numbers, *(value for value in unique if isinstance(value, str))]


# Tables


def listing(all_measured: Sequence[Measured]) -> Listing:
    """Return the table of means, with the measured number and the settings above: a row by condition, facet and series.

    JSON has all rows of all runs.
    """
    records = [record for one in all_measured for record in one.records]
    first, chart, found = records[0], records[0].chart, means(all_measured)
    values = in_order(found["x"])
    grid = found.set_index(["condition", "facet", "series", "x"])["mean"].unstack(sort=False)[values]
    head = chart.y_label if chart.kind == "heatmap" and chart.ranked and chart.ranked != chart.x else series_of(chart)
    heads = ["condition" * (len(all_measured) > 1), chart.facet, series_of(chart) and head]
    levels = zip(heads, ("condition", "facet", "series"), strict=True)
    names = {head: list(map(_text, grid.index.get_level_values(key))) for head, key in levels if head}
    prefix = "" if isinstance(values[-1], str) else f"{chart.x} "  # names say themselves what they are
    shown = [*map(_text, values)] if len({*map(_text, values)}) == len(values) else [*map(str, values)]
    numbers = {f"{'' if n else prefix}{shown[n]}": list(map(_text, grid[x])) for n, x in enumerate(values)}
    read = [record.examples for record in records]
    notes = [f"measured on {count_range(read, 'example')}" * (len(set(read)) > 1), rank_note(all_measured)]
    condition = f"{all_measured[0].label}, " * (len(all_measured) == 1)
    title = f"{condition}{first.instrument}: {value_label(all_measured)}"
    heading = ", ".join(filter(None, [title, first.shown_settings]))
    cells = Cells(names | numbers, left=names, names=len(names))
    return Listing([heading, cells], [*filter(None, notes)], msgspec.to_builtins(records))


def _text(cell: object) -> str:
    if not isinstance(cell, float):
        return str(cell)
    return "" if math.isnan(cell) else f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"


def attention_listing(found: "Maps") -> Listing:
    """Return the largest weight of each token in each layer, by mean over heads, and where. JSON has all maps."""
    frame = {"source" if found.kind == "encoder" else "output": [f"{n} {one}" for n, one in enumerate(found.rows, 1)]}
    for layer, maps in groupby(found.maps, key=lambda each: each.layer):
        means = np.mean([each.weights for each in maps], axis=0)
        frame[f"layer {layer}"] = [f"{row.max():.2f} {row.argmax() + 1} {found.columns[row.argmax()]}" for row in means]
    values = found._asdict() | {"maps": [each._asdict() for each in found.maps]}
    title = f"{found.kind} attention: the largest weight of each token, mean over heads"
    return Listing([title, Cells(frame, left=frame)], (), values)
