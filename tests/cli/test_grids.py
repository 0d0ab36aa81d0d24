"""`tfstudy grid`: what it would run, what it runs, with which settings, and what it resumes of a study."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_study import planned, start_run
from tfstudy.experiment.api import RunOptions
from tfstudy.launchers.batch import grid_batch, resumed_jobs, save_plan
from tfstudy.runs.find import study_runs
from tfstudy.runs.store import open_run

SETTINGS = {"data.train_examples": 200, "model.dim": 16, "train.steps": 10, "train.validation_interval": 10,
            "train.log_interval": 5, "eval.max_examples": 20}  # fmt: skip
SMALL = [*(w for k, v in SETTINGS.items() for w in ("--set", f"{k}={v}")), "--accelerator", "cpu"]
GRID = ["grid", "--task", "copying", "--arch", "lstm", *SMALL]
RATES = [*GRID, "--seed", "0-1", "--set", "train.learning_rate=1e-3,2e-3"]


def test_a_dry_run_lists_the_runs_with_what_varies_and_writes_nothing(capsys):
    assert tfstudy(*RATES, "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    runs = [line.split() for line in lines if line.startswith("pending")]
    assert [words[-1] for words in runs] == ["learning_rate=0.001"] * 2 + ["learning_rate=0.002"] * 2
    assert all("/lstm/s" in words[1] for words in runs)
    assert lines[-2:] == ["4 runs, 0 finished", "no estimate: no similar run has finished yet"]
    assert tfstudy(*RATES, "--dry-run", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["total"], found["finished"], found["seconds"]) == (4, 0, None)
    assert found["runs"][0].keys() == {"name", "path", "state", "settings", "seconds"}
    assert tfstudy(*GRID, "--set", "seed=3,5", "--dry-run") == 0
    out = capsys.readouterr().out
    assert "s3-" in out, "seeds can be set like any axis"
    assert "s5-" in out
    assert not list(Path().iterdir())


def test_a_grid_says_before_training_what_is_unequal_between_its_architectures():
    """Own sizes and training of one architecture are said in two lines; what varies in the same way for all is not."""

    def said(**more) -> list[str]:
        base = {"task": "sorting", "data": {"train_examples": 50, "eval_examples": 10}, "train": {"steps": 400}}
        grid = {"base": base, "axes": {"arch": ["lstm", "mingru"]}, **more}
        return list(grid_batch(grid, Path("results/s"), RunOptions(), 1).unequal)

    untuned = "architectures differ in training: learning rate its own (lstm), that of transformer (mingru)"
    rates = {"arch": ["lstm", "mingru"], "train.learning_rate": [1e-4, 2e-4], "train.batch_size": [8, 16]}
    assert said() == [untuned], "an architecture without a preset gets the size and the training of the others"
    assert said(axes=rates) == []
    own = {"model": {"hidden": 32}, "train": {"batch_size": 8, "learning_rate": 1e-4}, "data": {"train_examples": 60}}
    size, terms = said(per=[{"when": {"arch": "mingru"}, "base": own}])
    assert re.fullmatch(r"architectures differ in parameters by more than 5 %: lstm [\d,]+, mingru [\d,]+ .*%\)", size)
    parts = ["train.batch_size 64 (lstm), 8 (mingru)", "train_examples 50 (lstm), 60 (mingru)"]
    assert terms == f"architectures differ in training: {'; '.join(parts)}"
    assert said(axes={"arch": ["mingru"]}) == []


def test_a_grid_runs_once_and_can_be_estimated_afterwards(capfd):
    words = [*GRID, "--seed", "0,2", "--study"]
    assert tfstudy(*words, "mine") == 0
    out = capfd.readouterr().out
    assert "2 runs to start, 0 already finished (results/mine); device: cpu, " in out
    assert "[2/2]" in out
    assert out.splitlines()[-1] == "results/mine: 2 of 2 runs finished"
    results = sorted(Path().glob("results/mine/copying-copy/lstm/s*/result.json"))
    assert [json.loads(path.read_text())["seed"] for path in results] == [0, 2]
    before = [path.stat().st_mtime_ns for path in results]
    assert tfstudy(*words, "mine") == 0
    assert "0 runs to start, 2 already finished" in capfd.readouterr().out
    assert [path.stat().st_mtime_ns for path in results] == before
    assert tfstudy(*GRID, "--seed", "0-1", "--study", "mine", "--dry-run") == 0
    finished, pending, *_, estimate = capfd.readouterr().out.splitlines()
    assert finished.startswith("finished")
    assert "about" not in finished
    assert re.match(r"pending +about \d+ s ", pending)
    assert "estimated from finished runs" in estimate
    assert tfstudy("grid", "--resume", "mine") == 0
    assert "no run is left" in capfd.readouterr().out


@pytest.mark.slow
def test_another_copy_of_the_code_in_the_working_folder_is_not_run(tmp_path):
    for name in ("tfstudy", "tasks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('the wrong copy')")
    program = [str(Path(sys.executable).with_name("tfstudy")), *GRID]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.glob("results/*/*/lstm/*/result.json"))


def test_a_failed_run_is_named_and_the_others_run(capfd):
    assert tfstudy(*GRID, "--seed", "0-1", "--dry-run", "--format", "json") == 0
    broken = Path(json.loads(capfd.readouterr().out)["runs"][1]["path"])
    (broken / "metrics.csv").mkdir(parents=True)  # which can't be written
    assert tfstudy(*GRID, "--seed", "0-1") == 1
    out, err = capfd.readouterr()
    assert f"failed: {broken}" in err
    assert "[2/2]" in out
    assert open_run(broken).failure.reason.startswith("IsADirectoryError: ")
    assert len(list(Path().glob("results/runs/*/*/s0*/result.json"))) == 1


def test_a_run_is_resumed_with_its_preset_also_if_it_only_was_planned_and_a_changed_one_is_skipped():
    jobs = planned("0-6", preset="paper")
    save_plan([jobs[0], jobs[5]])
    forged = jobs[6]._replace(config=jobs[6].config | {"seed": 7})  # a plan from elsewhere
    save_plan([forged])
    for number, job in enumerate(jobs[:5]):
        reports = {2: {"tuning": True}, 4: {"preset": "small"}}
        start_run(job, 100, **reports.get(number, {}))
    for number, change in ((1, "steps: 500"), (3, "stesp: 400")):
        config = Path(jobs[number].path) / "config.yaml"
        config.write_text(config.read_text().replace("steps: 400", change))
    left = study_runs(Path("results/study"))
    retried, skipped = resumed_jobs(left, Path("results"), "study", RunOptions(accelerator="cpu"))
    expected = [(jobs[0].path, "paper"), (jobs[4].path, "small"), (jobs[5].path, "paper")]
    assert sorted((job.path, job.options.preset) for job in retried) == sorted(expected)
    assert "would be another run" in skipped[jobs[6].name]
    assert "would be another run" in skipped[jobs[1].name]
    assert "tune" in skipped[jobs[2].name]
    assert "did you mean 'train.steps'?" in skipped[jobs[3].name]


def test_data_of_the_hub_need_online_unless_they_are_in_a_folder(capsys):
    jobs = planned("0-1")
    Path("folder").mkdir()
    for job, hub in zip(jobs, ("somebody/corpus", "folder"), strict=True):
        start_run(job, 100)
        data = f"split: corpus\n  hub: {hub}\n  target_language: de"
        (Path(job.path) / "config.yaml").write_text(f"task: translation\narch: lstm\ndata:\n  {data}\n")
    assert tfstudy("grid", "--resume", "study", "--dry-run") == 1
    network, folder = capsys.readouterr().out.splitlines()
    assert "(data.hub 'somebody/corpus'); --online loads them" in network
    assert "data.hub: can't load 'folder'" in folder
