"""A study as a table: what its finished runs measured, beside what papers report."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from tasks.base import UserError
from tfstudy.config import read_yaml
from tfstudy.record import Record
from tfstudy.report.summary import published, reached
from tfstudy.runs import find_runs, read_result

ARCHITECTURES = {  # names in papers of the kinds of network that ours are
    "transformer": ("Transformer", "Rel. Universal Transformer"),
    "lstm": ("LSTM", "LSTM+attention", "GRU", "GRU+attention"),
    "cnn": ("CNN",),
}


class Row(NamedTuple):
    """Runs that differ in their seed alone, on one of their test splits."""

    task: str
    split: str
    test: str
    arch: str
    preset: str
    settings: str  # what tells it from other rows of the same name, such as "model.dropout=0.5"
    results: Sequence[dict[str, Any]]
    diverged: int

    @property
    def name(self) -> str:
        """The preset, and the settings if the preset alone does not say which row this is."""
        return " ".join(filter(None, [self.preset, self.settings]))

    @property
    def place(self) -> str:
        """The experiment and, unless it is called `test`, the test split."""
        return self.split if self.test == "test" else f"{self.split} {self.test.removeprefix('test_')}"

    def parts(self) -> list[dict[str, Any]]:
        """What every run measured on this split."""
        return [r["splits"][self.test] for r in self.results if r["splits"].get(self.test, {"n": 0})["n"]]

    def values(self, metric: str, kind: str = "metrics") -> list[float]:
        """The metric of every run that measured it, in per cent; `kind` may be `mean_over_lengths`."""
        return [100 * part[kind][metric] for part in self.parts() if metric in part.get(kind, {})]


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
        if result.get("tuning"):
            left_out.append(f"{path} is a trial of tuning")
            continue
        key = (result["task"], result["split"], result["arch"], result["preset"] or "default", result["experiment"])
        others = groups.setdefault(key, [])
        if key not in configs:
            configs[key] = flat(read_yaml(path / "config.yaml"))
        if any(other["seed"] == result["seed"] for other in others):
            raise UserError(f"{path} is there twice: another folder of the study has the same experiment and seed")
        others.append(result | {"test_reads": Record(path, result["run"]).test_reads()})
    if not groups:
        others_too = f"; left out: {left_out[0]}{', ...' * (len(left_out) > 1)}" if left_out else ""
        raise UserError(f"no finished run under {study}{others_too}")
    found = []
    for group, results in groups.items():
        alike = [configs[other] for other in groups if other[:-1] == group[:-1]]
        differ = [name for name, value in configs[group].items() if any(c.get(name) != value for c in alike)]
        settings = " ".join(f"{name}={configs[group][name]}" for name in differ if name not in ("seed", "data.root"))
        finished = sorted((r for r in results if r["status"] == "finished"), key=lambda r: r["seed"])
        task, split, arch, preset, _ = group
        tests = dict.fromkeys(name for r in finished for name, part in r["splits"].items() if part["role"] == "test")
        for test in tests or ["test"]:
            found.append(Row(task, split, test, arch, preset, settings, finished, len(results) - len(finished)))
    return sorted(found, key=order), left_out


def order(row: Row) -> tuple[Any, ...]:
    """Rows by experiment, then test splits by the numbers in their names, then architecture."""
    numbers = tuple(int(part) for part in row.test.split("_") if part.isdigit())
    return row.task, row.split, row.test != "test", numbers, row.test, row.arch, row.preset, row.settings


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Sections as one level of keys such as `model.dim`."""
    out: dict[str, Any] = {}
    for key, value in tree.items():
        out |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return out


OVER = "token accuracy, mean over lengths"


def markdown(study: Path) -> str:
    """The study's table in Markdown; columns that nothing stands in are left out."""
    table, left_out = rows(study)
    several_tasks = len({row.task for row in table}) > 1
    columns = [cells(row) | ({"task": row.task} if several_tasks else {}) for row in table]
    names = [name for name in ("task", *cells(table[0])) if any(column.get(name) for column in columns)]
    heads = [name.removesuffix(" (oracle)").removesuffix(" (over lengths)").removesuffix(" (BLEU)") for name in names]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(names) + "|"]
    lines += [f"| {' | '.join(column.get(name, '') for name in names)} |" for column in columns]
    return "\n".join([*lines, "", *footer(table), *(f"- left out: {text}" for text in left_out)]) + "\n"


def cells(row: Row) -> dict[str, str]:
    """Column to text, in the table's order."""
    exact = row.values("exact_match")
    reach = [r["lengths"] for r in row.results if r.get("lengths")] if row.test == "test" else []
    return {
        "split": row.place,
        "architecture": row.arch,
        "preset": row.name,
        "seeds": f"{len(exact)}" + (f", {row.diverged} diverged" if row.diverged else ""),
        "BLEU": spread(row.values("bleu")),
        "published (BLEU)": quoted(row, "BLEU"),
        "chrF": spread(row.values("chrf")),
        "exact match": spread(exact),
        "each seed": ", ".join(f"{value:.1f}" for value in exact) if len(exact) > 1 else "",
        "published": quoted(row, "exact match"),
        "oracle length": spread(row.values("oracle_length_exact_match")),
        "published (oracle)": quoted(row, "exact match, oracle length"),
        OVER: spread(row.values("token_accuracy", "mean_over_lengths")),
        "published (over lengths)": quoted(row, OVER),
        "L90": ", ".join(reached(lengths, "L90") for lengths in reach),
        "L50": ", ".join(reached(lengths, "L50") for lengths in reach),
    }


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation, or the one value, or nothing."""
    return f"{mean(values):.1f} ± {stdev(values):.1f}" if len(values) > 1 else "".join(f"{v:.1f}" for v in values)


def quoted(row: Row, metric: str) -> str:
    """Published figures of the same kind of network on this split, in this metric."""
    texts = []
    for figure in published(row.task, row.split, metric, row.test):
        if figure["arch"] in ARCHITECTURES.get(row.arch, (row.arch,)):
            plain = figure["spread"].replace(".", "", 1).isdigit()
            spread = f" ± {figure['spread']}" if plain else f" ({figure['setting']})" * bool(figure["spread"])
            texts.append(f"{figure['value']}{spread} {figure['arch']} ({figure['paper']})")
    return "; ".join(texts)


def footer(table: Iterable[Row]) -> list[str]:
    """What a reader must know of how the numbers came about."""
    results = list({result["run"]: result for row in table for result in row.results}.values())
    reads = {times for r in results for times in r["test_reads"].values()}
    overlaps = sum(n for r in results for n in r["overlap"].values())
    sizes = {f"{r['arch']} ({r['preset']}) {r['parameters']:,}" for r in results}
    hours = sum(r["train_seconds"] * (not r.get("trained_in")) + r["evaluate_seconds"] for r in results) / 3600
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
