"""A job as a program of its own, on the node of a cluster: its environment, exit code, last line and timeout."""

import os
import sys
import time
from pathlib import Path

import pytest

from tests.example_jobs import executable
from tfstudy.launchers.job import FAILED, SUCCEEDED, Job
from tfstudy.launchers.processes import execute, without_cluster

JOB = Job("results/s/copying-copy/lstm/s0-12345678", {})


@pytest.fixture
def python(tmp_path, monkeypatch):
    """Let the program be this shell script."""
    return lambda text: monkeypatch.setattr(sys, "executable", str(executable(tmp_path / "python", text)))


def test_what_slurm_and_other_launchers_leave_is_kept_from_a_run():
    kept = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "1"}
    foreign = {"SLURM_NTASKS": "1", "SLURM_JOB_ID": "7", "MASTER_PORT": "1", "LOCAL_RANK": "1", "PMI_RANK": "0"}
    assert without_cluster(kept | foreign) == kept


def test_a_program_says_how_it_ended_and_what_it_said_last(python, tmp_path):
    python("echo one; echo two >&2; exit 3")
    assert execute(JOB, str(tmp_path)) == (3, "two")
    python("echo one; exit 0")
    assert execute(JOB, str(tmp_path)) == (SUCCEEDED, "")
    code, reason = execute(JOB, "/nowhere")
    assert (code, "/nowhere" in reason) == (FAILED, True)
    assert reason.startswith(f"can't be started on {os.uname().nodename}: ")


def test_a_program_that_takes_too_long_is_ended_with_all_that_it_started(python, tmp_path):
    python('sleep 60 & echo $! > "$PWD/child"; wait')
    code, reason = execute(JOB, str(tmp_path), timeout=0.5)
    assert code < 0
    assert reason == "took longer than the timeout of 0.5 s"
    child = Path("/proc") / (tmp_path / "child").read_text().strip()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and child.exists() and (child / "stat").read_text().split()[2] != "Z":
        time.sleep(0.02)
    assert not child.exists() or (child / "stat").read_text().split()[2] == "Z"


def test_a_program_has_a_group_of_its_own_and_the_session_of_its_launcher(python, tmp_path):
    python("cut -d ' ' -f 1,5,6 /proc/$$/stat; exit 1")
    process, group, session = map(int, execute(JOB, str(tmp_path))[1].split())
    assert (group, session) == (process, os.getsid(0))
