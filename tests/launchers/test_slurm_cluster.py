"""A Slurm cluster of two nodes, running on this machine, that loses a node. `make engines`."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launchers.cluster_grids import (
    assert_no_process_is_left,
    assert_same,
    command_line,
    grid,
    installed,
    kill,
    local,
    output_of,
    parent,
    processes,
    resumed,
    start,
    unfinished_run,
    wait_for,
)

__all__ = ["local"]  # a fixture

pytestmark = pytest.mark.slow
SLURM = Path(__file__).parent / "slurm.sh"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """The folder of a running Slurm of two nodes."""
    if not installed("submitit"):
        pytest.skip("submitit is not installed: make engines")
    if os.geteuid() or not shutil.which("apt-get"):
        pytest.skip("Slurm is set up by root, from Debian's packages")
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        try:
            subprocess.run([SLURM, "up", folder], check=True)
            yield Path(folder)
        finally:
            subprocess.run([SLURM, "down", folder], check=True)
            Path(folder).mkdir(exist_ok=True)


@pytest.fixture
def path(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cluster, with its commands on the path."""
    monkeypatch.setenv("PATH", f"{cluster}/bin:{os.environ['PATH']}")
    return cluster


def slurm_variable(process: int, key: str) -> str:
    """A variable that Slurm set for a process or for one of its parents; the run itself does not have it."""
    while process > 1:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/environ").read_text(errors="replace").split("\0"):
                if line.startswith(f"{key}="):
                    return line.partition("=")[2]
        process = parent(process)
    return ""


def number_of(process: int) -> str:
    return "_".join(slurm_variable(process, f"SLURM_ARRAY_{part}_ID") for part in ("JOB", "TASK"))


def lose(cluster: Path, node: str) -> None:
    """Kill everything on a node at once: its daemon, the daemons of its jobs, and the jobs."""
    kill(int((cluster / "run" / f"{node}.pid").read_text()))
    jobs = processes(lambda number: slurm_variable(number, "SLURMD_NODENAME") == node)
    parents = {parent(number) for number in jobs}
    daemons = processes(lambda number: number in parents and "slurmstepd" in command_line(number)[0])
    for process in [*daemons, *jobs]:
        kill(process)


def queue() -> list[str]:
    """The running and pending jobs of Slurm."""
    return subprocess.run(["squeue", "--noheader"], check=True, capture_output=True, text=True).stdout.splitlines()


def ended() -> None:
    """Wait until all jobs have left the queue."""
    wait_for(lambda: not queue(), 300)


def submitted(words: list[str]) -> str:
    """Submit a grid, whose command ends; return the number of its job."""
    out = output_of(start(words))
    [line] = [line for line in out.splitlines() if "submitted to Slurm" in line]
    return line.split("as job ")[1].split(",")[0]


def test_an_array_that_loses_a_node_and_requeues_a_job_ends_as_a_grid_of_one_machine(path, local, tmp_path):
    submitted(grid(tmp_path, "--launcher", "slurm"))
    run, requeued = unfinished_run(tmp_path)
    subprocess.run(["scontrol", "requeue", number_of(run)], check=True)
    wait_for(lambda: not processes(lambda number: number == run), 30)
    run, lost = unfinished_run(tmp_path)
    lose(path, slurm_variable(run, "SLURMD_NODENAME"))
    ended()
    assert resumed(requeued)
    assert resumed(lost)
    assert_same(tmp_path, local())
    assert_no_process_is_left(tmp_path)
    assert not list(tmp_path.glob("s/*/*/*/failed.json")), "neither is a failure of a run"


def test_a_second_submission_does_no_harm(path, local, tmp_path):
    words = grid(tmp_path, "--launcher", "slurm", "--slurm", "mem=500M", "--slurm", "comment=two words")
    words += ["--slurm", "array-parallelism=1", "--slurm", "setup=export FROM_SETUP='a b'"]
    assert submitted(words) != submitted(words)
    run, _ = unfinished_run(tmp_path)
    assert slurm_variable(run, "FROM_SETUP") == "a b"
    job = subprocess.run(["scontrol", "show", "job", number_of(run)], check=True, capture_output=True, text=True).stdout
    assert "Comment=two words" in job
    assert "MinMemoryNode=500M" in job
    ended()
    assert_same(tmp_path, local())
    logs = [log.read_text() for log in tmp_path.glob("s/*/*/*/train.log")]
    assert all(text.count("parameters, seed") == 1 and "resumed" not in text for text in logs), "each was trained once"
    assert "all 4 runs already finished" in output_of(start(words))


def test_a_cancelled_run_resumes_with_the_next_job_and_after_its_time_limit(path, local, tmp_path):
    words = grid(tmp_path, "--launcher", "slurm", seeds="0")
    number = submitted(words)
    unfinished_run(tmp_path)
    subprocess.run(["scancel", number], check=True)
    assert_no_process_is_left(tmp_path)
    ended()
    number = submitted(words)
    run, path = unfinished_run(tmp_path)
    subprocess.run(["scancel", "--signal=USR2", number], check=True)  # what Slurm sends before the time limit
    wait_for(lambda: not processes(lambda number: number == run), 30)
    ended()
    assert (path / "train.log").read_text().count("resumed after step") == 2
    assert_same(tmp_path, local("--seed", "0"))


def test_a_run_on_two_devices_trains_on_all_of_its_data_under_slurm(path, local, tmp_path):
    words = ("--devices", "2", "--seed", "0", "--set", "train.steps=50")
    submitted(grid(tmp_path, "--launcher", "slurm", *words))
    ended()
    assert_same(tmp_path, local(*words))
