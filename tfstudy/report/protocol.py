"""How each row of a table was measured: the protocol, read from the records of its runs."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from tfstudy.analysis.conditions import Condition
from tfstudy.report.tables import several
from tfstudy.runs.reader import environments
from tfstudy.runs.schema import Environment, Result


class Entry(NamedTuple):
    """A row's protocol: what it says, and the runs behind it."""

    row: Condition
    facts: dict[str, str]


class Ledger(NamedTuple):
    """The protocol of all rows."""

    shared: dict[str, str]  # what is the same in all of several rows
    entries: list[Entry]  # the rest, row by row


VERSIONS = ("python", "torch", "lightning")  # of the packages that decide numbers most


def ledger(rows: Sequence[Condition]) -> Ledger:
    """The protocol of these rows; what all have in common is told once."""
    made = {run.path: environments(run.path) for row in rows for run in row.runs}
    found = [_facts(row, [one for run in row.runs for one in made[run.path]]) for row in rows]
    same = {name: text for name, text in found[0].items() if all(facts[name] == text for facts in found)}
    shared = same if len(rows) > 1 else {}
    left = ({name: text for name, text in facts.items() if name not in shared} for facts in found)
    return Ledger(shared, [Entry(row, facts) for row, facts in zip(rows, left, strict=True)])


def _facts(row: Condition, made: Iterable[Environment]) -> dict[str, str]:
    results = [run.result for run in row.runs]
    made = list(made)
    return {
        "checkpoint": told(f"{r.checkpoint}, step {r.step:,}" if r.step else r.checkpoint for r in results),
        "decoding": told(_decoding(r) for r in results),
        "test examples": told(f"{part.n:,}" for part in row.measured().values()),
        "test reads": told(run.test_reads().get(row.test, "not noted") for run in row.runs),
        "overlap with train": told(r.overlap.get(row.test, "not noted") for r in results),
        "train examples": told(f"{r.train_examples:,}" for r in results if r.train_examples),
        "parameters": told(f"{r.parameters:,}" for r in results),
        "seconds of training": _seconds([r.train_seconds for r in results]),
        "of evaluation": _seconds([r.evaluate_seconds for r in results]),
        "weights of": told(f"run {r.trained_in[:8]}" if r.trained_in else "its own" for r in results),
        "device": told(r.device for r in results),
        "versions": told(", ".join(f"{n} {one.versions[n]}" for n in VERSIONS if n in one.versions) for one in made),
        "data hash": told(one.data[:12] for one in made),
        "commit": told((one.commit or "")[:10] for one in made),
    }


def told(values: Iterable[object]) -> str:
    """The different values; `unknown` if there is none."""
    return several(value for value in values if value not in ("", None)) or "unknown"


def _decoding(result: Result) -> str:
    decode = result.decode
    if decode.method != "beam":
        return decode.method
    return f"beam of {decode.beam_size}, length penalty {decode.length_penalty:g}"


def _seconds(values: Sequence[float]) -> str:
    """The median, of several with the least and the most."""
    if not values:
        return "unknown"
    ends = f" ({min(values):,.0f} to {max(values):,.0f})" if len(values) > 1 else ""
    return f"{median(values):,.0f}{ends}"
