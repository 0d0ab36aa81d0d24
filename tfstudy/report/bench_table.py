"""What `tfstudy bench` measured: a table for each architecture and kind of work."""

import math
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


def rows(records: Sequence[Record]) -> list[Row]:
    """Return a row for each record, in the same order."""
    defaults = {record.setting: record.tokens_per_second for record in records if record.variant == "default"}
    found = []
    for one in records:
        speeds, other = one.tokens_per_second, defaults.get(one.setting, []) if one.variant != "default" else []
        compared = [a / b for a, b in zip(speeds, other, strict=bool(other))]
        cores = fmean(one.cpu_seconds) / fmean(one.seconds) if speeds else math.nan
        found.append(Row(one, median_interval(speeds), median_interval(compared), cores))
    return found


def listing(records: Sequence[Record], notes: Sequence[str]) -> Listing:
    """Return a table for each architecture and kind of work, the notes below them, and all values with the machine."""
    found = rows(records)

    def values() -> dict[str, Any]:
        trees: list[dict[str, Any]] = msgspec.to_builtins(records)
        machine = [tree.pop("machine") for tree in trees]
        for tree, row in zip(trees, found, strict=True):
            for key, interval in (("tokens_per_second", row.speed), ("ratio_to_default", row.ratio)):
                tree[key] = dict(zip(("median", "low", "high"), interval[:3], strict=True))
            tree["cores"] = row.cores
        return {"machine": machine[0] if machine else None, "records": trees, "notes": list(notes)}

    return Listing(list(_tables(found)), [*_explanations(found), *notes], values)


def save(folder: Path, records: Sequence[Record], notes: Sequence[str], axis: str) -> None:
    """Write the records, `bench.md` and, if anything was measured, `bench.svg` to a folder."""
    write_records(folder, records)
    found = listing(records, notes)
    write_atomically(folder / "bench.md", render(found.parts, found.notes, "md").encode())
    if records:
        from tfstudy.report.plots.bench import plot

        plot(records, axis).save(folder / "bench.svg")


def _tables(found: Sequence[Row]) -> Iterable[Cells]:
    varied = [name for name in SIZES if len({getattr(row.record, name) for row in found}) > 1]
    for (work, arch), group in groupby(found, key=lambda row: (row.record.work, row.record.arch)):
        members = list(group)
        records = [row.record for row in members]
        sizes = [f"{name} {getattr(records[0], name)}" for name in SIZES if name not in varied]
        counts = sorted({record.parameters for record in records})
        parameters = " to ".join(dict.fromkeys(short_number(count) for count in (counts[0], counts[-1])))
        columns = {name: [str(getattr(record, name)) for record in records] for name in varied} | {
            "variant": [record.variant for record in records],
            "tokens/s": [significant(row.speed.mean) for row in members],
            "±": [_percent(row.speed) for row in members],
            "ratio": [significant(row.ratio.mean) for row in members],
            "cores": [significant(row.cores) for row in members],
            "MiB": [significant((record.memory or math.nan) / MIB) for record in records],
            "GFLOP": [significant(record.flops.total / GIGA) if record.flops else "" for record in records],
        }
        title = ", ".join([f"{work}: {arch}", f"{parameters} parameters", *sizes])
        yield Cells({head: texts for head, texts in columns.items() if any(texts)}, title=title, left=("variant",))


def _percent(speed: Interval) -> str:
    return "" if math.isnan(speed.low) else f"{50 * (speed.high - speed.low) / speed.mean:.0f} %"


def _explanations(found: Sequence[Row]) -> list[str]:
    """Return the notes below the tables: the machine, the columns, and whether the machine was busy."""
    if not found:
        return []
    machine, timed = found[0].record.machine, [row for row in found if row.record.seconds]
    torch = f"torch {machine.versions['torch']}, " if "torch" in machine.versions else ""
    threads = f"{plural(machine.threads, 'thread')} of {plural(machine.processors, 'processor')}"
    notes = [f"{machine.device}, {threads}, {torch}{machine.started[:10]}"]
    if timed:
        first = timed[0].record
        time, rounds = ("CPU" if first.times is first.cpu_seconds else "wall-clock"), len(first.seconds)
        half = "±: half the width of its 95 % interval (order statistics)"
        parts = [
            f"tokens/s: target tokens per second of {time} time, median of {plural(rounds, 'round')}",
            half if any(_percent(row.speed) for row in timed) else f"its interval (±) needs {fewest_values()} rounds",
            "ratio: to the variant default, median over the rounds" * any(row.ratio.n for row in timed),
            "cores: CPU time per wall-clock time",
        ]
        notes.append("; ".join(filter(None, parts)))
        if machine.accelerator == "cpu" and time != "CPU" and median(row.cores for row in timed) < BUSY:
            notes.append("the machine was busy with other work; --threads 1 measures CPU time instead")
    notes += ["MiB: peak memory of tensors, with parameters and optimiser"] * any(row.record.memory for row in found)
    return notes + ["GFLOP: of training or generating a batch"] * any(row.record.flops is not None for row in found)
