"""Tuning: as many trials of as many steps for every architecture, judged on the validation split alone.

No trial reads a test split, and `result.json` says that it is one (`"tuning": true`), so that no table shows it.
"""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import tasks
from tasks.errors import UserError
from tfstudy import models
from tfstudy.config.presets import preset as preset_of
from tfstudy.config.trees import merge
from tfstudy.config.resolve import overrides, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree
from tfstudy.data.vocabulary import Vocab
from tfstudy.experiment import options, run
from tfstudy.grids import expand
from tfstudy.runs.reader import read_result
from tfstudy.tuning.samplers import Sampler, Values, sampler
from tfstudy.tuning.space import WIDTH, Space, matched, own, scaled, space_of

T = TypeVar("T")


class Words(NamedTuple):
    """A search as a person says it."""

    task: str
    archs: Sequence[str]
    split: str | None = None
    preset: str = "default"
    assignments: Sequence[str] = ()  # such as `model.dim=64`, or `cnn.model.kernel=5` for one architecture
    searches: Sequence[str] = ()  # see `tfstudy.space`
    trials: int = 20  # of each architecture
    budget: int | None = None  # steps of each trial; else train.steps, which must agree
    parameters: int = 0  # of every trial's model; 0 searches widths too
    method: str = "random"
    seed: int = 0  # of the search, and of every run


class Search(NamedTuple):
    """A search that can be made."""

    words: Words
    bases: Mapping[str, Tree]  # what the trials of an architecture share
    spaces: Mapping[str, Space]
    vocabularies: tuple[int, int]

    @property
    def split(self) -> str:
        """`data.split` of every trial."""
        return str(resolve(self.bases[self.words.archs[0]]).data.split)


class Trial(NamedTuple):
    """One run of a search."""

    arch: str
    number: int  # 1, 2, ... within its architecture
    values: Values
    tree: Tree  # what it says of the config; the rest are defaults
    config: RunConfig


class Score(NamedTuple):
    """A trial that has been made, and what it is judged by."""

    trial: Trial
    path: Path
    status: str
    exact_match: float  # on the validation split; 0 if it diverged
    loss: float  # the last on the validation split, in nats a label; infinite if there was none
    parameters: int
    seconds: float

    @property
    def order(self) -> tuple[Any, ...]:
        """Smaller is better: exact match, then loss, then the name; what diverged comes last."""
        return self.status != "finished", -self.exact_match, self.loss, self.path.name

    @property
    def value(self) -> float:
        """The same as one number, more being better; the loss only parts those of the same exact match."""
        return self.exact_match + 1e-6 / (1 + self.loss) if self.status == "finished" else -1.0


class UnequalError(Exception):
    """Some trials could not be made, so the architectures did not have the same budget."""


def search_of(words: Words) -> Search:
    """`UserError` with every mistake in the words."""
    if words.trials < 1:
        raise UserError(f"--trials must be at least 1, but is {words.trials}")
    if not words.archs:
        raise UserError("--arch must name at least one architecture")
    for arch in words.archs:
        models.find(arch)
    bases = _each(words.archs, lambda arch: _base(words, arch))
    configs = _each(words.archs, lambda arch: resolve(bases[arch]))
    for key in ("train.steps", "data", "eval"):
        _equal(key, configs)
    match = words.parameters > 0
    spaces = _each(words.archs, lambda arch: space_of(own(words.searches, arch, words.archs), bases[arch], match))
    sampler(words.method, {}, words.seed)
    task = tasks.find(words.task)(configs[words.archs[0]].data)
    run.scored_splits(task, options.RunOptions(tuning=True))  # refuses one without a validation split
    source, target = task.vocabulary()
    return Search(words, bases, spaces, (len(Vocab(source)), len(Vocab(target))))


def _equal(key: str, configs: Mapping[str, RunConfig]) -> None:
    """`UserError` if the architectures do not share this part of the config."""
    values = {arch: attrgetter(key)(config) for arch, config in configs.items()}
    if any(value != next(iter(values.values())) for value in values.values()):
        told = "; ".join(f"{value} ({arch})" for arch, value in values.items())
        raise UserError(f"{key} must be the same for every architecture, but is {told}: say it by --budget or --set")


