"""`--quiet`: no progress, only the result and errors; and colour only where a terminal shows it."""

from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_study import finish_run

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
    lines = capsys.readouterr().out.splitlines()
    [path] = Path("results").glob("*/*/*/s*")
    assert lines[0] == "copying, lstm: loading PyTorch ..."
    folder = len(lines) - 1 - lines[::-1].index(str(path))
    assert lines[folder + 1] == "next:"
    assert any("tfstudy predict copying-copy/lstm/s0-" in line for line in lines[folder:])
    assert any(line.startswith("copying copy, lstm, seed 0") for line in lines[:folder])


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
