"""What `tfstudy bench` measured: a table for each architecture and kind of work."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean, median

import msgspec

from tfstudy.analysis.claim_files import SIZES
from tfstudy.analysis.stats import fewest_values, median_interval
from tfstudy.performance.record import Record, write_records
from tfstudy.report.markup import plural, short_number, significant
from tfstudy.report.render import Cells, Listing, render
from tfstudy.runs.files import write_atomically

MIB, GIGA = 2**20, 1e9
BUSY = 0.8  # CPU time per wall-clock time below which other processes had a large share of the processors


def listing(records: Sequence[Record], notes: Sequence[str]) -> Listing:
    """Return a table for each architecture and kind of work, the notes below them, and the records as plain values."""
    explained = [*_explanations(records), *notes]
    return Listing(
        list(_tables(records)), explained, lambda: {"records": msgspec.to_builtins(records), "notes": [*notes]}
    )


def save(folder: Path, records: Sequence[Record], notes: Sequence[str], axis: str) -> None:
    """Write the records, `bench.md` and, if anything was measured, `bench.svg` to a folder."""
    write_records(folder, records)
    found = listing(records, notes)
    write_atomically(folder / "bench.md", render(found.parts, found.notes, "md").encode())
    if records:
        from tfstudy.report.plots.bench import plot

        plot(records, axis).save(folder / "bench.svg")


def _tables(records: Sequence[Record]) -> Iterable[Cells]:
    varied = [name for name in SIZES if len({getattr(record, name) for record in records}) > 1]
    defaults = {record.setting: record.tokens_per_second for record in records if record.variant == "default"}
    for (work, arch), group in groupby(records, key=lambda record: (record.work, record.arch)):
        members = list(group)
        ratios = []  # to the variant `default`, measured in the same rounds
        for one in members:
            default = defaults.get(one.setting, []) if one.variant != "default" else []
            ratios.append([a / b for a, b in zip(one.tokens_per_second, default, strict=bool(default))])
        columns = {name: [str(getattr(one, name)) for one in members] for name in varied} | {
            "variant": [one.variant for one in members],
            "tokens/s": [significant(median_interval(one.tokens_per_second).mean) for one in members],
            "±": [_half(one) for one in members],
            "ratio": [significant(median_interval(own).mean) for own in ratios],
            "cores": [significant(_cores(one)) for one in members],
            "MiB": [significant((one.memory or math.nan) / MIB) for one in members],
            "GFLOP": [significant(one.flops.total / GIGA) if one.flops else "" for one in members],
        }
        counts = sorted({one.parameters for one in members})
        parameters = " to ".join(dict.fromkeys(short_number(count) for count in (counts[0], counts[-1])))
        sizes = [f"{name} {getattr(members[0], name)}" for name in SIZES if name not in varied]
        title = ", ".join([f"{work}: {arch}", f"{parameters} parameters", *sizes])
        yield Cells({head: texts for head, texts in columns.items() if any(texts)}, title=title, left=("variant",))


def _half(record: Record) -> str:
    """Return half the width of the 95 % interval of a speed; empty if there are too few rounds."""
    speed = median_interval(record.tokens_per_second)
    return "" if math.isnan(speed.low) else f"{50 * (speed.high - speed.low) / speed.mean:.0f} %"


def _cores(record: Record) -> float:
    """Return the CPU time per wall-clock time; nan if nothing was timed."""
    return fmean(record.cpu_seconds) / fmean(record.seconds) if record.seconds else math.nan


def _explanations(records: Sequence[Record]) -> list[str]:
    """Return the notes below the tables: the machine, the columns, and whether the machine was busy."""
    if not records:
        return []
    machine, timed = records[0].machine, [record for record in records if record.seconds]
    torch = f"torch {machine.versions['torch']}, " if "torch" in machine.versions else ""
    threads = f"{plural(machine.threads, 'thread')} of {plural(machine.processors, 'processor')}"
    notes = [f"{machine.device}, {threads}, {torch}{machine.started[:10]}"]
    if timed:
        first = timed[0]
        time, rounds = ("CPU" if first.times is first.cpu_seconds else "wall-clock"), len(first.seconds)
        half = "±: half the width of its 95 % interval (order statistics)"
        parts = [
            f"tokens/s: target tokens per second of {time} time, median of {plural(rounds, 'round')}",
            half if any(map(_half, timed)) else f"its interval (±) needs {fewest_values()} rounds",
            "ratio: to the variant default, median over the rounds" * any(one.variant != "default" for one in timed),
            "cores: CPU time per wall-clock time",
        ]
        notes.append("; ".join(filter(None, parts)))
        if machine.accelerator == "cpu" and time != "CPU" and median(map(_cores, timed)) < BUSY:
            notes.append("the machine was busy with other work; --threads 1 measures CPU time instead")
    notes += ["MiB: peak memory of tensors, with parameters and optimiser"] * any(one.memory for one in records)
    return notes + ["GFLOP: of training or generating a batch"] * any(one.flops is not None for one in records)
