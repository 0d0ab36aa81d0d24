"""`--quiet`: no progress, only the result and errors; and colour only where a terminal shows it."""

import sys
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_study import finish_run
from tests.example_task import TASK, added
from tests.interrupted_runs import command, folder
from tfstudy import tasks
from tfstudy.experiment import prepare
from tfstudy.training import progress_display

SMALL = ["--set", "model.dim=8", "--set", "train.steps=2", "--set", "train.warmup_steps=1"]
DATA = ["--set", "data.train_examples=60", "--set", "data.eval_examples=10", "--accelerator", "cpu"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_quiet_run_prints_its_result_and_folder_only(capfd):
    assert tfstudy("run", "copying", "--arch", "lstm", *SMALL, *DATA, "--quiet") == 0
    out, err = capfd.readouterr()
    [path] = Path("results").glob("*/*/*/s*")
    lines = [line.rstrip() for line in out.splitlines() if line.strip()]
    assert lines[0] == "copying copy, lstm, seed 0 (percent)"
    assert lines[-1] == str(path)
    assert "loading" not in out + err


def test_a_run_ends_with_the_result_its_folder_and_what_to_type(capsys):
    assert tfstudy("run", "copying", "--arch", "lstm", *SMALL, *DATA) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    [path] = Path("results").glob("*/*/*/s*")
    assert lines[0].split() == ["copying", "copy,", "lstm,", "seed", "0", "(percent)"]
    assert "copying copy, lstm with" in err, "progress is apart from the result"
    assert lines[-2:] == [str(path), f"next: tfstudy predict {path}"]


def test_a_run_that_is_refused_prints_an_error_and_nothing_on_standard_output(capsys, monkeypatch):
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        assert tfstudy("run", "scan", "--set", "model.dmi=3") == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("scan, transformer: loading PyTorch ...\nerror: " if terminal else "error: ")


@pytest.mark.parametrize("words", [["predict", "a"], ["attention", "a b"], ["evaluate"], ["weights"]])
def test_quiet_commands_on_a_finished_run_print_no_progress(words, tmp_path, capsys, monkeypatch):
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        assert tfstudy(*command("lstm", "--quiet")) == 0
        monkeypatch.setattr(prepare, "SLOW", 0.0)
        monkeypatch.setattr(progress_display, "LINE_INTERVAL", 0.0)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        name, *rest = words
        printed = []
        for more in ([], ["--quiet"]):
            capsys.readouterr()
            assert tfstudy(name, folder(), *rest, *more) == 0
            printed.append(capsys.readouterr())
    (out, progress), (quiet_out, quiet) = printed
    assert "loading PyTorch" in progress
    assert "preparing reverse: " in progress
    assert quiet_out == out != ""
    assert quiet == ""


def test_errors_are_printed_although_quiet(capsys):
    assert tfstudy("run", "copying", "--quiet", "--set", "train.steps=none") == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "error: 'train.steps' must be a whole number, but is 'none'\n"


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_piped_output_has_no_codes(capsys, monkeypatch, variable):
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    finish_run(Path("results/study/copying-copy/lstm/s0-00000000"))
    for words in (["status", "study"], ["list", "runs"], ["list", "tasks"], ["result", "study/lstm/s0"]):
        assert tfstudy(*words) == 0
        assert "\x1b" not in capsys.readouterr().out
