"""The command line: quick to answer, one line for a mistake, and nothing written by it."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.main import get_command

import tasks
from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import command, folder
from tfstudy import models
from tfstudy.cli import app
from tfstudy.report.run_summary import published, summary
from tfstudy.runs.writer import RunFolder
from tfstudy.training.module import Seq2Seq

HEAVY = ("torch", "lightning", "pandas", "torchmetrics", "datasets", "numpy", "seaborn")


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


@pytest.fixture
def finished(capsys) -> Path:
    """A finished run."""
    assert tfstudy(*command()) == 0
    capsys.readouterr()
    return folder()


def python(*words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, check=False)


def written() -> list[Path]:
    return [path for path in Path().rglob("*") if path.is_file() and "more" not in path.parts]


# How it starts


@pytest.mark.parametrize("words", ["[]", "['--help']", "['run', '--help']", "['nonsense']"])
def test_help_and_mistakes_load_nothing_heavy(words):
    code = (
        "import sys\nfrom tfstudy.cli import main\n"
        f"try: main({words})\nexcept SystemExit: pass\n"
        f"print('LOADED', [name for name in {HEAVY} if name in sys.modules])"
    )
    assert python("-c", code).stdout.splitlines()[-1] == "LOADED []"


def test_the_package_runs_as_a_module():
    done = python("-m", "tfstudy", "--help")
    assert done.returncode == 0
    assert "Experiments on inductive bias" in done.stdout
    for name in ("run", "list", "show", "predict", "evaluate", "export"):
        assert f"\n  {name} " in done.stdout


def test_every_command_and_each_of_its_options_explains_itself():
    for name, found in get_command(app).commands.items():
        assert found.help, name
        for parameter in found.params:
            assert getattr(parameter, "help", None) or parameter.name == "help", (name, parameter.name)


# list and show


def test_list_names_tasks_splits_architectures_and_presets(capsys):
    assert tfstudy("list") == 0
    out = capsys.readouterr().out
    assert "scan" in out
    assert "addprim_jump" in out
    assert tfstudy("list", "splits") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(tasks.find("scan").experiments())
    assert tfstudy("list", "architectures") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == models.names()
    assert tfstudy("list", "presets", "scan") == 0
    out = capsys.readouterr().out
    assert {"default", "lake-2018"} <= {line.split()[0] for line in out.splitlines()}
    assert tfstudy("list", "presets", "reverse") == 0
    assert capsys.readouterr().out == ""


def test_list_runs_tells_finished_unfinished_and_diverged_apart(finished, capsys):
    other = finished.with_name("s1-00000000")
    other.mkdir()
    (other / "config.yaml").write_text("{}")
    third = finished.with_name("s2-00000000")
    third.mkdir()
    (third / "config.yaml").write_text("{}")
    RunFolder(third, "0" * 64).finish({"status": "diverged", "reason": "the loss is nan"})
    assert tfstudy("list", "runs") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["finished", "unfinished", "diverged"]
    assert [line.split()[-1] for line in lines] == [str(path) for path in (finished, other, third)]
    assert "exact_match" in lines[0]
    assert tfstudy("list", "runs", "--results", "nowhere") == 0


def test_one_damaged_result_does_not_hide_the_other_runs(finished, capsys):
    other = finished.with_name("s1-00000000")
    other.mkdir()
    (other / "config.yaml").write_text("{}")
    (other / "result.json").write_text("{")
    assert tfstudy("list", "runs") == 0
    assert str(finished) in capsys.readouterr().out


def test_show_prints_a_config_that_config_takes(capsys, tmp_path):
    assert tfstudy("show", "scan", "--arch", "cnn", "--split", "length", "--seed", "3", "--set", "model.kernel=5") == 0
    text = capsys.readouterr().out
    assert re.search(r"  kernel: 5 +# int.*, default 3: tokens that a convolution sees", text)
    file = tmp_path / "shown.yaml"
    file.write_text(text)
    assert tfstudy("show", "scan", "--arch", "cnn", "--config", file) == 0
    assert capsys.readouterr().out == text
    assert written() == [Path("shown.yaml")]


def test_show_smoke_shows_what_a_smoke_run_takes(capsys):
    assert tfstudy("show", "scan", "--smoke") == 0
    assert "steps: 20 " in capsys.readouterr().out


# predict, evaluate, export


def test_predict_answers_with_words_of_the_task(finished, capsys):
    assert tfstudy("predict", finished, "a b") == 0
    assert set(capsys.readouterr().out.split()) <= {"a", "b", "c"}
    assert tfstudy("predict", finished.name[-8:-3], " a  b ") == 0


def test_predict_gives_what_evaluation_kept(finished, capsys):
    for row in list(RunFolder(finished, "").predictions("test"))[:5]:
        assert tfstudy("predict", finished, row["source"]) == 0
        assert capsys.readouterr().out == row["prediction"] + "\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a x", "reverse: unknown source token 'x'; expected one of: a, b, c"),
        ("", "the source must have at least one token"),
        ("  ", "the source must have at least one token"),
        ("<pad>", "'<pad>'; expected one of: a, b, c"),
        ("a <eos>", "'<eos>'; expected one of: a, b, c"),
    ],
)
def test_predict_refuses_what_is_no_source(source, message, finished, capsys):
    assert tfstudy("predict", finished, source) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_predict_refuses_an_unfinished_run_and_one_of_other_data(finished, capsys):
    (finished / "result.json").rename("result.json")
    assert tfstudy("predict", finished, "a") == 2
    assert "is not a finished run" in capsys.readouterr().err
    result = json.loads(Path("result.json").read_text())
    (finished / "result.json").write_text(json.dumps(result | {"run": "0" * 64}))
    assert tfstudy("predict", finished, "a") == 2
    assert "was made with another config, other data or another version" in capsys.readouterr().err


def test_evaluate_repeats_the_numbers_and_counts_the_reading_of_a_test_split(finished, capsys):
    before = {path: path.read_bytes() for path in finished.glob("predictions/*")}
    table = tfstudy("run", *command()[1:]), capsys.readouterr().out
    reads = RunFolder(finished, "").test_reads()
    assert reads == {"test": 1}
    assert tfstudy("evaluate", finished) == 0
    again = capsys.readouterr().out
    row = next(line for line in again.splitlines() if "│ test" in line)
    assert row in table[1]
    assert {path: path.read_bytes() for path in finished.glob("predictions/*")} == before
    assert RunFolder(finished, "").test_reads() == {"test": 2}
    assert tfstudy("evaluate", finished, "--split", "validation") == 0
    assert RunFolder(finished, "").test_reads() == {"test": 2}, "validation may be read freely"
    assert (finished / "test_reads.csv").read_text().splitlines() == ["test,run", "test,evaluate"]


def test_a_result_is_sliced_by_a_tag_without_reading_a_split_again(finished, capsys):
    assert tfstudy("result", finished, "--by", "length") == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:4]] for line in lines if line.startswith("│")]
    assert [row[:2] for row in cells if row[0] != "validation"][-2:] == [["test", "all"], ["", "5"]]
    assert RunFolder(finished, "").test_reads() == {"test": 1}


def test_evaluate_knows_its_splits(finished, capsys):
    assert tfstudy("evaluate", finished, "--split", "tset") == 2
    assert "'tset'; expected one of: validation, test; did you mean 'test'?" in capsys.readouterr().err
    assert RunFolder(finished, "").test_reads() == {"test": 1}


def test_a_tag_that_there_is_not_is_refused(finished, capsys):
    assert tfstudy("result", finished, "--by", "lenght") == 2
    assert "did you mean 'length'?" in capsys.readouterr().err
    assert RunFolder(finished, "").test_reads() == {"test": 1}


def test_export_writes_jsonl_and_refuses_an_existing_folder(capsys):
    assert tfstudy("export", "scan", "--split", "length", "--out", "data") == 0
    assert capsys.readouterr().out.splitlines() == [f"data/{name}.jsonl" for name in ("test", "train", "validation")]
    lines = Path("data/test.jsonl").read_text().splitlines()
    assert len(lines) == 3920
    assert json.loads(lines[0]).keys() >= {"source", "target", "length"}
    before = {path: path.read_bytes() for path in Path("data").iterdir()}
    assert tfstudy("export", "scan", "--out", "data") == 2
    assert "--out must not be there yet, but is: data" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path("data").iterdir()} == before


def test_export_refuses_an_unknown_format_and_other_sections(capsys):
    assert tfstudy("export", "reverse", "--out", "data", "--format", "json") == 2
    assert "'json'; expected one of: jsonl, parquet; did you mean 'jsonl'?" in capsys.readouterr().err
    assert tfstudy("export", "reverse", "--out", "data", "--set", "train.steps=1") == 2
    assert "only keys of 'data.' have a meaning here, but 'train' was given" in capsys.readouterr().err
    assert written() == []


# Mistakes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "scna"], "reverse, scan, sorting, translation; did you mean 'scan'?"),
        (["run", "scan", "--arch", "transfomer"], "did you mean 'transformer'?"),
        (["run", "scan", "--split", "lenght"], "did you mean 'length'?"),
        (["run", "scan", "--preset", "defualt"], "did you mean 'default'?"),
        (["run", "scan", "--set", "model.dmi=3"], "unknown key 'model.dmi'; did you mean 'model.dim'?"),
        (["run", "scan", "--set", "model.dim"], "--set must be KEY=VALUE"),
        (["run", "scan", "--config", "none.yaml"], "can't read none.yaml: No such file or directory"),
        (["run", "scan", "--accelerator", "gpu"], "accelerator 'gpu'; expected one of: auto, cpu, cuda"),
        (["run", "scan", "--set", "model.heads=3"], "heads"),
        (["list", "task"], "'task'; expected one of: tasks, splits, architectures, presets, runs"),
        (["list", "splits", "scam"], "did you mean 'scan'?"),
        (["list", "presets", "scam"], "did you mean 'scan'?"),
        (["show", "scam"], "did you mean 'scan'?"),
        (["predict", "abc", "jump"], "no run 'abc'"),
        (["evaluate", "abc"], "no run 'abc'"),
        (["export", "scam", "--out", "data"], "did you mean 'scan'?"),
        (["export", "scan", "--split", "lenght", "--out", "data"], "did you mean 'length'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_line_with_exit_code_2_and_writes_nothing(words, message, capsys):
    assert tfstudy(*words) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert written() == []


def test_an_unknown_command_or_option_has_exit_code_2(capsys):
    for words in (["rnu"], ["run", "scan", "--lr", "3"], ["run"], ["run", "scan", "--seed", "one"]):
        assert tfstudy(*words) == 2
        assert "Traceback" not in capsys.readouterr().err
    assert written() == []


def test_devices_that_are_not_there_are_refused(monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert tfstudy(*command(), "--accelerator", "cuda") == 2
    assert "torch sees no CUDA device here" in capsys.readouterr().err
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert tfstudy(*command(), "--accelerator", "auto", "--devices", "4") == 2
    assert "--devices must be at most 1 here, but is 4" in capsys.readouterr().err
    assert written() == []


def test_choosing_the_best_checkpoint_without_validation_is_refused_before_training(monkeypatch, capsys):
    def trained(*_):
        raise AssertionError("it was trained in vain")

    monkeypatch.setattr(Seq2Seq, "training_step", trained)
    assert tfstudy(*command("lstm", "--split", "alone", "--set", "eval.checkpoint=best")) == 2
    assert "validation" in capsys.readouterr().err


# The table


def result(split: str, **changes) -> dict:
    part = {"n": 10, "metrics": {"exact_match": 0.25, "token_accuracy": 0.5}, "exact_match_interval": [0.1, 0.5]}
    tests = {"test": {"role": "test", **part, "slices": {"length": {"3": part, "24": part}}}}
    made = {"task": "scan", "split": split, "arch": "lstm", "seed": 4, "smoke": False, "status": "finished"}
    return made | {"splits": {"validation": {"role": "validation", "n": 0}, **tests}} | changes


def printed(*parts) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return capture.get()


def test_published_figures_stand_under_the_table_of_their_split():
    rows = published("scan", "mcd1")
    text = printed(*summary(result("mcd1")))
    table, figures = text.split("published, on test")
    assert "scan mcd1, lstm, seed 4 (per cent)" in table
    assert "25.0" in table
    assert "10.0 to 50.0" in table
    assert len(rows) >= 3
    for row in rows:
        assert row["value"] in figures
        assert row["paper"] in figures
    assert "Dessi" not in figures, "other splits' figures stand elsewhere"


def test_a_split_without_published_figures_and_a_smoke_run_show_none():
    assert "published" not in printed(*summary(result("filler_num0")))
    text = printed(*summary(result("mcd1", smoke=True)))
    assert "published" not in text
    assert "SMOKE RUN, its numbers mean nothing" in text


def test_a_diverged_result_is_a_line_with_its_reason():
    [line] = summary(result("simple", status="diverged", reason="the training loss is nan at step 5"))
    assert line == "scan simple, lstm, seed 4: diverged (the training loss is nan at step 5)"


def test_a_table_is_sliced_by_a_tag():
    lines = printed(*summary(result("filler_num0"), by="length")).splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:4]] for line in lines if line.startswith("│")]
    assert cells == [["validation", "all", "0"], ["test", "all", "10"], ["", "3", "10"], ["", "24", "10"]]


def test_published_figures_name_a_split_of_ours_and_their_source():
    from tfstudy.config.files import configs

    with (configs() / "published.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows
    for row in rows:
        assert row["task"] in tasks.names()
        assert row["paper"]
        assert row["source"]
        assert row["value"].strip("~").replace(".", "", 1).isdigit(), row


def test_evaluate_extend_draws_ever_longer_examples_until_none_is_right(tmp_path, capsys):
    few = ["--set", "data.examples=100", "--set", "data.held_out=10"]
    assert tfstudy("run", "copying", "--arch", "lstm", "--smoke", "--accelerator", "cpu", *few) == 0
    [run] = Path("results-smoke/runs/copying-copy/lstm").iterdir()
    before = {path: path.read_bytes() for path in run.glob("*.json")}
    capsys.readouterr()
    assert tfstudy("evaluate", run, "--extend", "--most", "12") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["length   11", "length   12"]
    assert lines[-1].startswith("L90 none, L50 none")
    found = json.loads((run / "extended.json").read_text())
    assert found["exact_match"]["12"]["n"] >= 100
    assert {path: path.read_bytes() for path in before} == before


def test_a_task_that_can_not_draw_lengths_is_not_extended(finished, capsys):
    assert tfstudy("evaluate", finished, "--extend") == 2
    assert "--extend: reverse can't draw examples of a length, such as 5" in capsys.readouterr().err
