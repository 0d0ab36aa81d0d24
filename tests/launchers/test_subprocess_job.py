"""A job as a separate process: its environment, exit code, last line and timeout."""

import os
import sys
import time
from pathlib import Path

import pytest

from tests.example_jobs import executable
from tfstudy.launchers import subprocess_job
from tfstudy.launchers.job import FAILED, SUCCEEDED, Job


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "results" / "s" / "copying-copy" / "lstm" / "s0-12345678"
    path.mkdir(parents=True)
    return Job(str(path), {})


def test_what_slurm_and_other_launchers_leave_is_kept_from_a_run():
    kept = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "1"}
    foreign = {"SLURM_NTASKS": "1", "SLURM_JOB_ID": "7", "MASTER_PORT": "1", "LOCAL_RANK": "1", "PMI_RANK": "0"}
    assert subprocess_job.without_cluster(kept | foreign) == kept


def test_a_program_says_how_it_ended_and_what_it_said_last(job, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(executable(tmp_path / "python", "echo one; echo two >&2; exit 3")))
    assert subprocess_job.execute(job, str(tmp_path)) == (3, "two")
    monkeypatch.setattr(sys, "executable", str(executable(tmp_path / "python", "echo one; exit 0")))
    assert subprocess_job.execute(job, str(tmp_path)) == (SUCCEEDED, "")


def test_a_program_that_takes_too_long_is_ended_with_all_that_it_started(job, tmp_path, monkeypatch):
    script = executable(tmp_path / "python", 'sleep 60 & echo $! > "$PWD/child"; wait')
    monkeypatch.setattr(sys, "executable", str(script))
    code, reason = subprocess_job.execute(job, str(tmp_path), timeout=0.5)
    assert code < 0
    assert reason == "took longer than the timeout of 0.5 s"
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)


def test_a_program_has_a_group_of_its_own_and_the_session_of_its_launcher(job, tmp_path, monkeypatch):
    script = executable(tmp_path / "python", "cut -d ' ' -f 1,5,6 /proc/$$/stat; exit 1")
    monkeypatch.setattr(sys, "executable", str(script))
    _, last = subprocess_job.execute(job, str(tmp_path))
    process, group, session = map(int, last.split())
    assert (group, session) == (process, os.getsid(0))


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_folder_that_a_node_does_not_have_is_named(job):
    code, reason = subprocess_job.execute(job, "/nowhere")
    assert code == FAILED
    assert reason.startswith(f"can't be started on {os.uname().nodename}: ")
    assert "/nowhere" in reason
