"""Conditions: runs with the same configuration except the seed, evaluated on one test set."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tfstudy.analysis.collection import RunRecord, experiment_settings
from tfstudy.analysis.condition_settings import (
    AMOUNT,
    DEFAULT,
    changed_settings,
    distinguishing_settings,
    short_settings,
)
from tfstudy.errors import one_of
from tfstudy.runs.schema import Slice, SplitScores

# of a config: what decides the order of training, with the data
BATCH_ORDER = ("train.batch_size", "train.batch_tokens", "train.batching", "train.resampled_examples")
NOT_PAIRING = ("data.root", "model.dropout")  # decide neither the initial weights nor the order of training


class Condition(NamedTuple):
    """All runs with the same configuration except the seed, evaluated on one test set."""

    task: str
    split: str  # the split scheme
    test_set: str
    arch: str
    preset: str
    settings: str  # settings that distinguish it from others with the same names, such as "model.dropout=0.5"
    runs: Sequence[RunRecord]  # finished, by seed
    diverged: Sequence[RunRecord]
    config: dict[str, Any]  # flat, of one of the runs
    experiment: str  # the hash that its runs share
    tag: str = ""  # if restricted to some of the examples: a tag, such as length, and
    tag_value: str = ""  # its value for these examples
    corpus: str = ""  # the name of the corpus that the examples are from; empty if the task generates them
    examples: str = ""  # the digest of the examples, if there are others with the same names; else empty

    @property
    def study(self) -> str:
        """The folder of its study; empty without runs."""
        paths = [run.path for run in (*self.runs, *self.diverged)]
        # the folder of results may be one within the study
        return str((paths[0] if len(paths[0].parents) > 2 else paths[0].absolute()).parents[2]) if paths else ""

    @property
    def preset_label(self) -> str:
        """The preset, followed by the settings that distinguish this condition: `default norm=post`."""
        return " ".join(filter(None, [self.preset, short_settings(self.settings)]))

    @property
    def label(self) -> str:
        """The architecture, the preset unless it is the default, and the settings: unique on the same examples."""
        preset = self.preset if self.preset != DEFAULT else ""
        return " ".join(filter(None, [self.arch, preset, short_settings(self.settings)]))

    @property
    def split_label(self) -> str:
        """The split scheme, the corpus if there is one, and the test set unless it is called `test`."""
        test_set = "" if self.test_set == "test" else self.test_set.removeprefix("test_")
        return " ".join(filter(None, [self.split, self.corpus, test_set]))

    @property
    def examples_key(self) -> tuple[str, ...]:
        """What identifies the examples that it was evaluated on."""
        return self.task, self.split, self.corpus, self.test_set, self.examples, self.tag, self.tag_value

    @property
    def comparison_key(self) -> tuple[str, ...]:
        """What identifies these examples and the amount of training data: conditions with the same key are compared."""
        return (*self.examples_key, *map(str, self.amount))

    @property
    def amount(self) -> tuple[int, ...]:
        """The settings that give the amount of training data; 0 where the task has no such setting."""
        return tuple(value if isinstance(value := self.config.get(key), int) else 0 for key in AMOUNT)

    def results_by_seed(self) -> dict[int, Slice]:
        """What each run measured on this condition's examples, by seed."""
        out: dict[int, Slice] = {}
        for run in self.runs:
            whole = run.result.splits.get(self.test_set)
            scores: Slice | None = whole.slices.get(self.tag, {}).get(self.tag_value) if whole and self.tag else whole
            if scores and scores.n:
                out[run.result.seed] = scores
        return out

    def by_seed(self, metric: str) -> dict[int, float]:
        """The metric in percent, by seed, of runs that measured it."""
        results = self.results_by_seed()
        return {seed: 100 * scores.metrics[metric] for seed, scores in results.items() if metric in scores.metrics}

    def values(self, metric: str) -> list[float]:
        """The metric in percent of every run that measured it, ordered by seed."""
        return list(self.by_seed(metric).values())

    def means_over_lengths(self, metric: str) -> dict[int, float]:
        """The metric's mean over lengths in percent, by seed; empty for a condition on some of the examples."""
        results = ((seed, one) for seed, one in self.results_by_seed().items() if isinstance(one, SplitScores))
        means = ((seed, one.mean_over_lengths) for seed, one in results)
        return {seed: 100 * metrics[metric] for seed, metrics in means if metric in metrics}

    def metrics(self) -> list[str]:
        """The names of all metrics that any of its runs measured."""
        return list(dict.fromkeys(name for result in self.results_by_seed().values() for name in result.metrics))

    def changed_settings(self) -> dict[str, str]:
        """The settings that differ from their default, as texts; all of them without runs."""
        return changed_settings(self.config, next(iter([*self.runs, *self.diverged]), None))

    def example_count(self) -> int:
        """The number of examples; 0 if nothing was measured."""
        return max((result.n for result in self.results_by_seed().values()), default=0)


