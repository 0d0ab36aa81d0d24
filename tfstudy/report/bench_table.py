"""What `tfstudy bench` measured: a table for each architecture and kind of work."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import msgspec

from tfstudy.analysis.claim_files import SIZES
from tfstudy.analysis.stats import Interval, fewest_values, median_interval
from tfstudy.performance.record import Record, write_records
from tfstudy.report.markup import plural, short_number, significant
from tfstudy.report.render import Cells, Listing, render
from tfstudy.runs.files import write_atomically

MIB, GIGA = 2**20, 1e9
BUSY = 0.8  # CPU time per wall-clock time below which other processes had a large share of the processors


class Row(NamedTuple):
    """A record and what is computed of it."""

    record: Record
    speed: Interval  # median of target tokens per second
    ratio: Interval  # median of the ratio to the variant `default`, measured in the same rounds; nan without one
    cores: float  # CPU time per wall-clock time

    def tree(self) -> dict[str, Any]:
        """The row as plain values, without the machine."""
        speed, ratio = ({"median": i.mean, "low": i.low, "high": i.high} for i in (self.speed, self.ratio))
        tree: dict[str, Any] = msgspec.to_builtins(self.record)
        tree.pop("machine")
        return tree | {"tokens_per_second": speed, "ratio_to_default": ratio, "cores": self.cores}


def rows(records: Sequence[Record]) -> list[Row]:
    """Return a row for each record, in the same order."""
    defaults = {record.setting: record for record in records if record.variant == "default"}
    return [_row(record, defaults.get(record.setting)) for record in records]


def _row(record: Record, default: Record | None) -> Row:
    speeds = record.tokens_per_second
    other = default.tokens_per_second if default and default is not record else ()
    compared = [a / b for a, b in zip(speeds, other, strict=True)] if other else []
    cores = fmean(record.cpu_seconds) / fmean(record.seconds) if speeds else float("nan")
    return Row(record, median_interval(speeds), median_interval(compared), cores)


def listing(records: Sequence[Record], notes: Sequence[str]) -> Listing:
    """Return a table for each architecture and kind of work, the notes below them, and all values with the machine."""

    def values() -> dict[str, Any]:
        machine = msgspec.to_builtins(records[0].machine) if records else None
        return {"machine": machine, "records": [row.tree() for row in rows(records)], "notes": list(notes)}

    return Listing(list(_tables(records)), [*explanations(records), *notes], values)


def save(folder: Path, records: Sequence[Record], notes: Sequence[str], axis: str) -> None:
    """Write the records, `bench.md` and, if anything was measured, `bench.svg` to a folder."""
    write_records(folder, records)
    found = listing(records, notes)
    write_atomically(folder / "bench.md", render(found.parts, found.notes, "md").encode())
    if records:
        from tfstudy.report.plots.bench import plot

        plot(records, axis).save(folder / "bench.svg")


def explanations(records: Sequence[Record]) -> list[str]:
    """Return the notes below the tables: the machine, the columns, and whether the machine was busy."""
    if not records:
        return []
    machine, timed = records[0].machine, [row for row in rows(records) if row.record.seconds]
    torch = "".join(f"torch {number}, " for name, number in machine.versions.items() if name == "torch")
    threads = f"{plural(machine.threads, 'thread')} of {plural(machine.processors, 'processor')}"
    notes = [f"{machine.device}, {threads}, {torch}{machine.started[:10]}"]
    if timed:
        first = timed[0].record
        time, rounds = ("CPU" if first.times is first.cpu_seconds else "wall-clock"), len(first.seconds)
        half = "±: half the width of its 95 % interval (order statistics)"
        parts = [
            f"tokens/s: target tokens per second of {time} time, median of {plural(rounds, 'round')}",
            half if any(_percent(row.speed) for row in timed) else f"its interval (±) needs {fewest_values()} rounds",
            "ratio: to the variant default, median over the rounds" if any(row.ratio.n for row in timed) else "",
            "cores: CPU time per wall-clock time",
        ]
        notes.append("; ".join(filter(None, parts)))
        if machine.accelerator == "cpu" and time != "CPU" and median(row.cores for row in timed) < BUSY:
            notes.append("the machine was busy with other work; --threads 1 measures CPU time instead")
    notes += ["MiB: peak memory of tensors, with parameters and optimiser"] * any(one.memory for one in records)
    return notes + ["GFLOP: of training or generating a batch"] * any(bool(one.flops) for one in records)


def _tables(records: Sequence[Record]) -> Iterable[Cells]:
    varied = [name for name in SIZES if len({getattr(record, name) for record in records}) > 1]
    fixed = [name for name in SIZES if name not in varied]
    for (work, arch), group in groupby(rows(records), key=lambda row: (row.record.work, row.record.arch)):
        members = list(group)
        first = members[0].record
        sizes = [f"{name} {getattr(first, name)}" for name in fixed]
        counts = sorted({row.record.parameters for row in members})
        parameters = " to ".join(dict.fromkeys(short_number(count) for count in (counts[0], counts[-1])))
        title = ", ".join([f"{work}: {arch}", f"{parameters} parameters", *sizes])
        columns = {name: [str(getattr(row.record, name)) for row in members] for name in varied} | _columns(members)
        yield Cells({head: texts for head, texts in columns.items() if any(texts)}, title=title, left=("variant",))


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
