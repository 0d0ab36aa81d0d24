"""A Slurm cluster of two nodes, running on this machine, that loses a node. `make engines`."""

import contextlib
import os
import shutil
import signal
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


def test_runs_on_a_slurm_cluster_that_loses_a_node_and_requeues_a_job_equal_those_of_one_machine(path, local, tmp_path):
    process = start(grid(tmp_path, "--launcher", "slurm", "--slurm.at-once", "2"))
    try:
        run, requeued = unfinished_run(tmp_path)
        subprocess.run(["scontrol", "requeue", number_of(run)], check=True)
        wait_for(lambda: not processes(lambda number: number == run), 30)
        run, lost = unfinished_run(tmp_path)
        lose(path, slurm_variable(run, "SLURMD_NODENAME"))
        out = output_of(process)
    finally:
        kill(process.pid)
    assert "will be retried" not in out, "neither is a failure of a run"
    assert resumed(requeued)
    assert resumed(lost)
    assert_same(tmp_path, local())
    assert_no_process_is_left(tmp_path)
    wait_for(lambda: not queue())


def test_the_jobs_of_a_killed_launcher_continue_and_the_next_launcher_waits_for_them(path, local, tmp_path):
    words = grid(tmp_path, "--launcher", "slurm", "--slurm.at-once", "2")
    process = start(words)
    _, running = unfinished_run(tmp_path)
    kill(process.pid)
    process.communicate()
    output_of(start(words))
    assert not resumed(running)
    assert_same(tmp_path, local())
    wait_for(lambda: not queue())
    assert_no_process_is_left(tmp_path)


def test_an_interrupt_cancels_the_jobs_and_the_next_launcher_resumes_them(path, local, tmp_path):
    words = grid(tmp_path, "--launcher", "slurm", "--slurm.at-once", "2")
    process = start(words)
    _, stopped = unfinished_run(tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert_no_process_is_left(tmp_path)
    wait_for(lambda: not queue())
    output_of(start(words))
    assert resumed(stopped)
    assert_same(tmp_path, local())


def test_a_run_on_two_devices_trains_on_all_of_its_data_under_slurm(path, local, tmp_path):
    words = ("--devices", "2", "--seed", "0", "--set", "train.steps=50")
    output_of(start(grid(tmp_path, "--launcher", "slurm", *words)))
    assert_same(tmp_path, local(*words))


def test_detached_jobs_continue_and_the_same_command_waits_for_them(path, local, tmp_path):
    words = grid(tmp_path, "--launcher", "slurm", "--slurm.at-once", "2", "--slurm.array-size", "3")
    words += [
        "--slurm.memory",
        "500M",
        "--slurm.setup",
        "export FROM_SETUP='a b'",
        "--slurm.extra",
        "comment=two words",
    ]
    assert "4 runs submitted to Slurm as job " in output_of(start([*words, "--detach"]))
    again = output_of(start([*words, "--detach"]))
    assert "0 runs submitted to Slurm\n4 runs already in the queue as job " in again
    run, running = unfinished_run(tmp_path)
    assert slurm_variable(run, "FROM_SETUP") == "a b"
    job = subprocess.run(["scontrol", "show", "job", number_of(run)], check=True, capture_output=True, text=True).stdout
    assert "Comment=two words" in job
    assert "MinMemoryNode=500M" in job
    status = subprocess.run([*words[:3], "status", "s", "--results", tmp_path], capture_output=True, text=True)
    assert " in the queue of Slurm: " in status.stdout
    process = start(words)
    wait_for(lambda: (running / "result.json").exists())
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert "Ctrl-C leaves them there" in out
    assert queue(), "what was detached continues"
    assert " 0 already finished" not in output_of(start(words))
    assert_same(tmp_path, local())
    wait_for(lambda: not queue())
    assert not resumed(running)
    assert not list(tmp_path.glob("s/.slurm/jobs-*.json"))
