"""What `tfstudy bench` measured: a table for training and one for generation, and a figure."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd

from tfstudy.analysis.claim_files import SIZES
from tfstudy.analysis.stats import FEWEST_VALUES, median_interval
from tfstudy.performance.record import Record
from tfstudy.report.markup import plural, short_number, significant
from tfstudy.report.render import Cells, Listing

if TYPE_CHECKING:
    from tfstudy.report.plots.layout import Plot

MIB, GIGA = 2**20, 1e9
LABELS = {"length": "length (tokens)", "width": "width (model.dim)", "batch": "batch (examples)"}


def listing(records: Sequence[Record], notes: Sequence[str]) -> Listing:
    """Return the tables with notes below them, and the records as plain values."""
    explained = [*_explanations(records), *notes]
    values = {"records": msgspec.to_builtins(records), "notes": [*notes]}
    return Listing(list(_tables(records)), explained, values)


def _varied(records: Sequence[Record]) -> list[str]:
    return [name for name in SIZES if len({getattr(record, name) for record in records}) > 1]


def _tables(records: Sequence[Record]) -> Iterator[Cells]:
    varied, defaults = _varied(records), {_setting(one): one for one in records if one.variant == "default"}
    for work, group in groupby(records, key=lambda one: one.work):
        rows = []
        for one in group:
            speed, default = median_interval(one.tokens_per_second), defaults.get(_setting(one), one)
            half = 50 * (speed.high - speed.low) / speed.mean
            ratio = map(lambda a, b: a / b, one.tokens_per_second, default.tokens_per_second)  # of the same rounds
            rows.append({
                "architecture": one.arch, **{name: str(getattr(one, name)) for name in varied}, "variant": one.variant,
                "tokens/s": significant(speed.mean), "±": "" if math.isnan(half) else f"{half:.0f} %",
                "ratio": significant(median_interval([*ratio]).mean) if default is not one else "",
                "MiB": significant((one.memory or math.nan) / MIB),
                "GFLOP": significant(one.flops.total / GIGA if one.flops else math.nan),
            })  # fmt: skip
        shown = [{head: row[head] for head in row if any(other[head] for other in rows)} for row in rows]
        sizes = [f"{name} {getattr(records[0], name)}" for name in SIZES if name not in varied]
        yield Cells.of(shown, title=", ".join([work, *sizes]), left=("architecture", "variant"))


def _setting(record: Record) -> tuple[object, ...]:
    """Return what two variants of one setting have in common."""
    return record.work, record.arch, *(getattr(record, name) for name in SIZES)


def _explanations(records: Sequence[Record]) -> list[str]:
    """Return the notes below the tables: the machine, the columns and the sizes of models."""
    machine, rounds = records[0].machine, len(records[0].seconds)
    threads = f"{plural(machine.threads, 'thread')} of {plural(machine.processors, 'processor')}"
    torch = f"torch {machine.versions.get('torch', 'unknown')}"
    notes = [f"{machine.device}, {threads}, {torch}, {machine.started[:10]}"]
    if rounds:
        enough = rounds >= FEWEST_VALUES
        half = "half the width of its 95 % interval" if enough else f"from {FEWEST_VALUES} rounds on"
        notes.append(
            f"tokens/s: target tokens per second of {records[0].clock} time, median of {plural(rounds, 'round')}; "
            f"±: {half}; ratio: to the variant default, median over the rounds"
        )
    counts = {one.arch: sorted({each.parameters for each in records if each.arch == one.arch}) for one in records}
    sizes = [f"{arch} {' to '.join({short_number(n): 0 for n in (own[0], own[-1])})}" for arch, own in counts.items()]
    notes.append("MiB: peak memory of tensors, with parameters and optimiser; GFLOP: of a batch")
    return [*notes, f"parameters: {', '.join(sizes)}"]


def plot(records: Sequence[Record], axis: str = "") -> "Plot":
    """Return the figure: a row of panels for training and for generation, a panel for each quantity.

    The horizontal axis is `axis`, or the first size that varies; other sizes that vary are part of the labels.
    """
    from tfstudy.report.plots import layout

    varied = _varied(records)
    axis, rows = axis if axis in varied else next(iter(varied), SIZES[0]), []
    for one in records:
        sizes = [f"{name}={getattr(one, name)}" for name in varied if name != axis]
        label = " ".join([one.arch, *[one.variant] * (one.variant != "default"), *sizes])
        about: dict[str, Any] = {"arch": one.arch, "label": label, "size": getattr(one, axis)}
        speed = dict(zip(("mean", "low", "high"), median_interval(one.tokens_per_second), strict=False))
        rows.append(about | {"panel": f"{one.work}: target tokens per second"} | speed)
        rows.append(about | {"panel": f"{one.work}: peak memory (MiB)", "mean": (one.memory or math.nan) / MIB})
        flops = one.flops.total / GIGA if one.flops else math.nan
        rows.append(about | {"panel": f"{one.work}: GFLOP per batch", "mean": flops})
    frame = pd.DataFrame(rows).dropna(subset="mean")
    styles, ticks, title = layout.styles_of(frame), sorted(frame["size"].unique()), f"Speed, memory and FLOPs by {axis}"
    with layout.theme():
        panels = layout.panels(title, frame["panel"].nunique(), columns=2, ratio=0.5)
        for axes, (panel, own) in zip(panels.axes, frame.groupby("panel", sort=False), strict=True):
            for shown, points in own.sort_values("size").groupby("label", sort=False):
                layout.draw_line(axes, points.set_index("size"), styles[str(shown)])
            axes.set_yscale("log")
            layout.set_log_ticks(axes.yaxis)
            layout.set_sizes(axes, ticks, [f"{size:,}" for size in ticks])
            axes.set_title(panels.lines(str(panel)))
        panels.label(LABELS[axis], "")
        said = [f"{one.panel}, {one.label}, {axis} {one.size}: {one.mean:.3g}" for one in frame.itertuples()]
        notes = [*_explanations(records)[:1], f"Speed: by {records[0].clock} time, median with 95 % interval."]
        return panels.plot("bench", f"{title}. {layout.join(said)}.", layout.legend_handles(styles, lines=True), notes)
