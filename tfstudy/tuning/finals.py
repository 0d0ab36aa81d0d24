"""A second round of a search: the best trials of each architecture, each trained with several seeds.

The best of many trials was also lucky with its seed. Averaging the validation loss of a few of them over seeds corrects
this, with the same number of trials and seeds for every architecture.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from tfstudy.config.resolve import resolve
from tfstudy.config.trees import merge
from tfstudy.errors import UserError
from tfstudy.grids.expand import GridRun
from tfstudy.grids.plan import PlannedRun, plan
from tfstudy.tuning.search import IncompleteSearchError, Search, SearchRequest, Trial, TrialScore, score

MAX_SEEDS = 100


class Finalist(NamedTuple):
    """A trial with the scores of all its seeds; the first is that of the search."""

    trial: TrialScore
    seeds: tuple[TrialScore, ...]

    @property
    def loss(self) -> float:
        """Mean validation loss over seeds, in nats per target token; infinite if a seed diverged."""
        return mean(one.loss if one.status == "finished" else math.inf for one in self.seeds)


def check_finals(request: SearchRequest) -> None:
    """`UserError` if the numbers of trials and seeds of the second round are impossible."""
    if not 0 <= request.final_trials <= request.trials:
        raise UserError(f"--final-trials must be from 0 to --trials ({request.trials}), but is {request.final_trials}")
    if not 2 <= request.final_seeds <= MAX_SEEDS:
        raise UserError(f"--final-seeds must be from 2 to {MAX_SEEDS}, but is {request.final_seeds}")


def final_seeds(request: SearchRequest) -> range:
    """Return the seeds of the second round; the first is that of the search."""
    return range(request.seed, request.seed + request.final_seeds)


def run_finals(
    search: Search,
    scores: Sequence[TrialScore],
    root: Path,
    study: str,
    execute: Callable[[Sequence[PlannedRun]], bool],
) -> list[Finalist]:
    """Train the best trials of each architecture with the other seeds; return them, the best of each first.

    An architecture has fewer if fewer different trials have a validation loss. `IncompleteSearchError` if a run failed.
    """
    request = search.request
    chosen = [one for arch in search.bases for one in _best(scores, arch, request.final_trials)]
    trials = [_with_seed(one.trial, seed) for one in chosen for seed in final_seeds(request)[1:]]
    planned = plan([GridRun(trial.config, request.preset) for trial in trials], root, study)
    if not execute(planned):
        raise IncompleteSearchError
    scored = iter([score(trial, run.path) for trial, run in zip(trials, planned, strict=True)])
    more = request.final_seeds - 1
    finalists = [Finalist(one, (one, *(next(scored) for _ in range(more)))) for one in chosen]
    archs = list(search.bases)
    return sorted(finalists, key=lambda each: (archs.index(each.trial.trial.arch), each.loss, each.trial.path.name))


def best_finalists(finalists: Sequence[Finalist]) -> dict[str, Finalist]:
    """Return the finalist of each architecture with the lowest mean loss; none if all diverged with a seed."""
    best: dict[str, Finalist] = {}
    for finalist in finalists:
        if math.isfinite(finalist.loss):
            best.setdefault(finalist.trial.trial.arch, finalist)
    return best


def _best(scores: Sequence[TrialScore], arch: str, count: int) -> list[TrialScore]:
    """The best trials of an architecture that have a validation loss, of different settings."""
    found: dict[Path, TrialScore] = {}
    for one in sorted(scores, key=lambda one: one.order):
        if one.trial.arch == arch and one.measured:
            found.setdefault(one.path, one)
    return list(found.values())[:count]


def _with_seed(trial: Trial, seed: int) -> Trial:
    tree = merge(trial.tree, {"seed": seed})
    return trial._replace(tree=tree, config=resolve(tree))
