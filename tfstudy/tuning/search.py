"""A hyperparameter search: equal numbers of trials and steps for every architecture, judged by the validation loss.

No trial evaluates a test set, and `result.json` marks it as a trial (`"tuning": true`), so that no table shows it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tfstudy import models, tasks
from tfstudy.config.presets import starting_point
from tfstudy.config.resolve import overrides, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, merge, unflatten
from tfstudy.data.encoding import Vocab
from tfstudy.errors import UserError, quoted
from tfstudy.experiment.api import RunOptions
from tfstudy.experiment.parameter_matching import match_sizes
from tfstudy.experiment.score import scored_splits
from tfstudy.grids.expand import GridRun, PlannedRun, plan
from tfstudy.runs.store import read_metrics, read_result
from tfstudy.tuning.space import WIDTH, Space, default_searches, draw, for_architecture, parse_space, scaled

MAX_TRIALS = 10_000  # of each architecture
T = TypeVar("T")


class SearchRequest(NamedTuple):
    """The options of a search."""

    task: str
    archs: Sequence[str]
    split: str | None = None
    preset: str = "default"
    assignments: Sequence[str] = ()  # such as `model.dim=64`, or `cnn.model.kernel=5` for one architecture
    searches: Sequence[str] = ()  # see `tfstudy.tuning.space`
    trials: int = 20  # of each architecture
    budget: int | None = None  # steps of each trial; None: train.steps, which must then be equal
    parameters: int = 0  # of the model of every trial; 0: widths are searched
    seed: int = 0  # of the search and of every run


class Search(NamedTuple):
    """A validated search."""

    request: SearchRequest
    bases: Mapping[str, Tree]  # architecture to the settings that its trials share
    spaces: Mapping[str, Space]
    vocabularies: tuple[int, int]  # sizes, of source and target

    @property
    def split(self) -> str:
        """The split scheme of every trial."""
        return str(resolve(self.bases[self.request.archs[0]]).data.split)


class Trial(NamedTuple):
    """One run of a search."""

    arch: str
    number: int  # 1, 2, ... within its architecture
    values: Mapping[str, Any]
    tree: Tree  # the settings that are not defaults
    config: RunConfig


class TrialScore(NamedTuple):
    """A trial that ended, with its validation results."""

    trial: Trial
    path: Path
    status: str
    exact_match: float  # on the validation split; 0 if it diverged
    loss: float  # last validation loss, in nats per target token; infinite if there is none
    parameters: int

    @property
    def measured(self) -> bool:
        """Whether it has a validation loss: a trial without one can't be the best."""
        return self.status == "finished" and math.isfinite(self.loss)

    @property
    def order(self) -> tuple[Any, ...]:
        """Sort key, best first: validation loss, then name; diverged trials come last.

        Not exact match, which is 100 % for many trials of an easy task.
        """
        return self.status != "finished", self.loss, self.path.name


class IncompleteSearchError(Exception):
    """Some trials failed, so the architectures did not have the same budget."""


def plan_search(request: SearchRequest) -> Search:
    """Return the validated search; `UserError` with all errors of the request."""
    if not 1 <= request.trials <= MAX_TRIALS:
        raise UserError(f"--trials must be from 1 to {MAX_TRIALS:,}, but is {quoted(request.trials)}")
    archs = request.archs
    if not archs or not all(archs):
        raise UserError("--arch must name at least one architecture, and several with commas between them")
    for arch in archs:
        models.find(arch)
    bases = _for_each(archs, lambda arch: _base(request, arch))
    configs = _for_each(archs, lambda arch: resolve(bases[arch]))
    for key in ("train.steps", "data", "eval"):
        _check_equal(key, configs)
    _for_each(archs, lambda arch: _check_validated(request, configs[arch]))
    match = request.parameters > 0
    searches = request.searches or default_searches(match)
    spaces = _for_each(archs, lambda arch: parse_space(for_architecture(searches, arch, archs), bases[arch], match))
    task = tasks.build(request.task, configs[archs[0]].data)
    scored_splits(task, RunOptions(tuning=True))  # checks that there is a validation split
    source, target = task.vocabulary()
    return Search(request, bases, spaces, (len(Vocab(source)), len(Vocab(target))))


def run_search(
    search: Search, root: Path, study: str, execute: Callable[[Sequence[PlannedRun]], bool]
) -> list[TrialScore]:
    """Run every trial and return the scores. `execute` runs trials and returns whether all of them finished.

    Scores are read from the records of finished trials, so a repeated search resumes. `IncompleteSearchError` if a
    trial failed.
    """
    request = search.request
    by_arch = _for_each(request.archs, lambda arch: [make_trial(search, arch, i) for i in range(request.trials)])
    trials = [trial for turn in zip(*by_arch.values(), strict=True) for trial in turn]
    planned = plan([GridRun(trial.config, request.preset) for trial in trials], root, study)
    if not execute(list({run.path: run for run in planned}.values())):
        raise IncompleteSearchError
    return [score(trial, run.path) for trial, run in zip(trials, planned, strict=True)]


