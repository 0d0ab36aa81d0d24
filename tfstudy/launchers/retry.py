"""Runs that failed or were interrupted, as jobs to retry: their folders hold all that is needed."""

from collections.abc import Sequence
from pathlib import Path

from tfstudy.config.resolve import check_local, resolve
from tfstudy.errors import UserError
from tfstudy.experiment.options import DEFAULTS, RunOptions
from tfstudy.grids.expand import GridRun
from tfstudy.grids.plan import plan
from tfstudy.launchers.job import Job
from tfstudy.launchers.job_list import jobs_of
from tfstudy.runs.reader import read_config, read_progress
from tfstudy.runs.status import RunStatus, planned_runs

CHANGED = "its config.yaml, data or code have changed since, so it would be another run (see `tfstudy why`)"


def retry_jobs(
    runs: Sequence[RunStatus], root: Path, study: str, options: RunOptions = DEFAULTS, online: bool = False
) -> tuple[list[Job], dict[str, str]]:
    """Return a job for each run of a study that can be resumed, and the names of the others, each with the reason.

    Data that a config names on the hub are loaded only with `online`.
    """
    presets, skipped = planned_runs(root / study), dict[str, str]()
    groups: dict[str, dict[str, GridRun]] = {}  # by data, which are built once for all runs of a group
    for run in runs:
        try:
            grid_run = _grid_run(run.path, presets.get(run.name, ""), online)
        except UserError as error:
            skipped[run.name] = str(error)
            continue
        config = grid_run.config
        groups.setdefault(f"{config.task} {config.data.model_dump_json()}", {})[run.name] = grid_run
    jobs: list[Job] = []
    for group in groups.values():
        for name, job in _jobs(group, root, study, options).items():
            if isinstance(job, Job):
                jobs.append(job)
            else:
                skipped[name] = job
    return jobs, skipped


def _grid_run(path: Path, preset: str, online: bool) -> GridRun:
    """The run's config and preset; `UserError` if its folder does not hold them, or its data may not be loaded."""
    if not (path / "config.yaml").exists():
        raise UserError("it failed before it had a config.yaml; run the grid again")
    progress = read_progress(path)
    if progress and progress.tuning:
        raise UserError("it is a trial of a search; run `tfstudy tune` again")
    config = resolve(read_config(path))
    if not online:
        check_local(config)
    return GridRun(config, preset or (progress.preset if progress else "default"))


def _jobs(group: dict[str, GridRun], root: Path, study: str, options: RunOptions) -> dict[str, Job | str]:
    """The job of each run, or why it has none. The runs share their data; an invalid model affects only its own run."""
    try:
        planned = plan(list(group.values()), root, study)
    except UserError as error:
        if len(group) == 1:
            return {name: str(error) for name in group}
        single = [_jobs({name: run}, root, study, options) for name, run in group.items()]
        return {name: job for jobs in single for name, job in jobs.items()}
    jobs = jobs_of(planned, options)
    return {name: job if job.name == name else CHANGED for name, job in zip(group, jobs, strict=True)}
