"""Which file of a run folder holds its weights, and what is said where there is none."""

import shlex
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_study import finish_run
from tfstudy.errors import UserError
from tfstudy.runs.commands import command_again
from tfstudy.runs.reader import read_result
from tfstudy.runs.smoke_folder import is_smoke_folder, results_folder, without_smoke
from tfstudy.runs.weights import WEIGHTS, find_weights, has_weights


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return finish_run(tmp_path / "results/study/copying-copy/lstm/s0-abcd1234")


def test_the_checkpoint_comes_before_the_weights_alone(run):
    assert not has_weights(run)
    (run / WEIGHTS).touch()
    assert has_weights(run)
    assert find_weights(run, read_result(run)) == run / WEIGHTS
    (run / "checkpoints").mkdir()
    (run / "checkpoints/best.ckpt").touch()
    assert find_weights(run, read_result(run)) == run / WEIGHTS, "it was evaluated with the last weights"
    (run / "checkpoints/last.ckpt").touch()
    assert find_weights(run, read_result(run)) == run / "checkpoints/last.ckpt"


@pytest.mark.parametrize("words", [["predict", "RUN", "a"], ["evaluate", "RUN"], ["weights", "RUN"]])
def test_a_run_without_weights_is_answered_with_the_command_that_trains_it_again(run, words, capsys, monkeypatch):
    monkeypatch.setattr("tfstudy.cli.finished.announce", lambda text: pytest.fail(f"no need for: {text}"))
    assert tfstudy(*(str(run) if word == "RUN" else word for word in words)) == 2
    error = capsys.readouterr().err
    assert "no weights" in error
    study = run.parents[2]
    again = f"tfstudy run --config {run / 'config.yaml'} --results {study.parent} --study {study.name} --restart"
    assert shlex.split(again) == shlex.split(error.split("`")[1])
    assert error.count("\n") == 1


def test_a_smoke_run_is_trained_again_in_the_folder_that_smoke_runs_have():
    path = Path("results-smoke/runs/copying-copy/lstm/s0-abcd1234")
    assert command_again(path, smoke=True) == f"tfstudy run --config {path}/config.yaml --study runs --restart"


@pytest.mark.parametrize("results", [Path("results"), Path("some-smoke"), Path(".")])
def test_the_folder_of_smoke_runs_is_known_by_its_name(results):
    smoke = results_folder(results, smoke=True)
    assert is_smoke_folder(smoke)
    assert without_smoke(smoke).resolve() == results.resolve()
    assert results_folder(results, smoke=False) == results


def test_a_record_names_no_checkpoint_outside_of_its_folder(tmp_path):
    run = finish_run(tmp_path / "s0-abcd1234", checkpoint="../../secret")
    with pytest.raises(UserError, match="unknown checkpoint"):
        find_weights(run, read_result(run))


def test_a_run_that_diverged_has_no_weights_to_use(tmp_path):
    run = finish_run(tmp_path / "s0-abcd1234", "diverged", reason="the loss is nan")
    with pytest.raises(UserError, match="diverged, so it has no weights"):
        find_weights(run, read_result(run))
