"""What `tfstudy grid --detach` prints, and what the same command does later."""

import os
from pathlib import Path

import pytest

from tests.example_jobs import COPYING, executable, planned
from tests.launchers.test_slurm import Submitit
from tfstudy.console.grids import detach_grid
from tfstudy.experiment.options import RunOptions
from tfstudy.launchers import Detached, ExecutorSettings, SlurmRequest, job_batch
from tfstudy.launchers.slurm import Slurm
from tfstudy.launchers.slurm_queue import recorded_jobs
from tfstudy.report.slurm_jobs import arrays, detached_lines
from tfstudy.report.status import status_lines

SETTINGS = ExecutorSettings(slurm=SlurmRequest(array_size=2), options=RunOptions(accelerator="cpu"))
GRID = COPYING | {"seeds": "0-2"}


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A Slurm whose queue is the file `queue`."""
    monkeypatch.chdir(tmp_path)
    executable(tmp_path / "bin" / "squeue", f"cat {tmp_path}/queue")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    Path("queue").write_text("")
    library = Submitit()
    monkeypatch.setattr(job_batch, "executor", lambda *_: Slurm(library, SETTINGS))
    return library


def detach() -> None:
    detach_grid(GRID, Path("results/study"), SETTINGS)


def test_a_grid_is_submitted_and_left_and_not_submitted_again(library, capsys):
    detach()
    assert capsys.readouterr().out.splitlines() == [
        "3 runs submitted to Slurm as job 1, 2",
        "to watch:  tfstudy status study",
        "to wait:   the same command without --detach",
        "to cancel: scancel 1 2",
    ]
    assert set(recorded_jobs(Path("results/study"))) == {job.name for job in planned(Path("results"), GRID)}
    Path("queue").write_text("1_0 RUNNING\n1_1 PENDING\n2_0 PENDING\n")
    detach()
    assert capsys.readouterr().out.splitlines()[:2] == [
        "0 runs submitted to Slurm",
        "3 runs already in the queue as job 1, 2",
    ]
    assert [len(array) for array in library.arrays] == [2, 1]
    assert "3 runs in the queue of Slurm: 2 pending, 1 running (job 1, 2)" in map(
        str, status_lines(Path("results"), "study")
    )


def test_the_request_to_slurm_is_no_part_of_a_run(library):
    detach()
    jobs = [work.job for array in library.arrays for work in array]
    assert [job.path for job in jobs] == [job.path for job in planned(Path("results"), GRID)]
    assert all("slurm" not in job.to_json() for job in jobs)


def test_a_folder_of_results_elsewhere_is_named(tmp_path):
    lines = detached_lines(Detached({"7_0": None}, {}), tmp_path / "other" / "s")
    assert f"to watch:  tfstudy status s --results {tmp_path}/other" in lines
    assert detached_lines(Detached({}, {}), tmp_path / "s") == ["0 runs submitted to Slurm"]


def test_of_many_arrays_the_first_are_named_except_in_the_command_that_cancels_them():
    numbers = [f"{array}_{task}" for array in range(7) for task in range(2)]
    assert arrays(numbers) == "0, 1, 2, 3, 4, and 2 more"
    assert arrays(numbers, " ") == "0 1 2 3 4 5 6"
