"""`tfstudy measure`: a table, a figure, JSON, and measurements saved with the runs."""

import json
import shutil
from pathlib import Path

import pytest

import tfstudy as package
from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import command
from tfstudy import instruments, tasks
from tfstudy.runs.measurement_record import read_measurement, saved_instruments
from tfstudy.runs.reader import read_test_reads

FEW = ("--set", "examples=6", "-q")


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


@pytest.fixture
def study(undisturbed, tmp_path, capsys):
    """`study(*architectures)`: a study with a finished run of each, a copy for the test."""

    def study(*architectures: str) -> Path:
        for arch in architectures:
            run = undisturbed(command(arch))
            shutil.copytree(run, tmp_path / "results" / "mine" / "reverse-short" / arch / run.name)
        capsys.readouterr()
        return tmp_path / "results" / "mine"

    return study


def test_a_study_is_measured_saved_and_drawn(study, capsys):
    folder = study("transformer", "lstm")
    assert tfstudy("measure", "mine", "entropy", *FEW, "--save", "--out", "entropy.png") == 0
    out, err = capsys.readouterr()
    lines = [line.split() for line in out.splitlines()]
    assert out.startswith("entropy: entropy / log T, mean over heads, split=validation, examples=6\n")
    assert {tuple(line[:3]) for line in lines[2:-2]} >= {("lstm", "cross", "1"), ("transformer", "encoder", "2")}
    assert err == ""
    assert Path("entropy.png").read_bytes().startswith(b"\x89PNG")
    assert [saved_instruments(run.parent) for run in sorted(folder.glob("*/*/*/result.json"))] == [["entropy"]] * 2


def test_the_table_says_how_many_examples_were_read(study, capsys):
    [run] = study("lstm").glob("*/*/s*")
    assert tfstudy("measure", run, "entropy", "--set", "examples=100000", "-q") == 0
    assert "examples=23\n" in capsys.readouterr().out  # all of the split


def test_json_has_every_row_and_reading_a_test_set_is_counted(study, capsys):
    [run] = study("lstm").glob("*/*/s*")
    before = read_test_reads(run).get("test", 0)
    assert tfstudy("measure", run, "entropy", "--set", "split=test", *FEW, "--format", "json") == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["instrument"], found["settings"]) == ("entropy", {"split": "test", "examples": 6})
    assert found["examples"] == 6
    assert found["columns"]["length"] == [6]  # five words and the end of the sequence
    assert read_test_reads(run)["test"] == before + 1
    assert saved_instruments(run) == []
    again = package.load(run).measure("entropy", save=True, split="test", examples=6)
    assert again.columns == found["columns"]
    assert read_measurement(run, "entropy") == again


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["entropie"], "did you mean 'entropy'?"),
        (["entropy", "--set", "example=3"], "did you mean 'examples'?"),
        (["entropy", "--set", "examples=0"], "'examples' must be greater than or equal to 1"),
        (["entropy", "--set", "split=tset"], "did you mean 'test'?"),
        (["entropy", "--out", "figure.gif"], "unknown file type '.gif'"),
    ],
)
def test_one_message_names_what_is_wrong_and_nothing_is_written(study, capsys, words, fact):
    [run] = study("lstm").glob("*/*/s*")
    assert tfstudy("measure", run, *words, "--save", "-q") == 2
    assert fact in capsys.readouterr().err
    assert saved_instruments(run) == []


def test_a_run_that_can_not_be_measured_is_left_out_with_the_reason(study, capsys):
    [cnn] = study("transformer", "lstm").glob("*/transformer/s*")
    shutil.rmtree(cnn / "checkpoints")
    assert tfstudy("measure", "mine", "entropy", *FEW) == 0
    out, err = capsys.readouterr()
    assert out.startswith("lstm, entropy: ")
    assert err.startswith(f"left out: {cnn.relative_to(Path.cwd())} has a result but no weights")
    assert tfstudy("measure", cnn, "entropy", *FEW) == 2


def test_one_line_gives_the_reason_that_several_runs_share(study, capsys):
    runs = list(study("transformer", "lstm").glob("*/*/s*"))
    assert tfstudy("measure", "mine", "entropy", "--set", "split=tst", *FEW) == 2
    assert "(and 1 more run for the same reason)" in (error := capsys.readouterr().err)
    assert error.count("did you mean 'test'?") == 1
    for run in runs:
        shutil.rmtree(run / "checkpoints")
    assert tfstudy("measure", "mine", "entropy", *FEW) == 2
    assert capsys.readouterr().err.count("reverse-short/lstm") == 2, "the folder, and its config in the command"


def test_a_measurement_with_other_settings_that_is_replaced_is_named(study, capsys):
    [run] = study("lstm").glob("*/*/s*")
    for examples in (5, 6, 6):
        assert tfstudy("measure", run, "entropy", "--set", f"examples={examples}", "-q", "--save") == 0
    assert capsys.readouterr().err == "replaced: entropy with split=validation, examples=5, in 1 run\n"


def test_a_saved_measurement_is_shown_without_weights_and_other_settings_are_measured(study, capsys):
    [run] = study("lstm").glob("*/*/s*")
    assert tfstudy("measure", run, "entropy", *FEW, "--save") == 0
    table = capsys.readouterr().out.splitlines()[:-1]
    shutil.rmtree(run / "checkpoints")
    assert tfstudy("measure", run, "entropy", *FEW) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == table
    assert err.splitlines()[-1] == "measured before: 1 run; --save measures again"
    for words in (["--save", *FEW], ["--set", "examples=5"], ["--set", "split=test", *FEW]):
        assert tfstudy("measure", run, "entropy", *words) == 2
        assert "no weights" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("chart", "fact"),
    [
        ('"pie", x="layer", y="norm"', "unknown kind of chart 'pie'; expected one of: line, bar, heatmap"),
        ('"bar", x="layer", y="nrom"', "did you mean 'norm'?"),
    ],
)
def test_an_instrument_whose_chart_can_not_be_drawn_is_refused(study, tmp_path, capsys, chart, fact):
    [run] = study("lstm").glob("*/*/s*")
    plugin = (
        "from tfstudy.instruments.base import Chart, Instrument\n\n\nclass Wrong(Instrument):\n"
        f"    summary = 'wrong'\n    chart = Chart({chart})\n\n"
        "    def measure(self, subject):\n        return [{'layer': 1, 'norm': 1.0}]\n"
    )
    (tmp_path / "wrong.py").write_text(plugin)
    assert tfstudy("--plugin", "wrong.py", "measure", run, "wrong", "-q", "--save") == 2
    assert fact in capsys.readouterr().err
    assert saved_instruments(run) == []


def test_the_list_of_instruments_has_a_line_for_each_and_imports_no_torch(capsys):
    assert tfstudy("list", "instruments", "--format", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == instruments.names()
    assert all(row["about"] for row in rows)
