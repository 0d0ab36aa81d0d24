"""The jobs of a grid, of a search or of what a study has left, and how long they will take."""

import contextlib
import hashlib
import json
import math
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from tfstudy.config.resolve import check_local, resolve
from tfstudy.config.trees import Tree, flatten
from tfstudy.errors import UserError
from tfstudy.experiment.api import DEFAULTS, RunOptions
from tfstudy.grids.expand import GridRun, PlannedRun, expand, plan
from tfstudy.grids.fairness import Contender, unequal_terms
from tfstudy.launchers import Executor, ExecutorSettings
from tfstudy.launchers.job import Job
from tfstudy.plugins import files as plugin_files
from tfstudy.runs.files import study_zips, write_atomically
from tfstudy.runs.find import PLANS, Plan, RunStatus, find_runs, read_plan
from tfstudy.runs.store import has_result, open_run, read_config, read_result

READ = 200  # finished runs that are read for an estimate
RunTime = tuple[frozenset[tuple[str, str]], float, float]  # settings, seconds a step and of the evaluation
CHANGED = (
    "its config.yaml, data or code have changed since, so it would be another run (see `tfstudy result RUN --changes`)"
)


class Batch(NamedTuple):
    """Jobs of one study."""

    jobs: list[Job]  # in the order of the grid
    seconds: dict[str, float]  # estimated, by path
    unequal: Sequence[str] = ()  # lines on architectures that are not compared on equal terms

    @property
    def pending(self) -> list[Job]:
        """The jobs that have no result yet, the longest first."""
        pending = [job for job in self.jobs if not job.finished]  # those without an estimate come before all others
        return sorted(pending, key=lambda job: -self.seconds.get(job.path, math.inf))


@contextmanager
def running(settings: ExecutorSettings) -> Iterator[Executor]:
    """Yield the executor of a launcher, local or ray, which is stopped at the end of the block, also after SIGTERM."""
    if settings.launcher == "ray":
        from tfstudy.launchers.ray import Ray

        started: Executor = Ray(settings)
    else:
        from tfstudy.launchers.local import local

        started = local(settings)
    handler = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield started
    finally:
        started.stop()
        signal.signal(signal.SIGTERM, handler)


def grid_batch(grid: Tree, study: Path, options: RunOptions, threads: int, smoke: bool = False) -> Batch:
    """Return the jobs of a grid whose runs are in the folder `study`."""
    study_zips(study, strict=True)  # where its finished runs may be
    planned = plan(expand(grid, smoke), study.parent, study.name)
    jobs = jobs_of(planned, options, threads)
    contenders = []
    for config, preset, *_, parameters in planned:
        settings = flatten(config.model_dump(mode="json"))
        contenders.append(Contender(f"{config.task} {config.data.split}", config.arch, settings, parameters, preset))
    return Batch(jobs, estimates(jobs), unequal_terms(contenders))


def jobs_of(runs: Sequence[PlannedRun], options: RunOptions, threads: int = 1) -> list[Job]:
    """Return one job for each run."""
    plugins = tuple(map(str, plugin_files()))
    return [
        Job(str(run.path), run.config.model_dump(mode="json"), options._replace(preset=run.preset), threads, plugins)
        for run in runs
    ]


def save_plan(jobs: Sequence[Job]) -> None:
    """Write the planned runs into the study's folder, so that those that have not started are shown and can be resumed.

    A plan of the same configs is replaced: after a change of code its runs have other names. `UserError` if the folder
    can't be written.
    """
    if not jobs:
        return
    digest = hashlib.sha256(json.dumps([job.config for job in jobs], sort_keys=True).encode()).hexdigest()[:8]
    presets = {job.name: job.options.preset for job in jobs}
    saved = Plan(presets, {job.name: job.config for job in jobs})
    plans = jobs[0].study / PLANS
    try:
        plans.mkdir(parents=True, exist_ok=True)
        write_atomically(plans / f"{digest}.json", msgspec.json.encode(saved))
    except OSError as error:
        raise UserError(f"can't write to {jobs[0].study}: {error.strerror}") from None


def estimates(jobs: Sequence[Job]) -> dict[str, float]:
    """Return the estimated seconds of jobs by path; a job is left out if no run of its task and architecture finished.

    These are medians over the runs that differ from the job in the fewest settings, whatever the seed and the steps.
    """
    found: dict[tuple[str, str], list[RunTime]] = {}
    seconds = {}
    for job in jobs:
        kind = str(job.config["task"]), str(job.config["arch"])
        if kind not in found:
            found[kind] = list(islice(_run_times(job.study.parent, *kind), READ))
        own = _settings(job.config)
        differences = [len(own ^ settings) for settings, *_ in found[kind]]
        nearest = [run for run, n in zip(found[kind], differences, strict=True) if n == min(differences)]
        if nearest:
            _, per_step, evaluation = zip(*nearest, strict=True)
            seconds[job.path] = job.config["train"]["steps"] * median(per_step) + median(evaluation)
    return seconds


def _settings(config: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Settings that can change the time of a step or of an evaluation; values as text, since some are lists."""
    return frozenset((k, str(value)) for k, value in flatten(config).items() if k not in ("seed", "train.steps"))


def _run_times(root: Path, task: str, arch: str) -> Iterator[RunTime]:
    for path in find_runs(root):
        if path.parent.name == arch and path.parents[1].name.startswith(f"{task}-") and has_result(path):
            with contextlib.suppress(UserError, KeyError, TypeError, ValueError):  # a damaged run, or an older one
                result, config = read_result(path), read_config(path)
                steps = int(config["train"]["steps"])  # the result has the step of the weights that were evaluated
                if result.status == "finished" and steps > 0:
                    yield _settings(config), result.train_seconds / steps, result.evaluate_seconds


def resumed_jobs(
    runs: Sequence[RunStatus], root: Path, study: str, options: RunOptions = DEFAULTS, online: bool = False
) -> tuple[list[Job], dict[str, str]]:
    """Return a job for each run of a study that can be resumed, and the names of the others, each with the reason.

    A run that started has its config in its folder, and one that did not in the plan of its grid. Both may
    come from somebody else: data on the hub are loaded only with `online`, and a run must have the hash in its name.
    """
    planned, skipped = read_plan(root / study), dict[str, str]()
    jobs: list[Job] = []
    data: dict[str, Any] = {}  # which are built once for all runs that share them
    for run in runs:
        try:
            opened, config = open_run(run.path), planned.configs.get(run.name)
            start = opened.last_start
            if opened.broken:
                raise opened.broken
            if start and start.tuning:
                raise UserError("it is a trial of a search; run `tfstudy tune` again")
            if (run.path / "config.yaml").exists():
                config = read_config(run.path)
            if config is None:
                raise UserError("it failed before it had a config.yaml; run the grid again")
            resolved = resolve(config)
            if not online:
                check_local(resolved)
            preset = planned.runs.get(run.name) or (start.preset if start else "default")
            [job] = jobs_of(plan([GridRun(resolved, preset)], root, study, data), options)
            if job.name != run.name:
                raise UserError(CHANGED)
            jobs.append(job)
        except UserError as error:
            skipped[run.name] = str(error)
    return jobs, skipped
