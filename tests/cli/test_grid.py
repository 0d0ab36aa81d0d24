"""`tfstudy grid` from the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_jobs import COPYING

SETTINGS = {
    "data.train_examples": 200,
    "model.dim": 16,
    "train.steps": 10,
    "train.validation_interval": 10,
    "train.log_interval": 5,
    "eval.max_examples": 20,
}
SMALL = [*(w for k, v in SETTINGS.items() for w in ("--set", f"{k}={v}")), "--accelerator", "cpu"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_dry_run_lists_the_runs_and_writes_nothing(capsys):
    assert tfstudy("grid", "--task", "copying", "--arch", "lstm,cnn", "--seed", "0-1", *SMALL, "--dry-run") == 0
    out = capsys.readouterr().out
    assert out.count("pending") == 4
    assert "4 runs, 0 finished" in out
    assert "no estimate" in out
    assert not list(Path().iterdir())


def test_a_results_folder_that_cannot_be_written_is_one_message(capfd):
    Path("file").write_text("")
    assert tfstudy("grid", "--task", "copying", "--arch", "lstm", *SMALL, "--results", "file") == 2
    out, err = capfd.readouterr()
    assert "error: --results must be a folder, but 'file' is a file" in err
    assert "Traceback" not in out + err


def test_the_devices_of_a_run_are_at_most_those_of_the_machine(capsys):
    assert tfstudy("run", "copying", "--arch", "lstm", *SMALL, "--devices", "9999") == 2
    assert "--devices must be at most " in capsys.readouterr().err


def test_a_study_of_trials_is_a_folder_within_the_results(capsys):
    assert tfstudy("tune", "copying", "--arch", "lstm", "--trials", "1", "--study", "../x") == 2
    assert "'../x'" in capsys.readouterr().err


def test_a_grid_runs_once_and_can_be_estimated_afterwards(capfd):
    words = ["grid", "--task", "copying", "--arch", "lstm", "--seed", "0,2", *SMALL, "--study", "mine"]
    assert tfstudy(*words) == 0
    out = capfd.readouterr().out
    assert "2 runs to start, 0 already finished (results/mine); device: cpu, " in out
    assert "[2/2]" in out
    results = sorted(Path().glob("results/mine/copying-copy/lstm/s*/result.json"))
    assert [json.loads(path.read_text())["seed"] for path in results] == [0, 2]
    before = [path.stat().st_mtime_ns for path in results]
    assert tfstudy(*words) == 0
    assert "0 runs to start, 2 already finished" in capfd.readouterr().out
    assert [path.stat().st_mtime_ns for path in results] == before
    assert tfstudy(*words[:-2], "--study", "other", "--dry-run", "--seed", "0-2") == 0
    out = capfd.readouterr().out
    assert "estimated from finished runs" in out
    assert tfstudy(*words[:-1], "other") == 0
    assert "2 finished runs copied from other studies" in capfd.readouterr().out


@pytest.mark.parametrize("devices", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_another_copy_of_the_code_in_the_working_folder_is_not_run(devices, tmp_path):
    for name in ("tfstudy", "tasks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('the wrong copy')")
    words = ["grid", "--task", "copying", "--arch", "lstm", "--devices", devices, *SMALL]
    program = [str(Path(sys.executable).with_name("tfstudy")), *words]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(tmp_path.glob("results/*/*/lstm/*/result.json"))) == 1


def test_a_failed_run_is_named_and_the_others_run(capfd, tmp_path):
    grid = {**COPYING, "axes": {"arch": ["lstm"], "train.learning_rate": [1e-3]}, "seeds": "0-1"}
    Path("grid.yaml").write_text(json.dumps(grid))
    assert tfstudy("grid", "grid.yaml", "--accelerator", "cpu", "--dry-run") == 0
    name = next(line.split()[-1] for line in capfd.readouterr().out.splitlines() if "/s1-" in line)
    broken = Path("results/grid", name)
    (broken / "metrics.csv").mkdir(parents=True)  # which can't be written
    assert tfstudy("grid", "grid.yaml", "--accelerator", "cpu") == 1
    out, err = capfd.readouterr()
    assert f"failed: {broken}" in err
    assert "[2/2]" in out
    assert json.loads((broken / "failed.json").read_text())["reason"] == "exit code 1"
    assert len(list(Path().glob("results/grid/*/*/s0*/result.json"))) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--task", "copyin"], "unknown task"),
        (["scam"], "unknown grid"),
        (["missing.yaml"], "can't read missing.yaml"),
        ([], "a grid needs a task"),
        (["--task", "copying", "--seed", "x"], "'x'"),
        (["--task", "copying", "--set", "model.dmi=3,4"], "did you mean 'model.dim'?"),
        (["--task", "copying", "--per-device", "0"], "--per-device"),
        (["--task", "copying", "--shard", "3/2"], "--shard"),
        (["--task", "copying", "--launcher", "lokal"], "did you mean 'local'"),
        (["smoke", "--tier", "large"], "unknown tier 'large'"),
        (["--task", "copying", "--accelerator", "cuda"], "no CUDA device"),
    ],
)
def test_invalid_input_is_one_message_and_writes_nothing(words, message, capsys):
    assert tfstudy("grid", *words, "--dry-run") == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["--study", "a/b"], "'a/b'"),
        (["--study", ".."], "'..'"),
        (["--slurm", "partition=gpu"], "--launcher slurm"),
        (["--set", "seed=x"], "'x'"),
    ],
)
def test_impossible_options_are_refused_before_anything_is_written(words, fact, capsys):
    assert tfstudy("grid", "--task", "copying", *SMALL, *words) == 2
    assert fact in capsys.readouterr().err
    assert not list(Path().iterdir())


def test_seeds_can_be_set_like_any_axis(capsys):
    assert tfstudy("grid", "--task", "copying", *SMALL, "--set", "seed=3,5", "--dry-run") == 0
    out = capsys.readouterr().out
    assert "s3-" in out
    assert "s5-" in out


def test_a_broken_file_of_another_task_stops_no_process(tmp_path):
    (tmp_path / "broken.py").write_text("raise ValueError('half written')\n")
    words = f"from tfstudy import tasks; tasks.__path__.append({str(tmp_path)!r}); assert 'broken' in tasks.names()"
    words += "; import tfstudy.launchers.preload"
    subprocess.run([sys.executable, "-c", words], check=True, cwd=Path(__file__).parents[2])
