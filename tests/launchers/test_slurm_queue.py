"""Which runs of a study are in the queue of Slurm, as `status` and the next command find them."""

import os

import pytest

from tests.commands import tfstudy
from tests.example_jobs import executable
from tfstudy.launchers.slurm_queue import forget_jobs, job_states, queued_jobs, record_array, recorded_jobs

ONE, TWO, THREE = (f"copying-copy/lstm/s{seed}-12345678" for seed in range(3))


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study with two arrays, and the `squeue` that shows the file `queue`."""
    monkeypatch.chdir(tmp_path)
    executable(tmp_path / "bin" / "squeue", f"cat {tmp_path}/queue")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (tmp_path / "results" / "s" / ".slurm").mkdir(parents=True)
    study = tmp_path / "results" / "s"
    record_array(study, {ONE: "9_0", TWO: "9_1"})
    record_array(study, {TWO: "10", THREE: "10"})
    return study


def test_the_latest_job_of_a_run_counts(study):
    assert recorded_jobs(study) == {ONE: "9_0", TWO: "10", THREE: "10"}


def test_an_array_is_forgotten_with_its_last_job(study):
    forget_jobs(study, {"9_0"})
    assert recorded_jobs(study) == {TWO: "10", THREE: "10"}
    forget_jobs(study, {"9_1", "10"})
    assert list((study / ".slurm").iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", '{"runs": {"a": "1; rm"}}', '{"runs": {"a": 1}}', "[]", "\\xff"])
def test_damaged_files_and_numbers_that_are_none_are_ignored(study, text):
    (study / ".slurm" / "jobs-10.json").write_text(text)
    assert recorded_jobs(study) == {ONE: "9_0", TWO: "9_1"}


def test_only_jobs_that_slurm_lists_as_alive_are_in_the_queue(study, tmp_path):
    (tmp_path / "queue").write_text("9_0 RUNNING\n10 COMPLETED\n")
    assert queued_jobs(study) == {ONE: ("9_0", "RUNNING")}


@pytest.mark.parametrize(
    ("script", "states"),
    [
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", {}),
        ("echo 'Unable to contact slurm controller' >&2; exit 1", None),
    ],
)
def test_an_unknown_job_is_not_a_slurm_that_does_not_answer(study, tmp_path, script, states):
    executable(tmp_path / "bin" / "squeue", script)
    assert job_states(["9_0"]) == states


def test_status_shows_the_queue(study, tmp_path, capsys):
    (study / ".plans").mkdir()
    (study / ".plans" / "1.json").write_text(f'{{"runs": {{"{ONE}": "default", "{TWO}": "default"}}}}')
    (tmp_path / "queue").write_text("9_0 RUNNING\n10 PENDING\n")
    assert tfstudy("status", "s") == 0
    out = capsys.readouterr().out
    assert "3 runs in the queue of Slurm: 2 pending, 1 running (job 9, 10)" in out
    assert "nothing is running" not in out
    (tmp_path / "queue").write_text("")
    assert tfstudy("status", "s") == 0
    out = capsys.readouterr().out
    assert "Slurm" not in out
    assert "nothing is running" in out
    executable(tmp_path / "bin" / "squeue", "exit 1")
    assert tfstudy("status", "s") == 0
    assert "3 runs submitted to Slurm (job 9, 10); squeue does not answer here" in capsys.readouterr().out
