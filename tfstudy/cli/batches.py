"""Run grids, what a study has left, and searches, in batches of jobs. Imported by the commands when they run."""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfstudy.analysis import labels
from tfstudy.cli.output import print_listing, without_progress
from tfstudy.config.trees import Tree
from tfstudy.errors import printable
from tfstudy.experiment.api import device_of
from tfstudy.grids.expand import PlannedRun
from tfstudy.launchers import Executor, ExecutorSettings, Job
from tfstudy.launchers.batch import (
    Batch,
    copy_finished,
    estimates,
    grid_batch,
    jobs_of,
    resumed_jobs,
    running,
    save_plan,
)
from tfstudy.launchers.slurm import Slurm
from tfstudy.launchers.supervisor import supervise
from tfstudy.plugins import command
from tfstudy.report.grids import BatchProgress, forecast, outdated_lines, unmeasured_lines
from tfstudy.report.markup import plural
from tfstudy.report.render import STYLES, Cells, Listing
from tfstudy.runs.files import results_words
from tfstudy.runs.status import FAILED, INTERRUPTED, PENDING, RunStatus, study_runs
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


def run_grid(grid: Tree, study: Path, settings: ExecutorSettings, smoke: bool = False, shard: str = "") -> int:
    """Run the jobs of a grid that are not finished; return 1 if a run failed, otherwise 0."""
    with running(settings) as executor:
        batch = _recorded(grid_batch(grid, study, settings.options, executor.threads, smoke, shard))
        return run_batch(batch, executor)


def submit_grid(grid: Tree, study: Path, settings: ExecutorSettings, smoke: bool = False, shard: str = "") -> None:
    """Submit the jobs of a grid that are not finished to Slurm, and say how to watch and to cancel them."""
    slurm = Slurm(settings)
    batch = _recorded(grid_batch(grid, study, settings.options, slurm.threads, smoke, shard))
    _print_notes(batch)
    if not (pending := batch.pending):
        print(f"all {plural(len(batch.jobs), 'run')} already finished ({study})")
        return
    number = slurm.submit(pending)
    print(
        f"{plural(len(pending), 'run')} submitted to Slurm as job {number}, {len(batch.jobs) - len(pending)} already "
        f"finished ({study})\n"
        f"to watch:  {command('status', study.name, *results_words(study.parent))}; squeue --job {number}\n"
        f"to cancel: scancel {number}"
    )


def _recorded(batch: Batch) -> Batch:
    """Return the jobs of a grid after their plan is saved and their runs in other studies are copied."""
    save_plan(batch.jobs)
    if copied := copy_finished(batch.pending):
        root = batch.jobs[0].study.parent
        print(f"{plural(len(copied), 'finished run')} copied from other studies in {root}", flush=True)
    return batch


def preview_grid(grid: Tree, study: Path, settings: ExecutorSettings, smoke: bool = False, shard: str = "") -> Listing:
    """Return what `run_grid` would run. No cluster is started or asked: the times are for this machine."""
    if settings.launcher in ("ray", "slurm"):
        settings = settings._replace(launcher="local", per_device="auto")
    with running(settings) as executor:
        batch = grid_batch(grid, study, settings.options, executor.threads, smoke, shard)
        found = forecast(batch, executor.max_parallel)
    differences = [f"unlike the paper, {key}: {text}" for key, text in (grid.get("differences") or {}).items()]
    return found._replace(notes=[*found.notes, *differences])


def run_batch(batch: Batch, executor: Executor) -> int:
    """Run the pending jobs and print their progress and outcome; return 1 if a run failed, otherwise 0."""
    pending, study = batch.pending, f" ({batch.jobs[0].study})" if batch.jobs else ""
    finished = len(batch.jobs) - len(pending)
    runs = plural(len(pending), "run")
    print(f"{runs} to start, {finished} already finished{study}; {executor.describe()}", flush=True)
    _print_notes(batch)
    with BatchProgress(batch, lambda: executor.max_parallel) as progress:
        summary = supervise(pending, executor, progress)
    for path, reason in summary.failed.items():
        print(printable(f"failed: {path}: {reason}"), file=sys.stderr)
    return 1 if summary.failed else 0


def _print_notes(batch: Batch) -> None:
    """Print which finished runs are kept though they are outdated, or not measured as asked."""
    for note in (*outdated_lines(batch), *unmeasured_lines(batch)):
        print(note, flush=True)


