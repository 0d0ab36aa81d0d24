"""A hyperparameter search: equal numbers of trials and steps for every architecture, judged by the validation loss.

No trial evaluates a test set, and `result.json` marks it as a trial (`"tuning": true`), so that no table shows it. The
best trial of each architecture can be saved as a file of presets.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, TypeVar

import yaml

from tfstudy import models, tasks
from tfstudy.config.presets import has_size, starting_point
from tfstudy.config.resolve import overrides, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, merge, unflatten
from tfstudy.data.encoding import Vocab
from tfstudy.errors import UserError, quoted
from tfstudy.experiment.api import RunOptions
from tfstudy.experiment.parameter_matching import match_sizes, with_reference_size
from tfstudy.experiment.score import scored_splits
from tfstudy.grids.expand import GridRun, PlannedRun, plan, with_owners
from tfstudy.plugins import command
from tfstudy.runs.files import archive_name, write_atomically
from tfstudy.runs.store import read_metrics, read_result
from tfstudy.tuning.space import DEFAULT, SEARCHED, WIDTH, Space, draw, for_architecture, parse_space, scaled

MAX_TRIALS = 10_000  # of each architecture
NAME = "tuned"  # of the preset
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
    split: str  # the split scheme of every trial
    bases: Mapping[str, Tree]  # architecture to the settings that its trials share
    spaces: Mapping[str, Space]
    vocabularies: tuple[int, int]  # sizes, of source and target


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
    loss: float  # last validation loss, in nats per target token; infinite if there is none, or if it diverged
    parameters: int

    @property
    def order(self) -> tuple[float, str]:
        """Sort key, best first. Not exact match, which is 100 % for many trials of an easy task."""
        return self.loss, self.path.name


def plan_search(request: SearchRequest) -> Search:
    """Return the validated search; `UserError` with all errors of the request."""
    if not 1 <= request.trials <= MAX_TRIALS:
        raise UserError(f"--trials must be from 1 to {MAX_TRIALS:,}, but is {quoted(request.trials)}")
    archs, match = request.archs, request.parameters > 0
    if not archs or not all(archs):
        raise UserError("--arch must name at least one architecture, and several with commas between them")
    for arch in archs:
        models.find(arch)
    bases = _for_each(archs, lambda arch: _base(request, arch))
    configs = _for_each(archs, lambda arch: resolve(bases[arch]))
    for key in ("train.steps", "data", "eval"):
        values = {arch: attrgetter(key)(config) for arch, config in configs.items()}
        if any(value != values[archs[0]] for value in values.values()):
            listed = "; ".join(f"{value} ({arch})" for arch, value in values.items())
            raise UserError(
                f"{key} must be the same for all architectures, but is {listed}; set it by --budget or --set"
            )
    _for_each(archs, lambda arch: _check_validated(request, configs[arch]))
    # the widths follow from the number of parameters, if that is given
    searches = request.searches or [text for text in DEFAULT if not (match and text.startswith(f"{WIDTH}="))]
    spaces = _for_each(archs, lambda arch: parse_space(for_architecture(searches, arch, archs), bases[arch], match))
    data = configs[archs[0]].data
    task = tasks.build(request.task, data)
    scored_splits(task, RunOptions(tuning=True))  # checks that there is a validation split
    source, target = task.vocabulary()
    return Search(request, data.split, bases, spaces, (len(Vocab(source)), len(Vocab(target))))


def run_search(
    search: Search, root: Path, study: str, execute: Callable[[Sequence[PlannedRun]], bool]
) -> list[TrialScore]:
    """Run every trial and return the scores: none if a trial failed, for the budgets would not be the same.

    `execute` runs trials and returns whether all of them finished. Scores are read from the records of finished trials,
    so a repeated search resumes.
    """
    request = search.request
    by_arch = _for_each(request.archs, lambda arch: [make_trial(search, arch, i) for i in range(request.trials)])
    trials = [trial for turn in zip(*by_arch.values(), strict=True) for trial in turn]
    planned = plan([GridRun(trial.config, request.preset) for trial in trials], root, study)
    if not execute(list({run.path: run for run in planned}.values())):
        return []
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
    exact_match = sum(one.metrics["exact_match"] for one in result.splits.values() if one.role == "validation")
    losses = [value for _, metric, value in read_metrics(path) if metric == "validation_loss"]
    loss = losses[-1] if losses and result.status == "finished" and math.isfinite(losses[-1]) else math.inf
    return TrialScore(trial, path, result.status, exact_match, loss, result.parameters)


def best_trials(scores: Sequence[TrialScore]) -> dict[str, TrialScore]:
    """Return the best trial of each architecture; none for an architecture without a validation loss."""
    archs = dict.fromkeys(one.trial.arch for one in scores)
    best = {arch: min((o for o in scores if o.trial.arch == arch), key=lambda one: one.order) for arch in archs}
    return {arch: one for arch, one in best.items() if math.isfinite(one.loss)}


def _base(request: SearchRequest, arch: str) -> Tree:
    named: Tree = {"task": request.task, "arch": arch, "seed": request.seed}
    if request.split is not None:
        named["data"] = {"split": request.split}
    if request.budget is not None:
        named["train"] = {"steps": request.budget}
    settings = overrides(for_architecture(request.assignments, arch, request.archs))
    if request.budget is not None and "steps" in settings.get("train", {}):
        raise UserError("--budget and --set train.steps contradict each other: give one of them")
    for key in settings.keys() & {"task", "arch", "seed", "smoke"}:
        raise UserError(f"--set can't change '{key}' in a search: use its own option, if there is one")
    widths = [key for key in settings.get("model", {}) if key in models.find(arch).widths]
    if request.parameters and widths:
        raise UserError(f"--match-params determines the widths, so --set can't include 'model.{widths[0]}'")
    start = starting_point(request.task, arch, request.preset)
    base = merge(start, settings, named)
    config = resolve(base)
    config.decode.check_given(settings.get("decode", {}))
    if request.parameters or has_size(start):
        return base
    model = with_reference_size(config, settings).model  # the size that `tfstudy run` would give it
    return merge(base, {"model": {key: getattr(model, key) for key in models.find(arch).widths}})


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
        raise UserError(with_owners(problems, len(archs)))
    return values


# Presets


def preset_yaml(search: Search, best: Mapping[str, TrialScore]) -> str:
    """Return the best trials as the text of a preset file; the same trials give the same text."""
    request = search.request
    presets = {}
    for arch, one in best.items():
        start = starting_point(request.task, arch, request.preset)
        tree = merge(  # of data and evaluation only the settings of its preset
            {key: start[key] for key in ("data", "eval") if key in start},
            {key: one.trial.tree.get(key, {}) for key in SEARCHED},
            {"train": {"steps": one.trial.config.train.steps}},
        )
        full = one.trial.config.model_dump(mode="json")
        own = {section: {key: full[section][key] for key in keys} for section, keys in tree.items() if keys}
        presets[arch] = {"about": _about(search, one), **own}
    head = f"# Found by tfstudy tune. To use it: {use_of(search, best)}\n"
    return head + yaml.safe_dump({NAME: presets}, sort_keys=False, allow_unicode=True, width=1000)


def use_of(search: Search, best: Mapping[str, TrialScore], file: Path | str = "FILE") -> str:
    """Return the command that trains the first of these with its preset."""
    data = [word for text in search.request.assignments if text.startswith("data.") for word in ("--set", text)]
    words = ("--split", search.split, "--arch", next(iter(best)), *data, "--preset", f"{file}:{NAME}")
    return command("run", search.request.task, *words)


def _about(search: Search, one: TrialScore) -> str:
    """Return how a preset was found: budget, space and score."""
    request = search.request
    space = ", ".join(f"{key}={kind}" for key, kind in search.spaces[one.trial.arch].items())
    fixed = f" with {', '.join(request.assignments)}" if request.assignments else ""
    match = f", {request.parameters:,} parameters within 5 %" if request.parameters else ""
    return (
        f"trial {one.trial.number} of {request.trials} by random search, {one.trial.config.train.steps} steps each, "
        f"1 seed ({request.seed}){match}; {space}; validation of {request.task} {search.split}{fixed}: "
        f"exact match {100 * one.exact_match:.1f} %, loss {one.loss:.4f}"
    )


def check_out(path: Path) -> None:
    """`UserError` if no preset file can be written to this path; this writes nothing."""
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"--out must be a file, but {quoted(path)} is none")
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"--out: can't write {quoted(path)}: {error.strerror}") from None


def save_presets(path: Path, text: str) -> Path | None:
    """Write the preset file. A different file of this name is archived as `NAME.old-1.yaml`, whose path is returned."""
    archived = None
    if path.exists() and path.read_bytes() != text.encode():
        archived = path.rename(archive_name(path))
    write_atomically(path, text.encode())
    return archived
