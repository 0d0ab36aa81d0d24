"""Run a search and show its trials: a line for each that ends, then a table and the best presets."""

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

from tfstudy.errors import printable
from tfstudy.grids.plan import PlannedRun
from tfstudy.launchers import ExecutorSettings
from tfstudy.launchers.job_batch import running
from tfstudy.launchers.job_list import jobs_of
from tfstudy.launchers.supervisor import RETRYING, Event, supervise
from tfstudy.report.markup import plural
from tfstudy.report.terminal import Terminal
from tfstudy.report.tuning_trials import finalist_lines, trial_lines
from tfstudy.runs.reader import read_result
from tfstudy.runs.status import FAILED, FINISHED
from tfstudy.tuning.best_presets import NAME, best_trials, check_out, preset_text, save_presets
from tfstudy.tuning.finals import Finalist, best_finalists, check_finals, run_finals
from tfstudy.tuning.search import IncompleteSearchError, Search, SearchRequest, TrialScore, plan_search, run_search

WIDTH = 200  # characters, where the output is not a terminal


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
    check_finals(request)
    search = plan_search(request)
    study = study or f"{request.task}-{search.split.replace('/', '_')}"
    try:
        with open(os.devnull, "w") if quiet else nullcontext(sys.stdout) as progress, redirect_stdout(progress):
            print("\n".join(searched_lines(search)), flush=True)
            scores = run_search(search, root, study, lambda planned: run_trials(planned, settings))
            finalists = None
            if request.final_trials:
                print(f"the best of each architecture with {request.final_seeds} seeds:", flush=True)
                finalists = run_finals(search, scores, root, study, lambda planned: run_trials(planned, settings))
    except IncompleteSearchError:
        print("some trials failed, so no preset was saved; run the same command again to retry them", file=sys.stderr)
        return 1
    return show_trials(search, scores, out or root / study / "preset.yaml", finalists)


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
        text = outcome(Path(event.job.path)) if event.state == FINISHED else f"{event.state}: {event.reason}"
        print(f"[{self._ended}/{self._trials}] {event.job.name}: {text} in {event.seconds:.1f} s", flush=True)


def outcome(path: Path) -> str:
    """Return the validation result of a trial, in words."""
    result = read_result(path)
    validation = [scores for scores in result.splits.values() if scores.role == "validation"]
    if not validation:
        return result.status
    return f"exact match {100 * validation[0].metrics['exact_match']:.1f} % on validation"


def show_trials(
    search: Search,
    scores: Sequence[TrialScore],
    out: Path,
    finalists: Sequence[Finalist] | None = None,
) -> int:
    """Print all trials and save the best as presets; return 1 if an architecture has none.

    With `finalists`, the best are those of the second round.
    """
    best_of_finals = best_finalists(finalists or [])
    best = best_trials(scores) if finalists is None else {arch: one.trial for arch, one in best_of_finals.items()}
    console = Terminal(piped_width=WIDTH)
    lines = trial_lines(scores, best, console.width)
    if finalists is not None:
        lines += finalist_lines(search, finalists, best_of_finals, console.width)
    for line in lines:
        console.print(line)
    if best:
        if archived := save_presets(out, preset_text(search, best, best_of_finals)):
            print(f"archived the previous presets: {archived}")
        request = search.request
        split = ["--split", request.split] if request.split else []
        data = [word for one in request.assignments if one.startswith("data.") for word in ("--set", one)]
        words = ["run", request.task, *split, *data, "--arch", next(iter(best)), "--preset", f"{out}:{NAME}"]
        print(f"next: tfstudy {shlex.join(words)}")
    without = [arch for arch in search.request.archs if arch not in best]
    for arch in without:
        finished = [one for one in scores if one.trial.arch == arch and one.status == "finished"]
        unmeasured = finished and not any(one.measured for one in finished)
        reason = f"no trial of {arch} has a validation loss" if unmeasured else f"all trials of {arch} diverged"
        print(f"{reason}, so it has no preset", file=sys.stderr)
    return int(bool(without))
