"""A job: its text on a command line, and its exit codes."""

import errno

import pytest
import torch

from tfstudy.experiment.options import RunOptions
from tfstudy.launchers.job import DISK_FULL, FAILED, OUT_OF_MEMORY, Job, exit_code


def test_a_job_survives_its_text():
    job = Job("r/s/e/a/s0-1", {"seed": 0}, RunOptions("paper", devices=2, loggers=("wandb",), tuning=True), 3)
    assert Job.from_json(job.to_json()) == job
    assert (job.study.name, job.name) == ("s", "e/a/s0-1")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), OUT_OF_MEMORY),
        (torch.OutOfMemoryError("CUDA out of memory"), OUT_OF_MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), OUT_OF_MEMORY),
        (ValueError("the word list is out of memory"), FAILED),
        (OSError(errno.ENOSPC, "No space left on device"), DISK_FULL),
        (OSError(errno.EACCES, "Permission denied"), FAILED),
    ],
)
def test_the_exit_code_follows_from_the_type_of_the_error(error, code):
    assert exit_code(error) == code
