"""Cohorts in the process of the tests, and tiny runs of all architectures for them."""

from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

from tests.example_jobs import planned
from tfstudy import models
from tfstudy.launchers.cohort_process import Ended, train_member
from tfstudy.launchers.job import Job
from tfstudy.training.cohort import Cohort

BASE = {
    "task": "copying",
    "data": {"train_examples": 60, "eval_examples": 16, "train_length": "2-5", "test_length": "6-7"},
    "train": {"steps": 12, "validation_interval": 4, "log_interval": 4, "batch_size": 8, "warmup_steps": 2},
    "eval": {"max_examples": 16},
}


def grid(*archs: str, seeds: str = "0", steps: int = 12, **axes: object) -> dict:
    """Runs of tiny models with dropout and three checkpoints."""
    sizes = [{"when": {"arch": arch}, "base": {"model": {**models.find(arch).small, "dropout": 0.3}}} for arch in archs]
    base = {**BASE, "train": {**BASE["train"], "steps": steps}}
    return {"base": base, "axes": {"arch": list(archs), **axes}, "per": sizes, "seeds": seeds}


class Recorder:
    """What a process of a cohort would send to its launcher."""

    def __init__(self) -> None:
        self.sent: list[Ended] = []

    def send(self, ended: Ended) -> None:
        self.sent.append(ended)


def train_together(jobs: list[Job], cuda: bool = False) -> list[Ended]:
    """Train the jobs as one cohort, and return how they ended."""
    recorder = Recorder()
    with (
        open(1, "w", closefd=False) as out,
        open(2, "w", closefd=False) as errors,
        redirect_stdout(out),
        redirect_stderr(errors),  # pytest's own streams would not follow their file descriptors
    ):
        cohort = Cohort(cuda=cuda)
        for thread in [cohort.start(partial(train_member, job, recorder), len(jobs)) for job in jobs]:
            thread.join()
    return recorder.sent


def by_seed(ended: list[Ended]) -> dict[str, int]:
    """The exit codes by seed, such as s3."""
    return {Path(end.path).name[:2]: end.code for end in ended}


def train_alone(root: Path, runs: dict) -> None:
    """Train each run of a grid as `tfstudy run` does."""
    from tfstudy.config.resolve import resolve
    from tfstudy.experiment.run import run

    for job in planned(root, runs):
        run(resolve(job.config), root, "study", job.options, report=lambda _: None)
