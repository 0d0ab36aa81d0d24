"""The figure of `tfstudy bench`: speed, memory and FLOPs against length, width or batch size."""

import math
from collections.abc import Sequence

import numpy as np
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
    rows = []
    for record in records:
        sizes = [f"{name}={getattr(record, name)}" for name in varied if name != axis]
        variant = " ".join([*([record.variant] if record.variant != "default" else []), *sizes])
        names = (record.work, record.arch, variant, f"{record.arch} {variant}".strip(), getattr(record, axis))
        rows += [(*names, quantity, *values) for quantity, values in quantities(record).items()]
    frame = pd.DataFrame(rows)
    frame.columns = pd.Index(["work", "arch", "variant", "label", axis, "quantity", "mean", "low", "high"])
    colours, variants = series.architecture_colours(frame["arch"]), list(dict.fromkeys(frame["variant"]))
    named = zip(frame["label"], frame["arch"], frame["variant"], strict=True)
    styles = {label: series.style_number(variants.index(variant), colours[arch]) for label, arch, variant in named}
    cells = [
        (work, name) for work in WORKS for name in QUANTITIES if len(frame.query("work == @work & quantity == @name"))
    ]
    with layout.theme():
        title, columns = f"Speed, memory and FLOPs by {axis}", len({name for _, name in cells})
        panels = layout.panels(layout.SCREEN, title, len(cells), columns=columns)
        for axes, (work, name) in zip(panels.axes, cells, strict=True):
            own = frame.query("work == @work & quantity == @name").sort_values(axis)
            last = own[own[axis] == own[axis].max()]["mean"]
            if name == STEP and own[axis].nunique() > 1:  # in proportion, through the middle at the largest size
                end = math.sqrt(last.min() * last.max())
                axes.plot(own[axis], end * own[axis] / own[axis].max(), color="0.6", ls=":", lw=1)
            for label, points in series.grouped(own, "label"):
                series.draw_line(axes, points.set_index(axis), styles[label])
            axes.set_yscale("log")
            layout.set_log_ticks(axes.yaxis)
            values = sorted(set(frame[axis]))
            layout.set_sizes(axes, values, [f"{value:,}" for value in values])
            axes.set_title(panels.lines(f"{work}: {name}"))
        panels.label(SIZES[axis], "")
        return panels.plot(
            "bench", _describe(records, axis), series.legend_handles(styles, "lines"), _notes(records, frame, axis)
        )


def _notes(records: Sequence[Record], frame: pd.DataFrame, axis: str) -> list[str]:
    """Return the machine, how speed was measured, and the exponent p of each series: its time grows as size^p."""
    machine, first = records[0].machine, records[0]
    notes = [
        f"{machine.device}, {plural(machine.threads, 'thread')}, torch {machine.versions.get('torch', 'unknown')}."
    ]
    if first.seconds:
        time = "CPU" if first.times is first.cpu_seconds else "wall-clock"
        notes.append(
            f"Speed: by {time} time, median over {plural(len(first.seconds), 'round')} with its 95 % interval."
        )
    texts = []
    for work in WORKS:
        for label, own in series.grouped(frame[(frame["quantity"] == STEP) & (frame["work"] == work)], "label"):
            last = own.sort_values(axis)[[axis, "mean"]].apply(np.log).diff().iloc[-1]
            if len(own) > 1:
                texts.append(f"{work}, {label} {last['mean'] / last[axis]:.2f}")
    grows = f"Between the two largest sizes the time grows as {axis} to the power of: {'; '.join(texts)}."
    return [*notes, *[f"Dotted: in proportion to {axis}. {grows}"] * bool(texts)]


def _describe(records: Sequence[Record], axis: str) -> str:
    """Return the text for readers who cannot see the picture: every value."""
    texts = []
    for record in records:
        values = [f"{name} {value:.3g}" for name, (value, *_) in quantities(record).items()]
        sizes = ", ".join(f"{name} {getattr(record, name)}" for name in SIZES)
        texts.append(f"{record.work}, {record.arch} {record.variant}, {sizes}: {', '.join(values)}")
    return f"Speed, memory and FLOPs by {axis}. {'; '.join(texts)}."
