"""Run grids and retries in batches of jobs, with their progress on the terminal."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tfstudy.config.trees import Tree
from tfstudy.errors import printable
from tfstudy.experiment.options import device_of
from tfstudy.launchers import ExecutorSettings, Job
from tfstudy.launchers.job_batch import Batch, grid_batch, running
from tfstudy.launchers.job_list import copy_finished, save_plan
from tfstudy.launchers.retry import retry_jobs
from tfstudy.launchers.run_time import estimates
from tfstudy.launchers.supervisor import supervise
from tfstudy.report.grid_forecast import Forecast, forecast, outdated_lines, unmeasured_lines
from tfstudy.report.grid_progress import BatchProgress
from tfstudy.report.markup import plural
from tfstudy.report.slurm_jobs import detached_lines, queue_lines
from tfstudy.report.terminal import coloured, columns, show_lines
from tfstudy.report.varying import varying_settings
from tfstudy.runs.status import FAILED, INTERRUPTED, RunStatus, study_runs


def run_grid(
    grid: Tree, study: Path, settings: ExecutorSettings, smoke: bool = False, shard: str = "", fail_fast: bool = False
) -> int:
    """Run the jobs of a grid that are not finished; return 1 if a run failed, otherwise 0."""
    with _recorded_batch(grid, study, settings, smoke, shard) as batch:
        if settings.launcher == "slurm":
            print("".join(f"{line}; Ctrl-C leaves them there\n" for line in queue_lines(study)), end="", flush=True)
        return run_batch(batch, fail_fast)


def detach_grid(grid: Tree, study: Path, settings: ExecutorSettings, smoke: bool = False, shard: str = "") -> None:
    """Submit the jobs of a grid that are not finished to the queue of the launcher, and leave them there."""
    with _recorded_batch(grid, study, settings, smoke, shard) as batch:
        _print_notes(batch)
        print("\n".join(detached_lines(batch.executor.detach(batch.pending), study)))


@contextmanager
def _recorded_batch(grid: Tree, study: Path, settings: ExecutorSettings, smoke: bool, shard: str) -> Iterator[Batch]:
    """Yield the jobs of a grid, whose plan is saved and whose runs in other studies are copied."""
    with grid_batch(grid, study, settings, smoke, shard) as batch:
        save_plan(batch.jobs)
        if copied := copy_finished(batch.pending):
            print(f"{plural(len(copied), 'finished run')} copied from other studies in {study.parent}", flush=True)
        yield batch


def preview_grid(grid: Tree, study: Path, settings: ExecutorSettings, smoke: bool = False, shard: str = "") -> Forecast:
    """Return what `run_grid` would run. No cluster is started: for Ray, the times are for this machine."""
    if settings.launcher == "ray":
        settings = settings._replace(launcher="local")
    with grid_batch(grid, study, settings, smoke, shard) as batch:
        return forecast(batch)


def run_batch(batch: Batch, fail_fast: bool = False) -> int:
    """Run the pending jobs and print their progress and outcome; return 1 if a run failed, otherwise 0."""
    pending, study = batch.pending, f" ({batch.jobs[0].study})" if batch.jobs else ""
    finished = len(batch.jobs) - len(pending)
    runs = plural(len(pending), "run")
    print(f"{runs} to start, {finished} already finished{study}; {batch.executor.describe()}", flush=True)
    _print_notes(batch)
    with BatchProgress(batch) as progress:
        summary = supervise(pending, batch.executor, progress, fail_fast)
    for path, reason in summary.failed.items():
        print(printable(f"failed: {path}: {reason}"), file=sys.stderr)
    if summary.unfinished:
        print(f"stopped after a failure; unfinished runs: {len(summary.unfinished)}", file=sys.stderr)
    return 1 if summary.failed else 0


def _print_notes(batch: Batch) -> None:
    """Print which finished runs are kept though they are outdated, or not measured as asked."""
    notes = [*outdated_lines(batch), *unmeasured_lines(batch)]
    print("".join(f"{line}\n" for line in columns([note] for note in notes)), end="", flush=True)


def retry_study(
    study: Path, settings: ExecutorSettings, dry_run: bool = False, fail_fast: bool = False, online: bool = False
) -> int:
    """Retry the failed and interrupted runs of a study on this machine; return 1 if one failed or was skipped.

    With `dry_run`, print them and run nothing. Data that a config names on the hub are loaded only with `online`.
    """
    broken = [run for run in study_runs(study) if run.state in (FAILED, INTERRUPTED)]
    if not broken:
        print(f"{study}: no failed or interrupted runs")
        return 0
    device_of(settings.options)  # checks them, for a dry run too
    jobs, skipped = retry_jobs(broken, study.parent, study.name, settings.options, online)
    for name, reason in skipped.items():
        print(f"skipped: {name}: {reason}")
    _show_retries(jobs, broken)
    if dry_run or not jobs:
        return int(bool(skipped))
    with running(settings) as executor:
        jobs = [job._replace(threads=executor.threads) for job in jobs]
        return run_batch(Batch(executor, jobs, estimates(jobs)), fail_fast) or int(bool(skipped))


def _show_retries(jobs: Sequence[Job], broken: Sequence[RunStatus]) -> None:
    """Print a line for each job: its name, what varies between the jobs, and why it is retried."""
    varied = dict(zip((Path(job.path) for job in jobs), varying_settings([job.config for job in jobs]), strict=True))
    shown = [run for run in broken if run.path in varied]
    reasons = [run.reason or f"interrupted after step {run.step} of {run.steps}" for run in shown]
    rows = [(run.state, run.name, varied[run.path], why) for run, why in zip(shown, reasons, strict=True)]
    show_lines(coloured(line) for line in columns(rows, cut=(2,)))
