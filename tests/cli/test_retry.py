"""`tfstudy retry`: which runs it runs again, and with which settings."""

from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_study import finish_run, planned, runs_in_every_state, start_run
from tfstudy.experiment.options import RunOptions
from tfstudy.launchers.batch import retry_jobs, save_plan
from tfstudy.runs.status import study_runs
from tfstudy.runs.writer import write_failure


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_failed_and_interrupted_runs_are_listed_with_the_reason(capsys):
    jobs = runs_in_every_state()
    assert tfstudy("retry", "study", "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    [failed] = [line for line in lines if jobs[2].name in line]
    [interrupted] = [line for line in lines if jobs[3].name in line]
    assert "out of memory" in failed
    assert "step 150 of 400" in interrupted
    assert not any(job.name in line for line in lines for job in (*jobs[:2], *jobs[4:]))


def test_runs_are_retried_with_the_options_of_a_grid(monkeypatch):
    used = []
    monkeypatch.setattr("tfstudy.cli.batches.retry_study", lambda folder, settings, *_: used.append(settings))
    monkeypatch.setattr("tfstudy.training.logger_choice.installed", lambda name: True)
    Path("results/study").mkdir(parents=True)
    words = ("--per-device", "2", "--execution", "graphed", "--logger", "tensorboard", "--measure", "layer_gradients")
    assert tfstudy("retry", "study", *words) == 0
    options = RunOptions(execution="graphed", loggers=("tensorboard",), measure=("layer_gradients",))
    assert (used[0].per_device, used[0].options) == ("2", options)


def test_a_study_without_failed_runs_has_nothing_to_retry(capsys):
    finish_run(Path("results/study/copying-copy/lstm/s0-00000000"))
    assert tfstudy("retry", "study") == 0
    assert "no " in capsys.readouterr().out


def test_a_run_that_failed_before_it_had_a_config_is_skipped(capsys):
    job = planned()[0]
    write_failure(Path(job.path), "refused: see its log", 1)
    assert tfstudy("retry", "study") == 1
    assert "config.yaml" in capsys.readouterr().out


def test_a_run_is_retried_with_its_preset_and_a_changed_one_is_skipped():
    jobs = planned("0-4", preset="paper")
    save_plan(jobs[:1])
    for number, job in enumerate(jobs):
        reports = {2: {"tuning": True}, 4: {"preset": "small"}}
        start_run(job, 100, **reports.get(number, {}))
    for number, change in ((1, "steps: 500"), (3, "stesp: 400")):
        config = Path(jobs[number].path) / "config.yaml"
        config.write_text(config.read_text().replace("steps: 400", change))
    retried, skipped = retry_jobs(
        study_runs(Path("results/study")), Path("results"), "study", RunOptions(accelerator="cpu")
    )
    assert sorted((job.path, job.options.preset) for job in retried) == sorted(
        [(jobs[0].path, "paper"), (jobs[4].path, "small")]
    )
    assert "would be another run" in skipped[jobs[1].name]
    assert "tune" in skipped[jobs[2].name]
    assert "did you mean 'train.steps'?" in skipped[jobs[3].name]


def test_data_of_the_hub_need_online_unless_they_are_in_a_folder(capsys):
    jobs = planned("0-1")
    Path("folder").mkdir()
    for job, hub in zip(jobs, ("somebody/corpus", "folder"), strict=True):
        start_run(job, 100)
        data = f"split: corpus\n  hub: {hub}\n  source_language: en\n  target_language: de"
        (Path(job.path) / "config.yaml").write_text(f"task: translation\narch: lstm\ndata:\n  {data}\n")
    assert tfstudy("retry", "study", "--dry-run") == 1
    network, folder = capsys.readouterr().out.splitlines()[-2:]
    assert "(data.hub 'somebody/corpus'); --online loads them" in network
    assert "data.hub: can't load 'folder'" in folder