def conditions(runs: Iterable[RunRecord], tag: str = "") -> list[Condition]:
    """Return the conditions of these runs, in the order of a table; with `tag`, one for each of its values."""
    groups: dict[tuple[str, ...], list[RunRecord]] = {}
    for run in runs:
        r = run.result
        groups.setdefault((r.task, r.split, r.corpus, r.arch, r.preset or "default", r.experiment), []).append(run)
    configs = experiment_settings(run for members in groups.values() for run in members)
    by_name: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for *name, experiment in groups:
        by_name.setdefault(tuple(name), {})[experiment] = configs[experiment]
    first_runs = {experiment: members[0] for (*_, experiment), members in groups.items()}
    settings = {name: distinguishing_settings(members, first_runs) for name, members in by_name.items()}
    # a condition whose runs all diverged has the test sets that other runs of its split scheme were evaluated on
    evaluated: dict[tuple[str, str, str], list[RunRecord]] = {}
    for run in (run for members in groups.values() for run in members if run.finished):
        evaluated.setdefault((run.result.task, run.result.split, run.result.corpus), []).append(run)
    digests = _ambiguous_digests(run for members in groups.values() for run in members)
    out = []
    for (task, split, corpus, arch, preset, experiment), members in groups.items():
        own = settings[task, split, corpus, arch, preset][experiment]
        finished = sorted((run for run in members if run.finished), key=lambda run: run.result.seed)
        diverged = [run for run in members if not run.finished]
        common = (arch, preset, own, finished, diverged, configs[experiment], experiment, tag)
        for test_set, value in _test_sets(finished or evaluated.get((task, split, corpus), []), tag):
            names = (task, split, corpus, test_set)
            examples = next((d for run in finished if (d := digest_of(run, test_set)) in digests.get(names, ())), "")
            out.append(Condition(task, split, test_set, *common, value, corpus, examples))
    return sorted(out, key=sort_key)


def digest_of(run: RunRecord, test_set: str) -> str:
    """Return the digest of the examples that a run was evaluated on; empty in records of older code."""
    scores = run.result.splits.get(test_set)
    return scores.examples if scores else ""


def _ambiguous_digests(runs: Iterable[RunRecord]) -> dict[tuple[str, ...], set[str]]:
    """Return the digests of test sets with the same names but different examples: other settings of the data."""
    found: dict[tuple[str, ...], set[str]] = {}
    for run in runs:
        r = run.result
        for test_set in r.splits:
            if digest := digest_of(run, test_set):
                found.setdefault((r.task, r.split, r.corpus, test_set), set()).add(digest)
    return {names: digests for names, digests in found.items() if len(digests) > 1}


def _test_sets(finished: Sequence[RunRecord], tag: str) -> list[tuple[str, str]]:
    """Return the test sets that were evaluated, each with every value of the tag that its examples have."""
    results: dict[str, list[SplitScores]] = {}
    for run in finished:
        for name, result in run.result.splits.items():
            if result.role == "test":
                results.setdefault(name, []).append(result)
    if not tag:
        return [(name, "") for name in results or ["test"]]
    return [
        (name, value)
        for name, members in results.items()
        for value in dict.fromkeys(value for result in members for value in result.slices.get(tag, {}))
    ]


def sort_key(condition: Condition) -> tuple[Any, ...]:
    """Order by split scheme, by the numbers in the names of test sets, by amount of training data, by architecture."""
    c = condition
    numbers = tuple(map(int, re.findall(r"\d+", c.test_set)))
    examples = (c.task, c.split, c.corpus, c.test_set != "test", numbers, c.test_set, c.examples)
    return *examples, tag_value_key(c.tag_value), c.amount, c.arch, c.preset, c.settings


def tag_value_key(value: str) -> tuple[int, int, str]:
    """Order numbers by their size, before words."""
    return (0, int(value), "") if value.isdecimal() else (1, 0, value)


def test_set_label(condition: Condition, conditions: Iterable[Condition]) -> str:
    """Return the split scheme and test set of a condition, with its task if these conditions have several tasks."""
    several_tasks = len({other.task for other in conditions}) > 1
    return f"{condition.task} {condition.split_label}" if several_tasks else condition.split_label


def pairing_key(condition: Condition) -> tuple[tuple[str, str], ...]:
    """Return the settings that decide, with the seed, the initial weights and the order of training.

    Conditions with the same key can be paired by seed. Different architectures share only the order, which does not
    make their results more similar.
    """
    config = condition.changed_settings()
    keys = sorted(key for key in config if key.startswith(("data.", "model.")) and key not in NOT_PAIRING)
    return (("arch", condition.arch), *((key, str(config.get(key))) for key in (*keys, *BATCH_ORDER)))


def main_metrics(conditions: Iterable[Condition], metric: str = "") -> dict[str, str]:
    """Return the metric by which each task is compared: the one given, else BLEU if measured, else exact match.

    `UserError` for a metric that was never measured.
    """
    out: dict[str, str] = {}
    all_metrics: dict[str, None] = {}
    for condition in conditions:
        measured = condition.metrics()
        all_metrics |= dict.fromkeys(measured)
        if "bleu" in measured or condition.task not in out:
            out[condition.task] = "bleu" if "bleu" in measured else "exact_match"
    return dict.fromkeys(out, one_of("metric", metric, sorted(all_metrics))) if metric else out
