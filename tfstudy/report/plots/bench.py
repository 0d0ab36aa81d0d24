"""The figure of `tfstudy bench`: speed, memory and FLOPs against length, width or batch size."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

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

Values = tuple[float, float, float]  # the value, and the ends of its interval


def quantities(record: Record) -> dict[str, Values]:
    """Return what was measured: `milliseconds per batch`, for example, with its interval, or with equal ends."""
    found: dict[str, Values] = {}
    if record.seconds:
        for name, values in ((SPEED, record.tokens_per_second), (STEP, [1000 * s for s in record.times])):
            middle, low, high, *_ = median_interval(values)
            found[name] = (middle, low, high) if low == low else (middle,) * 3
    if record.memory:
        found[MEMORY] = (record.memory / MIB,) * 3
    if record.flops:
        found[WORK] = (record.flops.total / GIGA,) * 3
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
    members: dict[tuple[str, str], list[Record]] = {}  # by architecture and variant
    for record in records:
        sizes = [f"{name}={getattr(record, name)}" for name in varied if name != axis]
        variant = " ".join([*([record.variant] if record.variant != "default" else []), *sizes])
        members.setdefault((record.arch, variant), []).append(record)
    styles = _styles(members)
    shown = [
        (work, name)
        for work in WORKS
        for name in QUANTITIES
        if any(record.work == work and name in quantities(record) for record in records)
    ]
    machine, first = records[0].machine, records[0]
    torch = machine.versions.get("torch", "unknown")
    notes = [f"{machine.device}, {plural(machine.threads, 'thread')}, torch {torch}."]
    if first.seconds:
        time = "CPU" if first.times is first.cpu_seconds else "wall-clock"
        rounds = plural(len(first.seconds), "round")
        notes.append(f"Speed: by {time} time, median over {rounds} with its 95 % interval.")
        notes += _growth(members, axis)
    with layout.theme():
        legend = series.legend_handles({" ".join(filter(None, name)): s for name, s in styles.items()}, "lines")
        title, columns = f"Speed, memory and FLOPs by {axis}", len({name for _, name in shown})
        figure, panels = layout.panels(layout.SCREEN, title, len(shown), columns=columns, legend=legend, notes=notes)
        for axes, (work, name) in zip(panels, shown, strict=True):
            if name == STEP:
                _draw_proportional(axes, [record for record in records if record.work == work], axis)
            for label, own in members.items():
                points = sorted(
                    (getattr(r, axis), *found[name]) for r in own if r.work == work and name in (found := quantities(r))
                )
                if points:
                    x, y, low, high = zip(*points, strict=True)
                    style = styles[label]
                    axes.plot(x, y, color=style.colour, marker=style.marker, ls=style.line, ms=4, lw=1.3)
                    axes.fill_between(x, low, high, color=style.colour, alpha=0.15, lw=0)
            layout.set_title(axes, f"{work}: {name}")
            _scale(axes, sorted({getattr(record, axis) for record in records}), SIZES[axis])
    return layout.Plot("bench", figure, _describe(records, axis))


def _styles(members: Mapping[tuple[str, str], object]) -> dict[tuple[str, str], series.SeriesStyle]:
    """Return the style of each architecture and variant: a colour for the one, a marker and a line for the other."""
    variants = list(dict.fromkeys(name for _, name in members))
    colours = series.architecture_colours(arch for arch, _ in members)
    looks = {
        name: (series.MARKERS[n % len(series.MARKERS)], series.LINES[n % len(series.LINES)])
        for n, name in enumerate(variants)
    }
    return {(arch, name): series.SeriesStyle(colours[arch], *looks[name], "") for arch, name in members}


def _draw_proportional(axes: Axes, records: Sequence[Record], axis: str) -> None:
    """Draw a line of slope 1 that ends at the largest size, in the middle of the records there."""
    sizes = sorted({getattr(record, axis) for record in records})
    last = [quantities(r)[STEP][0] for r in records if getattr(r, axis) == sizes[-1] and r.seconds]
    if len(sizes) > 1 and last:
        end = math.sqrt(min(last) * max(last))
        axes.plot(sizes, [end * size / sizes[-1] for size in sizes], color="0.6", ls=":", lw=1)


def _growth(members: Mapping[tuple[str, str], Sequence[Record]], axis: str) -> list[str]:
    """Return a note with the exponent p of each series: between its two largest sizes, its time grows as size^p."""
    texts = []
    for work in WORKS:
        for name, own in members.items():
            steps = {getattr(r, axis): quantities(r)[STEP][0] for r in own if r.work == work and r.seconds}
            if len(steps) > 1:
                (x, y), (end, last) = sorted(steps.items())[-2:]
                texts.append(f"{work}, {' '.join(filter(None, name))} {math.log(last / y) / math.log(end / x):.2f}")
    last_two = f"Between the two largest sizes the time grows as {axis} to the power of: {'; '.join(texts)}."
    return [f"Dotted: in proportion to {axis}. {last_two}"] * bool(texts)


def _scale(axes: Axes, values: Sequence[int], label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(values, [f"{value:,}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=7))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(label)


def _describe(records: Sequence[Record], axis: str) -> str:
    """Return the text for readers who cannot see the picture: every value."""
    texts = []
    for record in records:
        values = [f"{name} {value:.3g}" for name, (value, *_) in quantities(record).items()]
        sizes = ", ".join(f"{name} {getattr(record, name)}" for name in SIZES)
        texts.append(f"{record.work}, {record.arch} {record.variant}, {sizes}: {', '.join(values)}")
    return f"Speed, memory and FLOPs by {axis}. {'; '.join(texts)}."
