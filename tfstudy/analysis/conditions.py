"""Conditions: runs with the same configuration except the seed, evaluated on one test set; their settings in words."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from tfstudy.analysis.frame import RunRecord
from tfstudy.config import presets
from tfstudy.config.trees import flatten, merge, short_key
from tfstudy.errors import UserError, one_of
from tfstudy.experiment.code_versions import last_environment
from tfstudy.runs.schema import Slice, SplitScores

NOT_SETTINGS = ("seed", "data.root")  # of a config: what does not distinguish conditions
AMOUNT = ("data.train_examples", "data.train_pairs")  # of a config: the amount of training data
# of a config: what decides the order of training, with the data
BATCH_ORDER = ("train.batch_size", "train.batch_tokens", "train.batching", "train.resampled_examples")
NOT_PAIRING = ("data.root", "model.dropout")  # decide neither the initial weights nor the order of training
IMPLIED = {*NOT_SETTINGS, "data.split", "data.hub"}  # settings that name neither a condition nor its preset
LANGUAGES = {"data.source_language", "data.target_language"}  # known by the name of a corpus
DEFAULT = "default"  # the preset of a task and architecture; the value of a setting that a run does not record
OUTDATED = "outdated"  # stands behind the settings of conditions that only this distinguishes
UNRECORDED = "settings.unrecorded"
SETTING = re.compile(r"(?:^|(?<= ))([\w.]+)(?==)")  # the key in "model.dim=64"
MAX_LISTED = 4  # settings that differ from the preset


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
    def every_run(self) -> list[RunRecord]:
        """Its runs, those that diverged last."""
        return [*self.runs, *self.diverged]

    @property
    def study(self) -> str:
        """The folder of its study; empty without runs."""
        paths = [run.path for run in self.every_run]
        # the folder of results may be one within the study
        return str((paths[0] if len(paths[0].parents) > 2 else paths[0].absolute()).parents[2]) if paths else ""

    @property
    def preset_label(self) -> str:
        """The preset, followed by the settings that distinguish this condition: `default norm=post`."""
        settings = SETTING.sub(lambda found: short_key(found[0]), self.settings)
        return f"{self.preset} {settings}".rstrip()

    @property
    def label(self) -> str:
        """The architecture, the preset unless it is the default, and the settings: unique on the same examples."""
        words = self.preset_label.split(" ")
        return " ".join([self.arch, *(words[1:] if self.preset == DEFAULT else words)])

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
        return _changed_settings(self.config, next(iter(self.every_run), None))

    def example_count(self) -> int:
        """The number of examples; 0 if nothing was measured."""
        return max((result.n for result in self.results_by_seed().values()), default=0)


def conditions(runs: Iterable[RunRecord], tag: str = "") -> list[Condition]:
    """Return the conditions of these runs, in the order of a table; with `tag`, one for each of its values."""
    runs = list(runs)
    configs = {run.result.experiment: run.config for run in reversed(runs) if run.config}
    by_name: dict[tuple[str, ...], dict[str, list[RunRecord]]] = {}  # then by experiment
    evaluated: dict[tuple[str, ...], list[RunRecord]] = {}
    digests: dict[tuple[str, ...], set[str]] = {}  # of the examples of test sets with the same names
    for run in runs:
        r = run.result
        names = (r.task, r.split, r.corpus, r.arch, r.preset or DEFAULT)
        by_name.setdefault(names, {}).setdefault(r.experiment, []).append(run)
        if run.finished:
            evaluated.setdefault(names[:3], []).append(run)
        for test_set, scores in r.splits.items():
            digests.setdefault((*names[:3], test_set), set()).add(scores.examples)
    out = []
    for (task, split, corpus, arch, preset), experiments in by_name.items():
        settings = _distinguishing_settings({one: configs[one] for one in experiments}, experiments)
        for experiment, members in experiments.items():
            finished = sorted((run for run in members if run.finished), key=lambda run: run.result.seed)
            diverged = [run for run in members if not run.finished]
            common = (arch, preset, settings[experiment], finished, diverged, configs[experiment], experiment, tag)
            # a condition whose runs all diverged has the test sets that other runs of its split scheme have
            for test_set, value in _test_sets(finished or evaluated.get((task, split, corpus), []), tag):
                # records of older code have no digest
                several = len(digests.get((task, split, corpus, test_set), set()) - {""}) > 1
                own = (run.result.splits[test_set].examples for run in finished if test_set in run.result.splits)
                examples = next(filter(None, own), "") if several else ""
                out.append(Condition(task, split, test_set, *common, value, corpus, examples))
    return sorted(out, key=sort_key)


def _test_sets(finished: Sequence[RunRecord], tag: str) -> list[tuple[str, str]]:
    """Return the test sets that were evaluated, each with every value of the tag that its examples have."""
    values: dict[str, dict[str, None]] = {}
    for name, scores in (item for run in finished for item in run.result.splits.items()):
        if scores.role == "test":
            values.setdefault(name, {}).update(dict.fromkeys(scores.slices.get(tag, {}) if tag else [""]))
    return [(name, value) for name, own in values.items() for value in own] or ([] if tag else [("test", "")])


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


# Settings


def _distinguishing_settings(
    configs: dict[str, dict[str, Any]], experiments: dict[str, list[RunRecord]]
) -> dict[str, str]:
    """Return, for each experiment, the settings that distinguish it, or else that it is outdated, its data or hash.

    What is off by default (0 or empty) is named only where it is on.
    """
    if len(configs) == 1:
        return dict.fromkeys(configs, "")
    keys = list(dict.fromkeys(key for config in configs.values() for key in config if key not in NOT_SETTINGS))
    values = {hash_: _changed_settings(config, experiments[hash_][0]) for hash_, config in configs.items()}
    differ = [key for key in keys if len({one.get(key, DEFAULT) for one in values.values()}) > 1]
    texts = {
        hash_: " ".join(f"{k}={config[k]}" for k in differ if k in values[hash_] or config.get(k))
        for hash_, config in configs.items()
    }
    ways: tuple[Callable[[RunRecord], str], ...] = (
        lambda run: OUTDATED if run.outdated() else "",
        lambda run: f"data={entry.data[:8]}" if (entry := last_environment(run.path)) else "",
        lambda run: f"experiment={run.result.experiment[:8]}",
    )
    for describe in ways:
        counts = Counter(texts.values())
        same = {hash_: describe(experiments[hash_][0]) for hash_, text in texts.items() if counts[text] > 1}
        if len(set(same.values())) > 1:
            texts |= {hash_: f"{texts[hash_]} {text}".strip() for hash_, text in same.items()}
    return texts


def _changed_settings(config: dict[str, Any], run: RunRecord | None) -> dict[str, str]:
    """Return the settings that differ from their default, as texts: a config that is older than a key lacks it."""
    entry = last_environment(run.path) if run else None
    recorded = flatten(entry.settings) if entry and entry.settings else config
    return {key: str(value) for key, value in config.items() if key in recorded}


def closest(conditions: Sequence[Condition], named: Collection[str] = ()) -> Condition:
    """Return the condition closest to its preset, then current, then with most seeds; see `preset_distance`."""
    return conditions[0] if len(conditions) == 1 else min(conditions, key=lambda one: preset_distance(one, named))


def preset_distance(condition: Condition, named: Collection[str] = ()) -> tuple[Any, ...]:
    """Return a key that is smallest for the condition closest to its preset, then current, then with most seeds.

    `named` are settings that may differ from the preset.
    """
    differing = differing_settings(condition).difference(named)
    outdated = any(run.outdated() for run in condition.every_run[:1])  # the runs of a condition share their versions
    return len(differing), outdated, -len(condition.every_run), condition.label


def differing_settings(condition: Condition) -> set[str]:
    """Return the settings of a condition that differ from those of its preset, except those of `IMPLIED`.

    A run records its settings that are not defaults. Of one that does not, only the settings that the preset names can
    be compared; `UNRECORDED` stands for the others.
    """
    c = condition
    try:
        tree = presets.preset(c.task, c.arch, c.preset)
    except UserError:
        return set()
    expected = flatten(merge(tree, {"data": {"split": c.split}}))
    entry = next((last_environment(run.path) for run in c.every_run), None)
    recorded = flatten(entry.settings) if entry and entry.settings else {UNRECORDED: None}
    others = {key for key in recorded if "." in key and key not in expected}
    differing = {key for key, value in expected.items() if "." in key and c.config.get(key) != value}
    return (others | differing) - IMPLIED


def settings_text(condition: Condition) -> str:
    """Return the settings: `preset default, 667,786 parameters, sinusoidal positions, 3,000 steps`."""
    runs, config = condition.every_run, condition.config
    parameters = runs[0].result.parameters if runs else 0
    positions = str(config.get("model.positions", ""))
    steps = trained_steps(condition)
    parts = [
        preset_text(condition),
        f"{parameters:,} parameters" if parameters else "",
        {"": "", "none": "no positions"}.get(positions, f"{positions} positions"),
        f"{steps:,} steps" if steps else "",
        "data from files" if condition.config.get("data.root") else "",
    ]
    return ", ".join(filter(None, parts))


def trained_steps(condition: Condition) -> int:
    """Return the steps of training, 0 if unknown: a result has the step of the weights that were evaluated."""
    return int(condition.config.get("train.steps", 0))


def preset_text(condition: Condition) -> str:
    """Return the preset with the settings that differ from it: `preset default with dropout=0.1`."""
    keys = _differing(condition)
    more = f" and {len(keys) - MAX_LISTED} more" if len(keys) > MAX_LISTED else ""
    return _with_settings(condition, keys[:MAX_LISTED]) + more


def preset_beside_label(condition: Condition) -> str:
    """Return the preset with all settings that differ from it, except those in the condition's label."""
    named = SETTING.findall(condition.settings)
    return _with_settings(condition, [key for key in _differing(condition) if key not in named])


def _differing(condition: Condition) -> list[str]:
    keys = differing_settings(condition)
    return sorted(keys - LANGUAGES if condition.corpus else keys)


def _with_settings(condition: Condition, keys: Sequence[str]) -> str:
    # a setting that the config lacks is newer than the run, which had its default
    texts = [
        "unrecorded settings" if key == UNRECORDED else f"{short_key(key)}={condition.config.get(key, 'default')}"
        for key in keys
    ]
    return f"preset {condition.preset}" + (f" with {', '.join(texts)}" if texts else "")