def make_trial(search: Search, arch: str, index: int) -> Trial:
    """Return a trial, whose values depend only on the search's seed and the trial's index, from 0."""
    values = draw(search.spaces[arch], search.request.seed, index)
    tree = merge(search.bases[arch], unflatten({key: value for key, value in values.items() if key != WIDTH}))
    config, widths = resolve(tree), {}
    if search.request.parameters:
        widths = match_sizes(config, search.vocabularies, search.request.parameters)
    elif WIDTH in values:
        widths = scaled(config, values[WIDTH])
    tree = merge(tree, {"model": widths})
    return Trial(arch, index + 1, values, tree, resolve(tree))


def score(trial: Trial, path: Path) -> TrialScore:
    """Return the score of a finished trial; `UserError` if the run is not a trial, or its test sets were evaluated."""
    result = read_result(path)
    if not result.tuning or result.test_reads:
        raise UserError(f"{path} is not a trial: its test sets were evaluated")
    validation = [scores for scores in result.splits.values() if scores.role == "validation"]
    exact_match = validation[0].metrics["exact_match"] if validation else 0.0
    losses = [value for _, metric, value in read_metrics(path) if metric == "validation_loss"]
    loss = losses[-1] if losses and math.isfinite(losses[-1]) else math.inf
    return TrialScore(trial, path, result.status, exact_match, loss, result.parameters)


def best_trials(scores: Sequence[TrialScore]) -> dict[str, TrialScore]:
    """Return the best trial of each architecture; none for an architecture without a validation loss."""
    best: dict[str, TrialScore] = {}
    for one in sorted(scores, key=lambda one: one.order):
        if one.measured:
            best.setdefault(one.trial.arch, one)
    return {arch: best[arch] for arch in dict.fromkeys(one.trial.arch for one in scores) if arch in best}


def _base(request: SearchRequest, arch: str) -> Tree:
    named: Tree = {"task": request.task, "arch": arch, "seed": request.seed}
    if request.split is not None:
        named["data"] = {"split": request.split}
    if request.budget is not None:
        named["train"] = {"steps": request.budget}
    settings = overrides(for_architecture(request.assignments, arch, request.archs))
    for key in settings.keys() & {"task", "arch", "seed", "smoke"}:
        raise UserError(f"--set can't change '{key}' in a search: use its own option, if there is one")
    widths = [key for key in settings.get("model", {}) if key in models.find(arch).widths]
    if request.parameters and widths:
        raise UserError(f"--match-params determines the widths, so --set can't include 'model.{widths[0]}'")
    return merge(starting_point(request.task, arch, request.preset), settings, named)


def _check_validated(request: SearchRequest, config: RunConfig) -> None:
    """`UserError` if trials would end before their first validation, so that nothing could rank them."""
    steps, interval = config.train.steps, config.train.validation_interval
    if steps < interval:
        name = "train.steps" if request.budget is None else "--budget"
        settings = f"--set train.validation_interval={steps} --set train.log_interval={steps}"
        raise UserError(
            f"{name} {steps} is less than train.validation_interval {interval}, so no trial would be validated: "
            f"raise it, or validate earlier ({settings})"
        )


def _check_equal(key: str, configs: Mapping[str, RunConfig]) -> None:
    """`UserError` if the architectures differ in this part of the config."""
    values = {arch: attrgetter(key)(config) for arch, config in configs.items()}
    if any(value != next(iter(values.values())) for value in values.values()):
        listed = "; ".join(f"{value} ({arch})" for arch, value in values.items())
        raise UserError(f"{key} must be the same for all architectures, but is {listed}; set it by --budget or --set")


def _for_each(archs: Sequence[str], function: Callable[[str], T]) -> dict[str, T]:
    """Return the function's value for every architecture; one `UserError` of all errors, each once."""
    values: dict[str, T] = {}
    problems: dict[str, list[str]] = {}
    for arch in archs:
        try:
            values[arch] = function(arch)
        except UserError as error:
            for line in str(error).splitlines():
                problems.setdefault(line, []).append(arch)
    if problems:
        shared = {
            line: "" if len(names) == len(archs) else f" ({', '.join(names)})" for line, names in problems.items()
        }
        raise UserError("\n".join(line + names for line, names in shared.items()))
    return values
