"""What instruments measured: means over the rows of a run and then over seeds, and maps of attention, as tables."""

import math
from collections.abc import Iterable, Sequence
from operator import itemgetter
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pandas as pd
from rich.text import Text

from tfstudy.analysis.frame import RunRecord
from tfstudy.analysis.stats import interval
from tfstudy.analysis.summary import conditions, rows_of
from tfstudy.errors import UserError
from tfstudy.report.markup import count_range, listed, plural
from tfstudy.report.render import Cells, Listing
from tfstudy.runs.display import metric_name
from tfstudy.runs.measurement_record import Cell, Chart, Measurement, read_measurement, saved_instruments

if TYPE_CHECKING:
    from tfstudy.instruments.attention import Maps  # which imports torch

MAX_NAMED = 4  # runs that a note names
MAX_SHOWN = 6  # values of x in a table, if they are numbers
MAX_NAMES = 20  # if they are names
LETTERS = 18  # of a token
KINDS = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "prefix": "self-attention",
    "cross": "cross-attention",
}


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
    several = len({(c.task, c.split_label) for c in unique.values()}) > 1
    return [
        Measured(
            f"{condition.task} {condition.split}: {condition.label}" if several else condition.label,
            condition.arch,
            [records[run.result.run][1] for run in condition.runs],
        )
        for condition in unique.values()
    ]


def saved_measurements(runs: Iterable[RunRecord]) -> tuple[dict[str, list[Measured]], list[str]]:
    """Return the saved measurements of these runs by instrument, and notes on those that are left out.

    Of each instrument those with the settings that most runs have are compared.
    """
    found: dict[str, dict[str, list[tuple[RunRecord, Measurement]]]] = {}
    notes: list[str] = []
    for run in (run for run in runs if run.finished):
        for name in saved_instruments(run.path):
            try:
                record = read_measurement(run.path, name)
            except UserError as error:
                notes.append(f"Not shown: {error}.")
                continue
            found.setdefault(name, {}).setdefault(f"{record.digest} {record.chart}", []).append((run, record))
    measured: dict[str, list[Measured]] = {}
    for name, groups in sorted(found.items()):
        most = max(groups.values(), key=len)
        for group in (group for group in groups.values() if group is not most):
            named = listed(("/".join(run.path.parts[-2:]) for run, _ in group), MAX_NAMED)
            settings = f" ({shown})" if (shown := group[0][1].shown_settings) else ""
            count = plural(len(group), "measurement")
            notes.append(f"Not shown: {count} of {name} with other settings: {named}{settings}.")
        measured[name] = by_condition(most)
    return measured, notes


def means(all_measured: Sequence[Measured], first: str = "condition") -> pd.DataFrame:
    """Return the means over the runs of each condition, with their 95 % intervals, sorted by the column `first`.

    Columns: `condition` (its label), `facet`, `series` (the hue, or the y of a heat map), `x`, `mean`, `low`, `high`.
    Numbers are sorted by size, then texts by their first appearance.
    """
    runs = pd.concat(
        [
            _run_means(record, ranked=len(one.records) > 1).assign(condition=one.label)
            for one in all_measured
            for record in one.records
        ]
    )
    keys = ["condition", "facet", "series", "x"]
    values = runs.groupby(keys, sort=False)["value"].agg(list)
    frame = pd.DataFrame([interval(own)[:3] for own in values], index=values.index, columns=["mean", "low", "high"])
    frame = frame.reset_index().astype(dict.fromkeys(keys, object))
    places = {key: {cell: place for place, cell in enumerate(in_order(frame[key]))} for key in keys}
    order = [first, *(key for key in keys if key != first)]
    return frame.sort_values(order, key=lambda cells: cells.map(places[str(cells.name)]), ignore_index=True)


def _run_means(record: Measurement, ranked: bool) -> pd.DataFrame:
    """Return the mean of all rows of a run with the same facet, series and x; with ranks for the ranked column."""
    chart = record.chart
    names = {"facet": chart.facet, "series": series_of(chart), "x": chart.x, "one": chart.ranked}
    empty = [""] * len(record.columns[chart.x])
    cells = {key: record.columns[name] if name else empty for key, name in names.items()}
    rows = pd.DataFrame(cells | {"value": record.columns[chart.value]}, dtype=object)
    found = rows.groupby(list(names), sort=False)["value"].agg(fmean).reset_index()
    if chart.ranked and ranked:  # 1 is the largest of the numbers with the same key, 2 the next, and so on
        keys = [key for key in ("facet", "series", "x") if names[key] != chart.ranked]
        found["one"] = found.groupby(keys, sort=False)["value"].rank(method="first", ascending=False).astype(int)
    if chart.ranked == chart.x:
        found["x"] = found["one"]
    elif chart.ranked:
        found["series"] = [f"{line}.{one}" for line, one in zip(found["series"], found["one"], strict=True)]
    return found


def rank_note(all_measured: Sequence[Measured]) -> str:
    """Return what to say of ranks, if there are any: `head 1 has the largest number in its run`."""
    ranked = all_measured[0].chart.ranked
    several = any(len(one.records) > 1 for one in all_measured)
    return f"{ranked} 1 has the largest number in its run" if ranked and several else ""


def value_label(all_measured: Sequence[Measured]) -> str:
    """Return what is measured, and what each number is a mean over: `entropy / log T, mean over heads`."""
    chart = all_measured[0].chart
    label = chart.hue_label if chart.kind == "heatmap" else chart.y_label
    names = dict.fromkeys(name for one in all_measured for record in one.records for name in averaged_columns(record))
    averaged = [f"mean over {' and '.join(f'{words(name)}s' for name in names)}"] if names else []
    return ", ".join([label or words(chart.value), *averaged])