def _base(words: Words, arch: str) -> Tree:
    named: Tree = {"task": words.task, "arch": arch, "seed": words.seed}
    if words.split is not None:
        named["data"] = {"split": words.split}
    if words.budget is not None:
        named["train"] = {"steps": words.budget}
    given = overrides(own(words.assignments, arch, words.archs))
    for key in given.keys() & {"task", "arch", "seed", "smoke"}:
        raise UserError(f"--set can't give '{key}' here: it has an option of its own, or no meaning")
    return merge(preset_of(words.task, arch, words.preset), given, named)


def _each(archs: Sequence[str], work: Callable[[str], T]) -> dict[str, T]:
    """`work` of every architecture; one `UserError` of all, each mistake once."""
    done: dict[str, T] = {}
    problems: dict[str, list[str]] = {}
    for arch in archs:
        try:
            done[arch] = work(arch)
        except UserError as error:
            for line in str(error).splitlines():
                problems.setdefault(line, []).append(arch)
    if problems:
        told = (f"{line} ({', '.join(who)})" if len(who) < len(archs) else line for line, who in problems.items())
        raise UserError("\n".join(told))
    return done


def make(
    search: Search, root: Path, study: str, work: Callable[[Sequence[tuple[expand.Cell, Path]]], bool]
) -> list[Score]:
    """Makes every trial, in rounds that each method chooses, and scores it; `work` says whether all runs were made.

    Trials that are done already are told to the method again from their records, so the same search goes on where it
    was. `UnequalError` if a run could not be made.
    """
    samplers = {arch: sampler(search.words.method, space, search.words.seed) for arch, space in search.spaces.items()}
    scores: list[Score] = []
    while left := search.words.trials - len(scores) // len(samplers):
        trials = _round(search, samplers, search.words.trials - left, left)
        planned = expand.plan([expand.Cell(trial.config, search.words.preset) for trial in trials], root, study)
        if not work(list({path: (cell, path) for cell, path in planned}.values())):
            raise UnequalError
        found = [score(trial, path) for trial, (_, path) in zip(trials, planned, strict=True)]
        for arch, one in samplers.items():
            one.tell([each.value for each in found if each.trial.arch == arch])
        scores += found
    return scores


def _round(search: Search, samplers: Mapping[str, Sampler], before: int, left: int) -> list[Trial]:
    asked = {arch: one.ask(min(left, one.round)) for arch, one in samplers.items()}
    made = _each(list(asked), lambda arch: [trial_of(search, arch, before + i, v) for i, v in enumerate(asked[arch])])
    return [trial for several in zip(*made.values(), strict=True) for trial in several]


def trial_of(search: Search, arch: str, index: int, values: Values) -> Trial:
    """The trial with these values; with a wanted number of parameters its widths follow from them."""
    tree = merge(search.bases[arch], expand.nested({key: value for key, value in values.items() if key != WIDTH}))
    config, widths = resolve(tree), {}
    if search.words.parameters:
        widths = matched(config, search.vocabularies, search.words.parameters)
    elif WIDTH in values:
        widths = scaled(config, values[WIDTH])
    tree = merge(tree, {"model": widths})
    return Trial(arch, index + 1, values, tree, resolve(tree))


def score(trial: Trial, path: Path) -> Score:
    """What a finished run is judged by; `UserError` if it is no trial, but was scored on test splits too."""
    result = read_result(path)
    if not result.get("tuning") or result["test_reads"]:
        raise UserError(f"{path} is no trial: it was scored on test splits")
    parts = [part for part in result.get("splits", {}).values() if part["role"] == "validation"]
    exact = parts[0]["metrics"]["exact_match"] if parts else 0.0
    seconds = result.get("train_seconds", 0.0) + result.get("evaluate_seconds", 0.0)
    return Score(trial, path, result["status"], exact, last_loss(path), result["parameters"], seconds)


def last_loss(path: Path) -> float:
    """A run's last validation loss in nats a label; infinity if it has none, or one that is no number."""
    with (path / "metrics.csv").open(newline="", encoding="utf-8") as file:
        losses = [float(row["value"]) for row in csv.DictReader(file) if row["metric"] == "validation_loss"]
    return losses[-1] if losses and math.isfinite(losses[-1]) else math.inf