def resume_study(study: Path, settings: ExecutorSettings, dry_run: bool = False, online: bool = False) -> int:
    """Run the pending, interrupted and failed runs of a study on this machine; return 1 if one failed or was skipped.

    With `dry_run`, print them and run nothing. Data that a config names on the hub are loaded only with `online`.
    """
    left = [run for run in study_runs(study) if run.state in (FAILED, INTERRUPTED, PENDING)]
    if not left:
        print(f"{study}: no run is left")
        return 0
    device_of(settings.options)  # checks them, for a dry run too
    jobs, skipped = resumed_jobs(left, study.parent, study.name, settings.options, online)
    for name, reason in skipped.items():
        print(f"skipped: {name}: {reason}")
    if jobs:
        _show_left(jobs, left)
    if dry_run or not jobs:
        return int(bool(skipped))
    with running(settings) as executor:
        jobs = [job._replace(threads=executor.threads) for job in jobs]
        return run_batch(Batch(jobs, estimates(jobs)), executor) or int(bool(skipped))


def _show_left(jobs: Sequence[Job], left: Sequence[RunStatus]) -> None:
    """Print a line for each job: its name, what varies between the jobs, and why it has not finished."""
    varied = dict(zip((Path(job.path) for job in jobs), labels.of_configs([job.config for job in jobs]), strict=True))
    shown = [run for run in left if run.path in varied]
    frame = {
        "state": [run.state for run in shown],
        "run": [run.name for run in shown],
        "settings": [varied[run.path] for run in shown],
        "reason": [_reason(run) for run in shown],
    }
    folded = frozenset(("run", "settings", "reason"))
    print_listing(Listing([Cells(frame, left=list(frame), folded=folded, headless=True, styles=STYLES)]), "text")


def _reason(run: RunStatus) -> str:
    return run.reason or (f"step {run.step:,} of {run.steps:,}" if run.steps else "")


# Searches


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

    def run_trials(planned: Sequence[PlannedRun]) -> bool:
        with running(settings) as executor:
            jobs = jobs_of(planned, settings.options, executor.threads)
            return not run_batch(Batch(jobs, {}), executor)

    archs: dict[str, list[str]] = {}  # those with the same settings
    for arch, space in search.spaces.items():
        archs.setdefault("\n".join(f"  {key}={kind}" for key, kind in space.items()), []).append(arch)
    try:
        with without_progress(quiet):
            for keys, names in archs.items():
                print(f"searched for {', '.join(names)}:\n{keys}", flush=True)
            scores = run_search(search, root, study, run_trials)
    except IncompleteSearchError:
        print("some trials failed, so no preset was saved; run the same command again to retry them", file=sys.stderr)
        return 1
    return show_trials(search, scores, out or root / study / "preset.yaml")


def show_trials(search: Search, scores: Sequence[TrialScore], out: Path) -> int:
    """Print all trials and save the best as presets; return 1 if an architecture has none."""
    best = best_trials(scores)
    print_listing(trials(scores, best), "text")
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


def trials(scores: Sequence[TrialScore], best: Mapping[str, TrialScore]) -> Listing:
    """Return a table of all trials by architecture, the best first and marked with a star."""
    keys = list(dict.fromkeys(key for score in scores for key in score.trial.values))
    archs = list(dict.fromkeys(score.trial.arch for score in scores))
    rows = sorted(scores, key=lambda score: (archs.index(score.trial.arch), score.order))

    def values(key: str) -> list[str]:
        own = [row.trial.values.get(key, "") for row in rows]
        return [f"{value:g}" if isinstance(value, float) else str(value) for value in own]

    frame = {
        "architecture": [row.trial.arch for row in rows],
        "trial": [f"{'* ' * (row is best.get(row.trial.arch))}{row.trial.number}" for row in rows],
        **{key.rpartition(".")[2].replace("_", " "): values(key) for key in keys},
        "loss": [f"{row.loss:.4f}" if math.isfinite(row.loss) else "" for row in rows],
        "exact match": [f"{100 * row.exact_match:.1f}" if row.status == "finished" else row.status for row in rows],
        "parameters": [f"{row.parameters:,}" for row in rows],
        "run": [row.path.name for row in rows],
    }
    title, left_out = "trials, judged on the validation split (* is the best)", ("parameters", "exact match", "run")
    return Listing([Cells(frame, title=title, left=("architecture", "run"), left_out=left_out)])
