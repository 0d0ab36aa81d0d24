"""Run a search and show its trials: a line for each that ends, then a table and the best presets.

Imported by `tfstudy tune` when it runs.
"""

import math
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

from tfstudy.cli.output import print_listing
from tfstudy.errors import printable
from tfstudy.grids.expand import PlannedRun
from tfstudy.launchers import ExecutorSettings
from tfstudy.launchers.batch import jobs_of, running
from tfstudy.launchers.supervisor import RETRYING, Event, supervise
from tfstudy.plugins import command
from tfstudy.report.markup import plural
from tfstudy.report.render import Cells, Listing
from tfstudy.runs.status import FAILED, FINISHED
from tfstudy.runs.store import read_result
from tfstudy.tuning.presets import NAME, check_out, preset_text, save_presets
from tfstudy.tuning.search import (
    IncompleteSearchError,
    Search,
    SearchRequest,
    TrialScore,
    best_trials,
    plan_search,
    run_search,
)


def tune_architectures(
    request: SearchRequest,
    root: Path,
    study: str,
    settings: ExecutorSettings,
    out: Path | None = None,
    quiet: bool = False,
) -> int:
    """Run a search on this machine, print its trials and save the best presets.

    Return 1 if a trial failed, or if no trial of an architecture was measured. The presets go to `out`; by default they
    are saved with the trials. With `quiet`, the trials are not printed while they run.
    """
    if out:
        check_out(out)
    search = plan_search(request)
    study = study or f"{request.task}-{search.split.replace('/', '_')}"
    try:
        with open(os.devnull, "w") if quiet else nullcontext(sys.stdout) as progress, redirect_stdout(progress):
            print("\n".join(searched_lines(search)), flush=True)
            scores = run_search(search, root, study, lambda planned: run_trials(planned, settings))
    except IncompleteSearchError:
        print("some trials failed, so no preset was saved; run the same command again to retry them", file=sys.stderr)
        return 1
    return show_trials(search, scores, out or root / study / "preset.yaml")


def searched_lines(search: Search) -> list[str]:
    """Describe what is searched, once for all architectures with the same settings."""
    archs: dict[str, list[str]] = {}
    for arch, space in search.spaces.items():
        archs.setdefault("\n".join(f"  {key}={kind}" for key, kind in space.items()), []).append(arch)
    return [f"searched for {', '.join(names)}:\n{settings}" for settings, names in archs.items()]


def run_trials(planned: Sequence[PlannedRun], settings: ExecutorSettings) -> bool:
    """Run the trials that are not finished, on this machine; return whether all finished."""
    with running(settings) as executor:
        pending = [job for job in jobs_of(planned, settings.options, executor.threads) if not job.finished]
        finished = len(planned) - len(pending)
        trials = plural(len(pending), "trial")
        print(f"{trials} to start, {finished} already finished; {executor.describe()}", flush=True)
        summary = supervise(pending, executor, TrialLines(len(pending)))
    for path, reason in summary.failed.items():
        print(printable(f"failed: {path}: {reason}"), file=sys.stderr)
    return not summary.failed


class TrialLines:
    """Prints a line for every trial that ends."""

    def __init__(self, trials: int) -> None:
        self._trials, self._ended = trials, 0

    def __call__(self, event: Event | None) -> None:
        if event is None or event.state not in (FINISHED, FAILED, RETRYING):
            return
        self._ended += event.state != RETRYING
        text = f"{event.state}: {event.reason}"
        if event.state == FINISHED:
            result = read_result(Path(event.job.path))
            validation = [scores for scores in result.splits.values() if scores.role == "validation"]
            exact = [f"exact match {100 * scores.metrics['exact_match']:.1f} % on validation" for scores in validation]
            text = exact[0] if exact else result.status
        print(f"[{self._ended}/{self._trials}] {event.job.name}: {text} in {event.seconds:.1f} s", flush=True)


def show_trials(search: Search, scores: Sequence[TrialScore], out: Path) -> int:
    """Print all trials and save the best as presets; return 1 if an architecture has none."""
    best = best_trials(scores)
    print_listing(trials_listing(scores, best), "text")
    if best:
        if archived := save_presets(out, preset_text(search, best)):
            print(f"archived the previous presets: {archived}")
        print(f"saved: {out}\nnext: {command('run', search.request.task, '--preset', f'{out}:{NAME}')}")
    without = [arch for arch in search.request.archs if arch not in best]
    for arch in without:
        finished = any(one.trial.arch == arch and one.status == "finished" for one in scores)
        reason = f"no trial of {arch} has a validation loss" if finished else f"all trials of {arch} diverged"
        print(f"{reason}, so it has no preset", file=sys.stderr)
    return int(bool(without))


def trials_listing(scores: Sequence[TrialScore], best: Mapping[str, TrialScore]) -> Listing:
    """Return a table of all trials by architecture, the best first and marked with a star."""
    keys = list(dict.fromkeys(key for score in scores for key in score.trial.values))
    archs = list(dict.fromkeys(score.trial.arch for score in scores))
    rows = sorted(scores, key=lambda score: (archs.index(score.trial.arch), score.order))
    stars = ["* " * (row is best.get(row.trial.arch)) for row in rows]
    columns = {
        "architecture": [row.trial.arch for row in rows],
        "trial": [f"{star}{row.trial.number}" for star, row in zip(stars, rows, strict=True)],
        **{key.rpartition(".")[2].replace("_", " "): _values(rows, key) for key in keys},
        "loss": [f"{row.loss:.4f}" if math.isfinite(row.loss) else "" for row in rows],
        "exact match": [f"{100 * row.exact_match:.1f}" if row.status == "finished" else row.status for row in rows],
        "parameters": [f"{row.parameters:,}" for row in rows],
        "run": [row.path.name for row in rows],
    }
    title = "trials, judged on the validation split (* is the best)"
    return Listing(
        [Cells(columns, title=title, left=("architecture", "run"), left_out=("parameters", "exact match", "run"))]
    )


def _values(rows: Sequence[TrialScore], key: str) -> list[str]:
    values = [row.trial.values.get(key, "") for row in rows]
    return [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
