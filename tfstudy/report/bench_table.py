"""The table of `tfstudy bench`: a part for each architecture and kind of work, as text, Markdown and JSON."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import msgspec
from rich.text import Text

from tfstudy.analysis.claim_files import SIZES
from tfstudy.analysis.stats import Interval, fewest_values, median_interval, ratios
from tfstudy.performance.record import Record, write_records
from tfstudy.report.markup import markdown_list, markdown_table, plural, significant
from tfstudy.report.terminal import Terminal, plain_table
from tfstudy.runs.files import write_atomically

WIDTH = 80  # characters, where the output is not a terminal
MIB, GIGA = 2**20, 1e9
BUSY = 0.8  # CPU time per wall-clock time below which other processes had a large share of the processors


class Row(NamedTuple):
    """A record and what is computed of it."""

    record: Record
    speed: Interval  # median of target tokens per second
    ratio: Interval  # median of the ratio to the variant `default`, measured in the same rounds; nan without one
    cores: float  # CPU time per wall-clock time

    def tree(self) -> dict[str, Any]:
        """The row as plain values."""
        speed, ratio = ({"median": i.mean, "low": i.low, "high": i.high} for i in (self.speed, self.ratio))
        tree = msgspec.to_builtins(self.record) | {"machine": None}
        shown: dict[str, Any] = {key: value for key, value in tree.items() if key != "machine"}
        return shown | {"tokens_per_second": speed, "ratio_to_default": ratio, "cores": self.cores}


def rows(records: Sequence[Record]) -> list[Row]:
    """Return a row for each record, in the same order."""
    defaults = {record.setting: record for record in records if record.variant == "default"}
    return [_row(record, defaults.get(record.setting)) for record in records]


def _row(record: Record, default: Record | None) -> Row:
    speeds = record.tokens_per_second
    compared = ratios(speeds, default.tokens_per_second) if default and default is not record else []
    cores = fmean(record.cpu_seconds) / fmean(record.seconds) if speeds else float("nan")
    return Row(record, median_interval(speeds), median_interval(compared), cores)


def tree(records: Sequence[Record], notes: Sequence[str]) -> dict[str, Any]:
    """Return all values: the machine, and each record with its median, interval and ratio."""
    return {
        "machine": msgspec.to_builtins(records[0].machine) if records else None,
        "records": [row.tree() for row in rows(records)],
        "notes": list(notes),
    }


def show(records: Sequence[Record], notes: Sequence[str]) -> None:
    """Print the tables, and the notes below them."""
    console = Terminal(piped_width=WIDTH)
    for title, heads, cells in _parts(records):
        table = plain_table()
        for head in heads:
            table.add_column(head, justify="left" if head == "variant" else "right", no_wrap=True)
        for row in cells:
            table.add_row(*row)
        console.print(Text(title, style="bold"))
        console.print(table)
        console.print()
    for note in [*explanations(records), *notes]:
        console.print(note)


def save(folder: Path, records: Sequence[Record], notes: Sequence[str], axis: str) -> None:
    """Write the records, `bench.md` and, if anything was measured, `bench.svg` to a folder."""
    write_records(folder, records)
    write_atomically(folder / "bench.md", markdown(records, notes).encode())
    if records:
        from tfstudy.report.plots.bench import plot

        plot(records, axis).save(folder / "bench.svg")


def markdown(records: Sequence[Record], notes: Sequence[str]) -> str:
    """Return the same tables and the notes as Markdown."""
    blocks = [f"**{title}**\n\n{markdown_table(heads, cells)}" for title, heads, cells in _parts(records)]
    return "\n\n".join([*blocks, markdown_list([*explanations(records), *notes])]) + "\n"


def explanations(records: Sequence[Record]) -> list[str]:
    """Return the notes below the tables: the machine, the columns, and whether the machine was busy."""
    if not records:
        return []
    machine, timed = records[0].machine, [row for row in rows(records) if row.record.seconds]
    torch = "".join(f"torch {number}, " for name, number in machine.versions.items() if name == "torch")
    threads = f"{plural(machine.threads, 'thread')} of {plural(machine.processors, 'processor')}"
    notes = [f"{machine.device}, {threads}, {torch}{machine.started[:10]}"]
    if timed:
        one_thread = timed[0].record.times is timed[0].record.cpu_seconds
        half = "half the width of its 95 % interval (order statistics)"
        parts = [
            f"tokens/s: target tokens per second of {'CPU' if one_thread else 'wall-clock'} time, median of "
            f"{plural(len(timed[0].record.seconds), 'round')}",
            f"±: {half}"
            if any(map(_percent, (row.speed for row in timed)))
            else f"its interval (±) needs {fewest_values()} rounds",
            "ratio: to the variant default, median over the rounds" if any(row.ratio.n for row in timed) else "",
            "cores: CPU time per wall-clock time",
        ]
        notes.append("; ".join(filter(None, parts)))
        if machine.accelerator == "cpu" and not one_thread and median(row.cores for row in timed) < BUSY:
            notes.append("the machine was busy with other work; --threads 1 measures CPU time instead")
    if any(record.memory for record in records):
        notes.append("MiB: peak memory of tensors, with parameters and optimiser")
    if any(record.flops for record in records):
        notes.append("GFLOP: of training or generating a batch")
    return notes


Part = tuple[str, list[str], list[list[str]]]  # title, heads, cells


def _parts(records: Sequence[Record]) -> Iterable[Part]:
    varied = [name for name in SIZES if len({getattr(record, name) for record in records}) > 1]
    fixed = [name for name in SIZES if name not in varied]
    every = rows(records)
    for (work, arch), group in groupby(every, key=lambda row: (row.record.work, row.record.arch)):
        members = list(group)
        first = members[0].record
        sizes = [f"{name} {getattr(first, name)}" for name in fixed]
        counts = sorted({row.record.parameters for row in members})
        parameters = " to ".join(dict.fromkeys(_short(count) for count in (counts[0], counts[-1])))
        title = ", ".join([f"{work}: {arch}", f"{parameters} parameters", *sizes])
        columns = {
            **{name: [str(getattr(row.record, name)) for row in members] for name in varied},
            **_columns(members),
        }
        shown = {head: cells for head, cells in columns.items() if any(cells)}
        yield title, list(shown), [list(cells) for cells in zip(*shown.values(), strict=True)]


def _columns(members: Sequence[Row]) -> dict[str, list[str]]:
    records = [row.record for row in members]
    return {
        "variant": [record.variant for record in records],
        "tokens/s": [significant(row.speed.mean) for row in members],
        "±": [_percent(row.speed) for row in members],
        "ratio": [significant(row.ratio.mean) for row in members],
        "cores": [significant(row.cores) for row in members],
        "MiB": [significant((record.memory or 0) / MIB or float("nan")) for record in records],
        "GFLOP": [significant(record.flops.total / GIGA) if record.flops else "" for record in records],
    }


def _percent(speed: Interval) -> str:
    return "" if speed.low != speed.low else f"{50 * (speed.high - speed.low) / speed.mean:.0f} %"


def _short(count: int) -> str:
    return f"{count / 1e6:.2f}M" if count >= 10**5 else f"{count:,}"
