"""A study as a table: what its finished runs measured, beside what papers report."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from tasks.base import UserError
from tfstudy.config import read_yaml
from tfstudy.record import Record, find_runs, read_result
from tfstudy.report.summary import published

ARCHITECTURES = {  # names in papers of the kinds of network that ours are
    "transformer": ("Transformer", "Rel. Universal Transformer"),
    "lstm": ("LSTM", "LSTM+attention", "GRU", "GRU+attention"),
    "cnn": ("CNN",),
}


class Row(NamedTuple):
    """Runs that differ in their seed alone."""

    task: str
    split: str
    arch: str
    preset: str
    settings: str  # what tells it from other rows of the same name, such as "model.dropout=0.5"
    results: Sequence[dict[str, Any]]
    diverged: int

    @property
    def name(self) -> str:
        """The preset, and the settings if the preset alone does not say which row this is."""
        return " ".join(filter(None, [self.preset, self.settings]))

    def values(self, metric: str) -> list[float]:
        """The metric on test of every run, in per cent."""
        tests = [s for r in self.results for s in r["splits"].values() if s["role"] == "test" and s["n"]]
        return [100 * split["metrics"][metric] for split in tests]


def rows(study: Path) -> tuple[list[Row], list[str]]:
    """The rows of a study, and a line on every run that is left out. `UserError` if a run is there twice."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    configs: dict[tuple[str, ...], dict[str, Any]] = {}
    left_out = []
    for path in find_runs(study):
        try:
            result = read_result(path)
        except UserError as error:
            left_out.append(str(error))
            continue
        if result["smoke"]:
            left_out.append(f"{path} is a smoke run")
            continue
        key = (result["task"], result["split"], result["arch"], result["preset"] or "default", result["experiment"])
        others = groups.setdefault(key, [])
        configs.setdefault(key, flat(read_yaml(path / "config.yaml")))
        if any(other["seed"] == result["seed"] for other in others):
            raise UserError(f"{path} is there twice: another folder of the study has the same experiment and seed")
        others.append(result | {"test_reads": Record(path, result["run"]).test_reads()})
    if not groups:
        raise UserError(f"no finished run under {study}")
    found = []
    for group, results in groups.items():
        alike = [configs[other] for other in groups if other[:-1] == group[:-1]]
        differ = [name for name, value in configs[group].items() if any(c.get(name) != value for c in alike)]
        settings = " ".join(f"{name}={configs[group][name]}" for name in differ if name not in ("seed", "data.root"))
        finished = sorted((r for r in results if r["status"] == "finished"), key=lambda r: r["seed"])
        task, split, arch, preset, _ = group
        found.append(Row(task, split, arch, preset, settings, finished, len(results) - len(finished)))
    return sorted(found, key=lambda row: row[:5]), left_out


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Sections as one level of keys such as `model.dim`."""
    out: dict[str, Any] = {}
    for key, value in tree.items():
        out |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return out


def markdown(study: Path) -> str:
    """The study's table in Markdown."""
    table, left_out = rows(study)
    lines = [
        "| split | architecture | preset | seeds | exact match | each seed | published | oracle length | published |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in table:
        exact, oracle = row.values("exact_match"), row.values("oracle_length_exact_match")
        seeds = f"{len(exact)}" + (f", {row.diverged} diverged" if row.diverged else "")
        cells = [
            row.split, row.arch, row.name, seeds, spread(exact), ", ".join(f"{value:.1f}" for value in exact),
            quoted(row, "exact match"), spread(oracle), quoted(row, "exact match, oracle length"),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *footer(table), *(f"- left out: {text}" for text in left_out)]) + "\n"


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation, or the one value, or nothing."""
    return f"{mean(values):.1f} ± {stdev(values):.1f}" if len(values) > 1 else "".join(f"{v:.1f}" for v in values)


def quoted(row: Row, metric: str) -> str:
    """Published figures of the same kind of network on this split, in this metric."""
    texts = []
    for figure in published(row.task, row.split, metric):
        if figure["arch"] in ARCHITECTURES.get(row.arch, (row.arch,)):
            plain = figure["spread"].replace(".", "", 1).isdigit()
            spread = f" ± {figure['spread']}" if plain else f" ({figure['setting']})" * bool(figure["spread"])
            texts.append(f"{figure['value']}{spread} {figure['arch']} ({figure['paper']})")
    return "; ".join(texts)


def footer(table: Iterable[Row]) -> list[str]:
    """What a reader must know of how the numbers came about."""
    results = [result for row in table for result in row.results]
    reads = {times for r in results for times in r["test_reads"].values()}
    overlaps = sum(n for r in results for n in r["overlap"].values())
    sizes = {f"{r['arch']} ({r['preset']}) {r['parameters']:,}" for r in results}
    hours = sum(r["train_seconds"] + r["evaluate_seconds"] for r in results) / 3600
    return [
        "- per cent on test; mean ± standard deviation over seeds; the spread of a published figure is its paper's",
        f"- {len(results)} runs on {several(r['device'] for r in results)}; "
        f"checkpoint: {several(r['checkpoint'] for r in results)}; "
        f"decoding: {several(r['decode']['method'] for r in results)}, free-running to EOS unless told otherwise",
        f"- each test split was scored {several(reads)} time(s); "
        f"examples of held-out splits whose source occurs in train: {overlaps}",
        f"- parameters: {several(sizes)}; {hours:.1f} hours of training and evaluation in all",
    ]


def several(values: Iterable[object]) -> str:
    """The different values, in order."""
    return ", ".join(sorted({str(value) for value in values}))
