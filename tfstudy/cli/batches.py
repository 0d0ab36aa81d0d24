"""Run grids, and what a study has left, in batches of jobs. Imported by `tfstudy grid` when it runs."""

import sys
from pathlib import Path

from tfstudy.cli.output import print_listing
from tfstudy.config.presets import preset_notes
from tfstudy.config.trees import Tree
from tfstudy.errors import printable
from tfstudy.experiment.api import device_of
from tfstudy.launchers import Executor, ExecutorSettings
from tfstudy.launchers.batch import (
    Batch,
    estimates,
    grid_batch,
    resumed_jobs,
    running,
    save_plan,
)
from tfstudy.launchers.slurm import Slurm
from tfstudy.launchers.supervisor import supervise
from tfstudy.plugins import command
from tfstudy.report.markup import plural
from tfstudy.report.progress import BatchProgress, forecast
from tfstudy.report.render import Listing
from tfstudy.runs.files import results_words, study_zips
from tfstudy.runs.find import FAILED, INTERRUPTED, PENDING, study_runs


def run_grid(grid: Tree, study: Path, settings: ExecutorSettings, smoke: bool = False) -> int:
    """Run the jobs of a grid that are not finished; return 1 if a run failed, otherwise 0."""
    with running(settings) as executor:
        batch = grid_batch(grid, study, settings.options, executor.threads, smoke)
        save_plan(batch.jobs)
        return run_batch(batch, executor)


def submit_grid(grid: Tree, study: Path, settings: ExecutorSettings, smoke: bool = False) -> None:
    """Submit the jobs of a grid that are not finished to Slurm, and say how to watch and to cancel them."""
    slurm = Slurm(settings)
    batch = grid_batch(grid, study, settings.options, slurm.threads, smoke)
    save_plan(batch.jobs)
    for note in batch.unequal:
        print(note)
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


def preview_grid(grid: Tree, study: Path, settings: ExecutorSettings, smoke: bool = False) -> Listing:
    """Return what `run_grid` would run. No cluster is started or asked: the times are for this machine."""
    if settings.launcher in ("ray", "slurm"):
        options = settings.options._replace(accelerator="auto")  # this machine may have no GPU
        settings = settings._replace(launcher="local", per_device="auto", options=options)
    with running(settings) as executor:
        batch = grid_batch(grid, study, settings.options, executor.threads, smoke)
        found = forecast(batch, executor.max_parallel)
    own = [f"unlike the paper, {key}: {text}" for key, text in (grid.get("differences") or {}).items()]
    presets = dict.fromkeys((job.config["task"], job.config["arch"], job.options.preset) for job in batch.jobs)
    differences = [(one[2], text) for one in presets for text in preset_notes(*one).get("differences", [])]
    theirs = [f"unlike the paper ({preset}): {text}" for preset, text in differences]
    return found._replace(notes=[*found.notes, *own, *theirs])


def run_batch(batch: Batch, executor: Executor) -> int:
    """Run the pending jobs and print their progress and outcome; return 1 if a run failed, otherwise 0."""
    pending, study = batch.pending, f" ({batch.jobs[0].study})" if batch.jobs else ""
    finished = len(batch.jobs) - len(pending)
    runs = plural(len(pending), "run")
    print(f"{runs} to start, {finished} already finished{study}; {executor.describe()}", flush=True)
    for note in batch.unequal:
        print(note, flush=True)
    if pending:
        folder = pending[0].study
        print(f"to watch: {command('status', folder.name, *results_words(folder.parent))}", flush=True)
    failures = supervise(pending, executor, BatchProgress(batch, lambda: executor.max_parallel))
    for path, reason in failures.items():
        print(printable(f"failed: {path}: {reason}"), file=sys.stderr)
    return 1 if failures else 0


def resume_study(study: Path, settings: ExecutorSettings, dry_run: bool = False, online: bool = False) -> int:
    """Run the pending, interrupted and failed runs of a study on this machine; return 1 if one failed or was skipped.

    With `dry_run`, print them and run nothing. Data that a config names on the hub are loaded only with `online`.
    """
    study_zips(study, strict=True)
    left = [run for run in study_runs(study) if run.state in (FAILED, INTERRUPTED, PENDING)]
    if not left:
        print(f"{study}: no run is left")
        return 0
    device_of(settings.options)  # checks them, for a dry run too
    jobs, skipped = resumed_jobs(left, study.parent, study.name, settings.options, online)
    for name, reason in skipped.items():
        print(f"skipped: {name}: {reason}")
    with running(settings) as executor:
        batch = Batch([job._replace(threads=executor.threads) for job in jobs], estimates(jobs))
        if dry_run and jobs:
            print_listing(forecast(batch, executor.max_parallel), "text")
        failed = run_batch(batch, executor) if jobs and not dry_run else 0
    return failed or int(bool(skipped))
