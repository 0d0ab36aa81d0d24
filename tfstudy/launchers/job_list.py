"""The jobs of a grid: their shards, runs copied from other studies, and order."""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from tfstudy.errors import UserError, quoted
from tfstudy.experiment.options import RunOptions
from tfstudy.grids.plan import PlannedRun
from tfstudy.launchers.job import Job
from tfstudy.plugins import files as plugin_files
from tfstudy.runs.files import is_locked, write_atomically
from tfstudy.runs.find import studies
from tfstudy.runs.pack import write_files
from tfstudy.runs.reader import is_finished
from tfstudy.runs.status import PLANS
from tfstudy.runs.studyfile import exists, packed_in


def jobs_of(runs: Sequence[PlannedRun], options: RunOptions, threads: int = 1) -> list[Job]:
    """Return one job for each run."""
    plugins = tuple(map(str, plugin_files()))
    return [
        Job(str(run.path), run.config.model_dump(mode="json"), options._replace(preset=run.preset), threads, plugins)
        for run in runs
    ]


def shard_of(jobs: Sequence[Job], shard: str) -> list[Job]:
    """Return every N-th job from the I-th of a shard `I/N`; all shards together hold all jobs, each once."""
    if not shard:
        return list(jobs)
    match = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", shard)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UserError(f"--shard must be I/N with 1 <= I <= N, such as 1/4, but is {quoted(shard)}")
    return list(jobs)[int(match[1]) - 1 :: int(match[2])]


def copy_finished(jobs: Sequence[Job]) -> list[Job]:
    """Copy runs that another study in the same results folder has finished; return their jobs.

    The name of a run contains its hash, so the run of the same name in another study is the same run. Checkpoints are
    linked instead of copied.
    """
    return [job for job in jobs if _copy_run(job)]


def _copy_run(job: Job) -> bool:
    path = Path(job.path)
    if exists(path):  # started in this study
        return False
    copies = (job.study.parent / study / job.name for study in studies(job.study.parent))
    source = next(filter(is_finished, copies), None)
    if not source or is_locked(source):
        return False
    copy = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if packed_in(source):
            write_files(source, copy)
        else:
            shutil.copytree(source, copy, copy_function=_copy_file, ignore=shutil.ignore_patterns(".*"))
        with (copy / "train.log").open("a") as log:
            log.write(f"copied from {source}\n")
        copy.rename(path)
    except OSError:  # another process of the grid was faster, or the disk is full, which the run will report
        shutil.rmtree(copy, ignore_errors=True)
    return job.finished


def _copy_file(source: str, target: str) -> None:
    if source.endswith(".ckpt"):  # checkpoints are replaced, never changed
        with contextlib.suppress(OSError):  # the file system has no links, or the target is on another one
            os.link(source, target)
            return
    shutil.copy2(source, target)


def save_plan(jobs: Sequence[Job]) -> None:
    """Write the planned runs into the study's folder, so that `tfstudy status` shows those that have not started.

    A plan of the same configs is replaced: after a change of code its runs have other names. `UserError` if the folder
    can't be written.
    """
    if not jobs:
        return
    digest = hashlib.sha256(json.dumps([job.config for job in jobs], sort_keys=True).encode()).hexdigest()[:8]
    presets = {job.name: job.options.preset for job in jobs}
    plans = jobs[0].study / PLANS
    try:
        plans.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # another process of the same grid wrote the same just now
            write_atomically(plans / f"{digest}.json", json.dumps({"runs": presets}, indent=0).encode())
    except OSError as error:
        raise UserError(f"can't write to {jobs[0].study}: {error.strerror}") from None


def longest_first(jobs: Sequence[Job], seconds: dict[str, float]) -> list[Job]:
    """Return the jobs by estimated time, longest first; jobs without an estimate come before all others."""
    return sorted(jobs, key=lambda job: -seconds.get(job.path, float("inf")))
