"""The figure of `tfstudy bench`: speed, memory and FLOPs against length, width or batch size."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from tfstudy.analysis.intervals import median_interval
from tfstudy.errors import UserError
from tfstudy.performance.record import WORKS, Record
from tfstudy.report.markup import plural
from tfstudy.report.plots import layout
from tfstudy.report.plots.panel_labels import set_title
from tfstudy.report.plots.series_style import LINES, MARKERS, SeriesStyle, architecture_colours

SIZES = {"length": "length (tokens)", "width": "width (model.dim)", "batch": "batch (examples)"}
MIB, GIGA = 2**20, 1e9
STEP = "milliseconds per batch"

Values = tuple[float, float, float]  # the value, and the ends of its interval


def _speed(record: Record) -> Values | None:
    if not record.seconds:
        return None
    middle, low, high, *_ = median_interval(record.tokens_per_second)
    return (middle, low, high) if low == low else (middle, middle, middle)


def _step(record: Record) -> Values | None:
    if not record.seconds:
        return None
    middle, low, high, *_ = median_interval([1000 * seconds for seconds in record.times])
    return (middle, low, high) if low == low else (middle, middle, middle)


def _memory(record: Record) -> Values | None:
    return (record.memory / MIB,) * 3 if record.memory else None


def _flops(record: Record) -> Values | None:
    return (record.flops.total / GIGA,) * 3 if record.flops else None


QUANTITIES: Mapping[str, Callable[[Record], Values | None]] = {
    "target tokens per second": _speed,
    STEP: _step,
    "peak memory (MiB)": _memory,
    "GFLOP per batch": _flops,
}


def plot(records: Sequence[Record], axis: str = "") -> layout.Plot:
    """Return the figure: a row of panels for training and for generation, a panel for each quantity.

    The horizontal axis is `axis`, or the first size that varies; other sizes that vary are part of the labels.
    `UserError` without records.
    """
    if not records:
        raise UserError("nothing was measured, so there is nothing to draw")
    varied = [name for name in SIZES if len({getattr(record, name) for record in records}) > 1]
    axis = axis if axis in varied else next(iter(varied), "length")
    others = [name for name in varied if name != axis]
    series: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        series.setdefault((record.arch, _variant(record, others)), []).append(record)
    styles = _styles(series)
    shown = [
        (work, name)
        for work in WORKS
        for name, quantity in QUANTITIES.items()
        if any(record.work == work and quantity(record) for record in records)
    ]
    machine, first = records[0].machine, records[0]
    notes = [
        f"{machine.device}, {plural(machine.threads, 'thread')}, torch {machine.versions.get('torch', 'unknown')}."
    ]
    if first.seconds:
        time = "CPU" if first.times is first.cpu_seconds else "wall-clock"
        notes.append(
            f"Speed: by {time} time, median over {plural(len(first.seconds), 'round')} with its 95 % interval."
        )
        notes += _growth(series, axis)
    with layout.theme():
        legend = layout.legend_handles({" ".join(filter(None, name)): s for name, s in styles.items()}, "lines")
        columns = len({name for _, name in shown})
        title = f"Speed, memory and FLOPs by {axis}"
        figure, panels = layout.panels(layout.SCREEN, title, len(shown), columns=columns, legend=legend, notes=notes)
        for axes, (work, name) in zip(panels, shown, strict=True):
            if name == STEP:
                _proportional(axes, [record for record in records if record.work == work], axis)
            for label, own in series.items():
                _draw(axes, [record for record in own if record.work == work], axis, name, styles[label])
            set_title(axes, f"{work}: {name}")
            _scale(axes, sorted({getattr(record, axis) for record in records}), SIZES[axis])
    return layout.Plot("bench", figure, _describe(records, axis))


def _variant(record: Record, others: Sequence[str]) -> str:
    variant = [record.variant] if record.variant != "default" else []
    return " ".join([*variant, *(f"{name}={getattr(record, name)}" for name in others)])


def _styles(series: Iterable[tuple[str, str]]) -> dict[tuple[str, str], SeriesStyle]:
    """Return the style of each architecture and variant: a colour for the one, a marker and a line for the other."""
    names = list(series)
    variants, colours = list(dict.fromkeys(name for _, name in names)), architecture_colours(arch for arch, _ in names)
    looks = {name: (MARKERS[n % len(MARKERS)], LINES[n % len(LINES)]) for n, name in enumerate(variants)}
    return {(arch, name): SeriesStyle(colours[arch], *looks[name], "") for arch, name in names}


def _draw(axes: Axes, records: Sequence[Record], axis: str, quantity: str, style: SeriesStyle) -> None:
    points = sorted((getattr(record, axis), *values) for record in records if (values := QUANTITIES[quantity](record)))
    if not points:
        return
    x, y, low, high = zip(*points, strict=True)
    axes.plot(x, y, color=style.colour, marker=style.marker, ls=style.line, ms=4, lw=1.3)
    axes.fill_between(x, low, high, color=style.colour, alpha=0.15, lw=0)


def _proportional(axes: Axes, records: Sequence[Record], axis: str) -> None:
    """Draw a line of slope 1 that ends at the largest size, in the middle of the records there."""
    sizes = sorted({getattr(record, axis) for record in records})
    last = [values[0] for record in records if getattr(record, axis) == sizes[-1] and (values := _step(record))]
    if len(sizes) > 1 and last:
        end = math.sqrt(min(last) * max(last))
        axes.plot(sizes, [end * size / sizes[-1] for size in sizes], color="0.6", ls=":", lw=1)


def _growth(series: Mapping[tuple[str, str], Sequence[Record]], axis: str) -> list[str]:
    """Return a note with the exponent p of each series: between its two largest sizes, its time grows as size^p."""
    texts = []
    for work in WORKS:
        for name, own in series.items():
            points = [(getattr(r, axis), found[0]) for r in own if r.work == work and (found := _step(r))]
            steps = dict(points)
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
        values = [f"{name} {found[0]:.3g}" for name, quantity in QUANTITIES.items() if (found := quantity(record))]
        sizes = ", ".join(f"{name} {getattr(record, name)}" for name in SIZES)
        texts.append(f"{record.work}, {record.arch} {record.variant}, {sizes}: {', '.join(values)}")
    return f"Speed, memory and FLOPs by {axis}. {'; '.join(texts)}."