def averaged_columns(record: Measurement) -> list[str]:
    """Return the columns of texts and integers whose different values are averaged in one number of the chart."""
    own = [record.columns[name] for name in record.chart.columns if name != record.chart.value]
    keys = list(zip(*own, strict=True))
    others = {
        name: cells
        for name, cells in record.columns.items()
        if name not in record.chart.columns and not any(isinstance(cell, float) for cell in cells)
    }
    return [name for name, cells in others.items() if len(set(zip(keys, cells, strict=True))) > len(set(keys))]


def words(name: str) -> str:
    """Return the name of a column, a metric or an instrument as words."""
    return metric_name(name)


def series_of(chart: Chart) -> str:
    """Return the column of series: the rows of a heat map, or what has colours."""
    return chart.y if chart.kind == "heatmap" else chart.hue


def in_order(values: Iterable[Cell]) -> list[Cell]:
    """Return the different values: numbers by size, then texts in the order of their first appearance."""
    unique = list(dict.fromkeys(values))
    numbers: list[Cell] = sorted(value for value in unique if not isinstance(value, str))
    return [*numbers, *(value for value in unique if isinstance(value, str))]


# Tables


def listing(all_measured: Sequence[Measured], width: int) -> Listing:
    """Return the table of means: as many values of x as fit a width, with the measured number and the settings above.

    It has a row for each condition, facet and series.
    """
    first, found = all_measured[0].records[0], means(all_measured)
    name = f"{all_measured[0].label}, " if len(all_measured) == 1 else ""
    title = f"{name}{first.instrument}: {value_label(all_measured)}"
    values = in_order(found["x"])
    grid = found.set_index(["condition", "facet", "series", "x"])["mean"].unstack(sort=False)[values]
    for count in range(min(MAX_NAMES if isinstance(values[-1], str) else MAX_SHOWN, len(values)), 0, -1):
        kept = {values[round(number * (len(values) - 1) / max(1, count - 1))] for number in range(count)}
        for _, row in grid.iterrows():  # none is empty
            if row[[*kept]].isna().all():
                kept.add(next(value for value in values if row.notna()[value]))
        cells = _cells(first.chart, grid[[value for value in values if value in kept]], len(all_measured) > 1)
        if cells.width <= width:
            break
    records = [record for one in all_measured for record in one.records]
    read = [record.examples for record in records]
    more = f"{len(kept)} of {len(values)} values of {first.chart.x} are shown; --format json has all"
    notes = [
        *([more] if len(kept) < len(values) else []),
        *([f"measured on {count_range(read, 'example')}"] if len(set(read)) > 1 else []),
        *filter(None, [rank_note(all_measured)]),
    ]
    heading = ", ".join(filter(None, [title, first.shown_settings]))
    return Listing([Text(heading), cells], notes, lambda: msgspec.to_builtins(records))


def _cells(chart: Chart, grid: pd.DataFrame, several: bool) -> Cells:
    """Return the table of a frame of means, whose index has the condition (shown if there are several) and so on."""
    series = series_of(chart)
    head = chart.y_label if chart.kind == "heatmap" and chart.ranked and chart.ranked != chart.x else series
    names = {"condition": "condition" * several, "facet": chart.facet, "series": series and head}
    named = {name: list(map(_text, grid.index.get_level_values(key))) for key, name in names.items() if name}
    prefix = "" if isinstance(grid.columns[-1], str) else f"{chart.x} "  # names say themselves what they are
    numbers = {f"{'' if n else prefix}{_text(x)}": list(map(_text, grid[x])) for n, x in enumerate(grid.columns)}
    return Cells(named | numbers, left=list(named))


def _text(cell: object) -> str:
    if not isinstance(cell, float):
        return str(cell)
    return "" if math.isnan(cell) else f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"


# Maps of attention


def attention_listing(found: "Maps", given: bool) -> Listing:
    """Return, for maps of the first kind, the source token that each token attends to most, by mean over heads.

    The table has a column for each layer. `given` is whether the output was.
    """
    one, layers = found.of_one_kind(), sorted({m.layer for m in found.of_one_kind().maps})
    kind = one.maps[0].kind
    rows, columns = ([_short(token) for token in tokens] for tokens in (one.rows(kind), one.columns(kind)))
    place, room = len(str(len(columns))), max(map(len, columns))
    frame = {"": [str(number) for number in range(1, len(rows) + 1)], "source" if kind == "encoder" else "output": rows}
    for layer in layers:
        maps = [m.weights for m in one.maps if m.layer == layer]
        means = ([fmean(weights) for weights in zip(*row, strict=True)] for row in zip(*maps, strict=True))
        best = [max(enumerate(mean), key=itemgetter(1)) for mean in means]
        frame[f"layer {layer}"] = [f"{at + 1:{place}} {columns[at]:{room}} {weight:4.2f}" for at, weight in best]
    heads = {m.head for m in one.maps}
    of = f", mean of {len(heads)} heads" if len(heads) > 1 else "" if heads == {1} else f", head {max(heads)}"
    title = f"{KINDS[kind]}: the token with the largest weight{of}"

    def values() -> dict[str, Any]:
        maps = [each._asdict() for each in found.maps]
        return {"source": found.source, "output": found.output, "given": given, "maps": maps}

    return Listing([title, Cells(frame, left=[*frame][1:], names=2)], values=values)


def _short(token: str) -> str:
    return token if len(token) <= LETTERS else f"{token[: LETTERS - 1]}…"
