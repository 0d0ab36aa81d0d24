"""The jobs of a grid on an executor: which are finished, which run, and how long they will take."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tfstudy.config.trees import Tree
from tfstudy.experiment.code_versions import outdated_runs
from tfstudy.grids.expand import expand
from tfstudy.grids.plan import plan
from tfstudy.launchers import Executor, ExecutorSettings, executor
from tfstudy.launchers.job import Job
from tfstudy.launchers.job_list import jobs_of, longest_first, shard_of
from tfstudy.launchers.process_control import exit_on_sigterm
from tfstudy.launchers.run_time import estimates


class Batch(NamedTuple):
    """Jobs on an executor."""

    executor: Executor
    jobs: list[Job]  # in the order of the grid
    seconds: dict[str, float]  # estimated, by path
    outdated: Mapping[Path, list[str]] = {}  # finished runs of the same settings by older code, with the reasons

    @property
    def finished(self) -> list[Job]:
        """The jobs that have their result."""
        return [job for job in self.jobs if job.finished]

    @property
    def pending(self) -> list[Job]:
        """The other jobs, the longest first."""
        return longest_first([job for job in self.jobs if not job.finished], self.seconds)


@contextmanager
def running(settings: ExecutorSettings) -> Iterator[Executor]:
    """Yield an executor, which is stopped at the end of the block, also after SIGTERM."""
    started = executor(settings)
    with exit_on_sigterm():
        try:
            yield started
        finally:
            started.stop()


@contextmanager
def grid_batch(
    grid: Tree, study: Path, settings: ExecutorSettings, smoke: bool = False, shard: str = ""
) -> Iterator[Batch]:
    """Yield the jobs of a grid, or of one of its shards, whose runs are in the folder `study`."""
    shard_of((), shard)  # checks it before anything else
    with running(settings) as started:
        planned = plan(expand(grid, smoke), study.parent, study.name)
        jobs = shard_of(jobs_of(planned, settings.options, started.threads), shard)
        outdated = outdated_runs((run.path, run.identity) for run in planned)
        yield Batch(started, jobs, estimates(jobs), outdated)
