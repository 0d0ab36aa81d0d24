"""The figure of `tfstudy bench`: speed, memory and FLOPs against length, width or batch size."""

import math
from collections.abc import Sequence

import pandas as pd

from tfstudy.analysis.stats import median_interval
from tfstudy.errors import UserError
from tfstudy.performance.record import WORKS, Record
from tfstudy.report.markup import plural
from tfstudy.report.plots import layout, series

SIZES = {"length": "length (tokens)", "width": "width (model.dim)", "batch": "batch (examples)"}
MIB, GIGA = 2**20, 1e9
SPEED, STEP, MEMORY, WORK = QUANTITIES = (
    "target tokens per second", "milliseconds per batch", "peak memory (MiB)", "GFLOP per batch"
)  # fmt: skip


def quantities(record: Record) -> dict[str, tuple[float, float, float]]:
    """Return what was measured: `milliseconds per batch`, for example, with the ends of its interval, or nan."""
    found = {}
    if record.seconds:
        found[SPEED] = median_interval(record.tokens_per_second)[:3]
        found[STEP] = median_interval([1000 * seconds for seconds in record.times])[:3]
    if record.memory:
        found[MEMORY] = (record.memory / MIB, math.nan, math.nan)
    if record.flops:
        found[WORK] = (record.flops.total / GIGA, math.nan, math.nan)
    return found


def plot(records: Sequence[Record], axis: str = "") -> layout.Plot:
    """Return the figure: a row of panels for training and for generation, a panel for each quantity.

    The horizontal axis is `axis`, or the first size that varies; other sizes that vary are part of the labels.
    `UserError` without records.
    """
    if not records:
        raise UserError("nothing was measured, so there is nothing to draw")
    varied = [name for name in SIZES if len({getattr(record, name) for record in records}) > 1]
    axis = axis if axis in varied else next(iter(varied), "length")
    rows, said = [], []
    for record in records:
        sizes = [f"{name}={getattr(record, name)}" for name in varied if name != axis]
        label = " ".join([record.arch, *[record.variant] * (record.variant != "default"), *sizes])
        found = quantities(record)
        rows += [(record.work, record.arch, label, getattr(record, axis), name, *found[name]) for name in found]
        values = ", ".join(f"{name} {value:.3g}" for name, (value, *_) in found.items())
        size = ", ".join(f"{name} {getattr(record, name)}" for name in SIZES)
        said.append(f"{record.work}, {record.arch} {record.variant}, {size}: {values}")
    frame = pd.DataFrame(rows, columns=["work", "arch", "label", "size", "quantity", "mean", "low", "high"])
    styles, by_cell = series.styles_of(frame), dict([*frame.groupby(["work", "quantity"])])
    cells = [(work, name) for work in WORKS for name in QUANTITIES if (work, name) in by_cell]
    ticks = sorted(set(frame["size"]))
    with layout.theme():
        panels = layout.panels(f"Speed, memory and FLOPs by {axis}", len(cells), columns=2, ratio=0.5)
        for axes, (work, name) in zip(panels.axes, cells, strict=True):
            own = by_cell[work, name].sort_values("size")
            for label, points in own.groupby("label", sort=False):
                series.draw_line(axes, points.set_index("size"), styles[str(label)])
            axes.set_yscale("log")
            layout.set_log_ticks(axes.yaxis)
            layout.set_sizes(axes, ticks, [f"{size:,}" for size in ticks])
            axes.set_title(panels.lines(f"{work}: {name}"))
        panels.label(SIZES[axis], "")
        alt = f"Speed, memory and FLOPs by {axis}. {'; '.join(said)}."
        return panels.plot("bench", alt, series.legend_handles(styles, lines=True), _notes(records))


def _notes(records: Sequence[Record]) -> list[str]:
    """Return the machine, and how speed was measured."""
    machine, first = records[0].machine, records[0]
    torch = machine.versions.get("torch", "unknown")
    notes = [f"{machine.device}, {plural(machine.threads, 'thread')}, torch {torch}."]
    if first.seconds:
        time = "CPU" if first.times is first.cpu_seconds else "wall-clock"
        rounds = plural(len(first.seconds), "round")
        notes.append(f"Speed: by {time} time, median over {rounds} with its 95 % interval.")
    return notes
