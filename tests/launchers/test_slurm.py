"""What is submitted to Slurm, and what a job does on its node; `test_clusters.py` starts a real cluster."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.commands import refused, tfstudy
from tests.example_jobs import executable
from tfstudy.errors import UserError
from tfstudy.experiment.api import RunOptions
from tfstudy.launchers import slurm
from tfstudy.launchers.job import BUSY, FAILED, REFUSED, SUCCEEDED, Job
from tfstudy.launchers.slurm import Work, check_private, parameters
from tfstudy.runs.store import open_run

GRID = ("grid", "--task", "copying", "--arch", "lstm", "--seed", "0-2", "--accelerator", "cpu")
SLURM = (*GRID, "--launcher", "slurm")
pytestmark = pytest.mark.usefixtures("empty_folder")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*SLURM, "--slurm", "--nice=1"], "--slurm must be an option of sbatch without its dashes"),
        ([*SLURM, "--slurm", "nice=1\n#SBATCH"], "must be an option of sbatch"),
        ([*SLURM, "--slurm", "time=2-00:00"], "--slurm time must be a number of minutes from 1, but is '2-00:00'"),
        ([*SLURM, "--slurm", "output=x"], "can't set 'output', which tfstudy sets itself"),
        ([*SLURM, "--per-device", "2"], "--per-device does not apply to Slurm"),
        ([*GRID, "--launcher", "ray", "--slurm", "mem=1G"], "--slurm needs --launcher slurm, but --launcher is 'ray'"),
    ],
)
def test_an_invalid_request_is_one_line_with_exit_code_2(words, message, capsys, tmp_path):
    assert message in refused(capsys, *words)


def test_submitit_and_slurm_must_be_there(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "submitit", type(sys)("submitit"))
    monkeypatch.setenv("PATH", "")
    assert tfstudy(*SLURM) == 2
    assert "sbatch not found" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert tfstudy(*SLURM) == 2
    assert capsys.readouterr().err.endswith("pip install submitit\n")


def test_all_unfinished_runs_are_one_array_and_the_command_ends(tmp_path, monkeypatch, capsys):
    pytest.importorskip("submitit")
    executable(tmp_path / "bin" / "sbatch", f"cp $1 {tmp_path}/script; echo Submitted batch job 4711")
    executable(tmp_path / "bin" / "srun", "")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    written = ("time=30", "mem=16G", "cpus-per-task=8", "partition=gpu", "exclusive")
    words = [word for one in (*written, "array-parallelism=2", "setup=x y") for word in ("--slurm", one)]
    assert tfstudy(*SLURM, *words, "--study", "s") == 0
    assert capsys.readouterr().out.splitlines() == [
        "3 runs submitted to Slurm as job 4711, 0 already finished (results/s)",
        "to watch:  tfstudy status s; squeue --job 4711",
        "to cancel: scancel 4711",
    ]
    script = (tmp_path / "script").read_text()
    for line in (*written, "array=0-2%2", "requeue"):
        assert f"#SBATCH --{line}\n" in script
    assert "\nx y\n" in script
    for words, gres in (((), "gpu:1"), (("gres=shard:1",), "shard:1")):
        found = parameters(words, RunOptions(accelerator="cuda"))["slurm_additional_parameters"]
        assert found == {"requeue": True, "gres": gres}
    assert len(list(Path("results/s/.slurm").glob("4711_*_submitted.pkl"))) == 3
    assert Path("results/s/.slurm").stat().st_mode & 0o777 == 0o700
    executable(tmp_path / "bin" / "sbatch", "echo 'sbatch: error: invalid partition specified: gpu' >&2; exit 1")
    assert tfstudy(*SLURM) == 2
    assert capsys.readouterr().err.endswith("--launcher slurm: sbatch: error: invalid partition specified: gpu\n")


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_of_pickles_that_others_can_write_is_refused(tmp_path, mode):
    check_private(tmp_path / "study/.slurm")
    (tmp_path / "study/.slurm").chmod(mode)
    with pytest.raises(UserError, match="writable by you only"):
        check_private(tmp_path / "study/.slurm")


@pytest.mark.parametrize(
    ("codes", "left", "reason", "attempts"),
    [
        ([FAILED, SUCCEEDED], 0, None, 0),
        ([FAILED, -9, SUCCEEDED], 1, "ended by signal 9", 2),
        ([REFUSED, SUCCEEDED], 1, "refused: see its log", 1),
        ([BUSY, SUCCEEDED], 1, None, 0),  # it runs in another job
    ],
)
def test_a_run_that_fails_is_retried_once_in_its_job_and_then_says_why_in_its_folder(
    codes, left, reason, attempts, tmp_path, monkeypatch
):
    job = Job(str(tmp_path / "results/s/copying-copy/lstm/s0-12345678"), {})
    monkeypatch.setattr(slurm, "execute", lambda *_: (codes.pop(0), ""))
    monkeypatch.setattr(slurm, "SIGNAL_DELAY", 0.0)
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match=f"s0-12345678 failed: {reason}") if reason else contextlib.nullcontext():
        Work(job, ".")()
    signal.signal(signal.SIGTERM, handler)
    failure = open_run(Path(job.path)).failure
    assert (failure and failure.reason, failure.attempts if failure else 0) == (reason, attempts)
    assert len(codes) == left
