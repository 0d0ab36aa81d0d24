"""Conditions: runs with the same configuration except the seed, evaluated on one test set."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tasks.errors import one_of
from tfstudy.analysis.collection import RunRecord, settings
from tfstudy.runs.schema import Part, Slice

ORDER = ("batch_size", "batch_tokens", "batching")  # what the order of training follows from, beside data and seed
UNTOLD = ("seed", "data.root")  # of settings: what does not tell rows apart
LATER = ("data.root", "model.dropout")  # and what decides neither the first weights nor the order


class Condition(NamedTuple):
    """A row of a table."""

    task: str
    split: str
    test: str
    arch: str
    preset: str
    settings: str  # what tells it from other rows of the same name, such as "model.dropout=0.5"
    runs: Sequence[RunRecord]  # finished, by seed
    diverged: Sequence[RunRecord]
    config: dict[str, Any]  # of one of the runs, as one level of keys
    experiment: str  # the hash of what its runs have in common
    tag: str = ""  # of a row on some examples only: a tag, such as length, and
    value: str = ""  # the value that they have

    @property
    def name(self) -> str:
        """The preset, and the settings if the preset alone does not say which row this is."""
        return " ".join(filter(None, [self.preset, self.settings]))

    @property
    def place(self) -> str:
        """The experiment and, unless it is called `test`, the test split."""
        return self.split if self.test == "test" else f"{self.split} {self.test.removeprefix('test_')}"

    @property
    def where(self) -> tuple[str, ...]:
        """What rows have in common that are compared with each other: the same examples."""
        return self.task, self.split, self.test, self.tag, self.value

    @property
    def label(self) -> str:
        """The row among those of the same examples: architecture, and preset if it is not the default."""
        return self.arch if self.name == "default" else f"{self.arch} {self.name}"

    def measured(self) -> dict[int, Slice]:
        """What each seed's run measured on this row's examples."""
        found: dict[int, Slice] = {}
        for run in self.runs:
            part = run.result.splits.get(self.test)
            one: Slice | None = part.by.get(self.tag, {}).get(self.value) if part and self.tag else part
            if one and one.n:
                found[run.result.seed] = one
        return found

    def by_seed(self, metric: str, kind: str = "metrics") -> dict[int, float]:
        """Seed to the metric in per cent, of runs that measured it; `kind` may be `mean_over_lengths`."""
        found = ((seed, getattr(part, kind, {})) for seed, part in self.measured().items())
        return {seed: 100 * metrics[metric] for seed, metrics in found if metric in metrics}

    def values(self, metric: str, kind: str = "metrics") -> list[float]:
        """The metric of every run that measured it, in per cent, by seed."""
        return list(self.by_seed(metric, kind).values())

    def metrics(self) -> list[str]:
        """All that any of its runs measured."""
        return list(dict.fromkeys(name for part in self.measured().values() for name in part.metrics))


def conditions(runs: Iterable[RunRecord], tag: str = "") -> list[Condition]:
    """The rows of these runs, in the order of a table; with `tag` one for each of its values."""
    groups: dict[tuple[str, ...], list[RunRecord]] = {}
    for run in runs:
        r = run.result
        groups.setdefault((r.task, r.split, r.arch, r.preset or "default", r.experiment), []).append(run)
    configs = settings(run for members in groups.values() for run in members)
    alike: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for *name, experiment in groups:
        alike.setdefault(tuple(name), {})[experiment] = configs[experiment]
    labels = {name: _apart(members) for name, members in alike.items()}
    beside: dict[tuple[str, str], list[RunRecord]] = {}  # what one that diverged would have been scored on
    for run in (run for members in groups.values() for run in members if run.finished):
        beside.setdefault((run.result.task, run.result.split), []).append(run)
    found = []
    for (task, split, arch, preset, experiment), members in groups.items():
        config = configs[experiment]
        told = labels[task, split, arch, preset][experiment]
        finished = sorted((run for run in members if run.finished), key=lambda run: run.result.seed)
        diverged = [run for run in members if not run.finished]
        for test, value in _places(finished or beside.get((task, split), []), tag):
            found.append(
                Condition(task, split, test, arch, preset, told, finished, diverged, config, experiment, tag, value)
            )
    return sorted(found, key=order)


def _apart(alike: dict[str, dict[str, Any]]) -> dict[str, str]:
    """For each experiment the settings that tell it from the others of its name; its hash if that is not enough."""
    keys = list(dict.fromkeys(key for config in alike.values() for key in config if key not in UNTOLD))
    differ = [key for key in keys if len({str(config.get(key)) for config in alike.values()}) > 1]
    told = {name: " ".join(f"{key}={config[key]}" for key in differ if key in config) for name, config in alike.items()}
    times = Counter(told.values())
    return {name: text if times[text] == 1 else f"{text} experiment={name[:8]}".strip() for name, text in told.items()}


def _places(finished: Sequence[RunRecord], tag: str) -> list[tuple[str, str]]:
    """The test splits that were scored, each with every value of the tag that its examples have."""
    parts: dict[str, list[Part]] = {}
    for run in finished:
        for name, part in run.result.splits.items():
            if part.role == "test":
                parts.setdefault(name, []).append(part)
    if not tag:
        return [(test, "") for test in parts or ["test"]]
    return [(test, v) for test in parts for v in dict.fromkeys(v for part in parts[test] for v in part.by.get(tag, {}))]


def order(row: Condition) -> tuple[Any, ...]:
    """Rows by experiment, then test splits by the numbers in their names, then architecture."""
    numbers = tuple(int(part) for part in row.test.split("_") if part.isdecimal())
    value = (0, int(row.value), "") if row.value.isdecimal() else (1, 0, row.value)
    return row.task, row.split, row.test != "test", numbers, row.test, value, row.arch, row.preset, row.settings


def stream(row: Condition) -> tuple[tuple[str, str], ...]:
    """What decides, with the seed, the weights at the start and the order of training: rows of the same stream can be
    paired by seed. Of different architectures the order alone is shared, which makes their figures no more alike.
    """
    keys = sorted(key for key in row.config if key.startswith(("data.", "model.")) and key not in LATER)
    told = ((key, str(row.config.get(key))) for key in [*keys, *(f"train.{name}" for name in ORDER)])
    return (("arch", row.arch), *told)


def main_metrics(found: Iterable[Condition], given: str = "") -> dict[str, str]:
    """What each task is judged by: the metric given, else BLEU where it is measured, else exact match.

    `UserError` for a metric that was never measured.
    """
    out: dict[str, str] = {}
    known: dict[str, None] = {}
    for row in found:
        measured = row.metrics()
        known |= dict.fromkeys(measured)
        if "bleu" in measured or row.task not in out:
            out[row.task] = "bleu" if "bleu" in measured else "exact_match"
    return dict.fromkeys(out, one_of("--metric", given, sorted(known))) if given else out
