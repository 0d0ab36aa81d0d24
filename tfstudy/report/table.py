"""A study as a table: what its finished runs measured, beside what papers report."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from tasks.base import UserError
from tfstudy.record import find_runs, read_result
from tfstudy.report.summary import published

ARCHITECTURES = {
    "transformer": ("Transformer", "Rel. Universal Transformer"),
    "lstm": ("LSTM", "LSTM+attention", "GRU", "GRU+attention", "SRN", "SRN+attention"),
    "cnn": ("CNN",),
}


class Row(NamedTuple):
    """The runs of one (task, split, architecture, preset), by seed."""

    task: str
    split: str
    arch: str
    preset: str
    results: Sequence[dict[str, Any]]

    def values(self, metric: str) -> list[float]:
        """The metric on test of every run, in per cent."""
        tests = [r["splits"][name] for r in self.results for name in r["splits"] if r["splits"][name]["role"] == "test"]
        return [100 * split["metrics"][metric] for split in tests]


def rows(study: Path) -> tuple[list[Row], list[str]]:
    """The rows of a study's finished runs, and a line on every run that is left out."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    left_out = []
    for path in find_runs(study):
        try:
            result = read_result(path)
        except UserError as error:
            left_out.append(str(error))
            continue
        if result["smoke"] or result["status"] != "finished":
            left_out.append(f"{path} is {'a smoke run' if result['smoke'] else result['status']}")
        else:
            key = (result["task"], result["split"], result["arch"], result["preset"] or "default")
            groups.setdefault(key, []).append(result)
    if not groups:
        raise UserError(f"no finished run under {study}")
    found = []
    for (task, split, arch, preset), results in sorted(groups.items()):
        found.append(Row(task, split, arch, preset, sorted(results, key=lambda r: r["seed"])))
    return found, left_out


def markdown(study: Path) -> str:
    """The study's table in Markdown. Per cent; several seeds as mean ± standard deviation over seeds."""
    table, left_out = rows(study)
    lines = [
        "| split | architecture | preset | seeds | exact match | each seed | oracle length | published |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in table:
        exact, oracle = row.values("exact_match"), row.values("oracle_length_exact_match")
        cells = [
            row.split, row.arch, row.preset, str(len(exact)), spread(exact),
            ", ".join(f"{value:.1f}" for value in exact), spread(oracle), quoted(row),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *footer(table), *(f"- left out: {text}" for text in left_out)]) + "\n"


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation, or the one value."""
    return f"{mean(values):.1f} ± {stdev(values):.1f}" if len(values) > 1 else f"{values[0]:.1f}"


def quoted(row: Row) -> str:
    """Published exact match of the same kind of architecture on this split."""
    figures = [
        f"{figure['value']}{' ± ' + figure['spread'] if figure['spread'] else ''} {figure['arch']} ({figure['paper']})"
        for figure in published(row.task, row.split)
        if figure["arch"] in ARCHITECTURES.get(row.arch, (row.arch,))
    ]
    return "; ".join(figures)


def footer(table: Iterable[Row]) -> list[str]:
    """What a reader must know of how the numbers came about."""
    results = [result for row in table for result in row.results]
    checkpoints = Counter(f"{r['checkpoint']} checkpoint" for r in results)
    reads = Counter(max(r["test_reads"].values(), default=0) for r in results)
    overlaps = sum(n for r in results for n in r["overlap"].values())
    hours = sum(r["train_seconds"] + r["evaluate_seconds"] for r in results) / 3600
    parameters = sorted({f"{r['arch']} ({r['preset']}) {r['parameters']:,}" for r in results})
    return [
        f"- {len(results)} runs; {', '.join(f'{name}: {n}' for name, n in checkpoints.items())}; greedy to EOS",
        f"- test split scored {', '.join(f'{times} time(s) in {n} runs' for times, n in sorted(reads.items()))}; "
        f"train sources that recur in held-out splits: {overlaps}",
        f"- parameters: {', '.join(parameters)}; {hours:.1f} hours of training and evaluation in all",
    ]
