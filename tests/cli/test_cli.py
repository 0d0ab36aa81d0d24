"""The command line as a whole: it explains itself, and reports invalid input, errors and interruptions in one line."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.main import get_command

from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import command
from tfstudy import cli, tasks
from tfstudy.cli import app
from tfstudy.experiment.options import RunOptions, device_of
from tfstudy.training.module import Seq2Seq

COMMANDS = sorted(Path(cli.__file__).parent.glob("*.py"))


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def written() -> list[Path]:
    return [path for path in Path().rglob("*") if path.is_file() and "more" not in path.parts]


def test_the_package_runs_as_a_module():
    process = subprocess.run([sys.executable, "-m", "tfstudy", "--help"], capture_output=True, text=True, check=True)
    assert "Experiments on inductive bias" in process.stdout
    for name in ("run", "list", "config", "predict", "evaluate", "export"):
        assert f"\n  {name} " in process.stdout


def test_every_command_and_each_of_its_options_has_a_help_text():
    for name, found in get_command(app).commands.items():
        assert found.help, name
        for parameter in found.params:
            assert getattr(parameter, "help", None) or parameter.name == "help", (name, parameter.name)


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("predict", "RUN [SOURCE]..."),
        ("errors", "RUN..."),
        ("attention", "RUN SOURCE"),
        ("new", "{task|architecture} NAME"),
        ("run", "[TASK]"),
    ],
)
def test_a_usage_names_arguments_in_capitals_and_optional_ones_in_brackets(name, usage, capsys):
    assert tfstudy(name, "--help") == 0
    assert capsys.readouterr().out.splitlines()[0] == f"Usage: tfstudy {name} [OPTIONS] {usage}"


def test_every_argument_that_is_a_run_has_the_same_help():
    arguments = [p for one in get_command(app).commands.values() for p in one.params if p.metavar in ("RUN", "A")]
    assert len(arguments) > 5
    assert {argument.help for argument in arguments} == {"Run: a folder, hash prefix or STUDY/ARCH/SEED."}


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_no_command_catches_an_exit_or_calls_another_command(path):
    tree = ast.parse(path.read_text())
    caught = {ast.unparse(node.type) for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.type}
    assert "typer.Exit" not in caught
    if path.stem != "__init__":
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        imported = {node.module for node in nodes} | {
            f"{node.module}.{one.name}" for node in nodes for one in node.names
        }
        commands = {f"tfstudy.cli.{path.stem}" for path in COMMANDS if "@app.command(" in path.read_text()}
        assert len(commands) > 8
        assert not imported & commands


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["run", "scna"], ["'scna'", "did you mean 'scan'?"]),
        (["run", "scan", "--arch", "transfomer"], ["did you mean 'transformer'?"]),
        (["run", "scan", "--split", "lenght"], ["did you mean 'length'?"]),
        (["run", "scan", "--preset", "defualt"], ["did you mean 'default'?"]),
        (["run", "scan", "--set", "model.dmi=3"], ["'model.dmi'", "did you mean 'model.dim'?"]),
        (["run", "scan", "--set", "model.dim"], ["--set", "KEY=VALUE"]),
        (["run", "scan", "--config", "none.yaml"], ["none.yaml", "No such file or directory"]),
        (["run", "scan", "--accelerator", "gpu"], ["gpu: a GPU is called cuda", "auto, cpu, cuda"]),
        (["run", "scan", "--execution", "graph"], ["'graph'", "eager, graphed"]),
        (["run", "scan", "--set", "model.heads=3"], ["heads"]),
        (
            ["run", "copying", "--set", "data.train_length=abc"],
            ["must be one range of lengths such as 1-10, but is 'abc'\n"],
        ),
        (["run", "scan", "--logger", "tensorbord"], ["did you mean 'tensorboard'?"]),
        (["run", "scan", "--study", "a/b"], ["--study", "'a/b'"]),
        (["list", "task"], ["'task'", "tasks, splits, architectures, instruments, presets, grids, runs"]),
        (["list", "splits", "scam"], ["did you mean 'scan'?"]),
        (["list", "presets", "scam"], ["did you mean 'scan'?"]),
        (["config", "scam"], ["did you mean 'scan'?"]),
        (["predict", "abc", "jump"], ["no folder of results at 'results'"]),
        (["evaluate", "abc"], ["no folder of results at 'results'"]),
        (["evaluate", "abc", "--extend", "--test-set", "test"], ["--extend", "--test-set"]),
        (["errors", "abc"], ["no folder of results at 'results'"]),
        (["export", "scam", "--out", "data"], ["did you mean 'scan'?"]),
        (["export", "scan", "--split", "lenght", "--out", "data"], ["did you mean 'length'?"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_input_is_one_line_with_exit_code_2_and_writes_nothing(words, facts, capsys):
    assert tfstudy(*words) == 2
    error = capsys.readouterr().err
    assert all(fact in error for fact in facts)
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert written() == []


@pytest.mark.parametrize("words", ["table", "report --out a", "check --against a", "claims", "retry", "plot --out a"])
def test_an_empty_argument_is_refused_and_not_taken_for_everything(words, capsys):
    Path("results").mkdir()
    assert tfstudy(*words.split(), "") == 2
    assert re.fullmatch(r"error: the argument (STUDY|ID) is empty; .*leave it out\n", capsys.readouterr().err)


def test_an_empty_argument_that_is_required_is_refused(capsys):
    Path("results").mkdir()
    for words in (["measure", "", "entropy"], ["errors", "a", ""], ["result", ""]):
        assert tfstudy(*words) == 2
        assert re.search(r"(TARGET|RUN) is empty; give a value\n", capsys.readouterr().err)


def test_an_unknown_command_or_option_has_exit_code_2(capsys):
    for words in (["rnu"], ["run", "scan", "--lr", "3"], ["run"], ["run", "scan", "--seed", "one"], ["show", "scan"]):
        assert tfstudy(*words) == 2
        assert "Traceback" not in capsys.readouterr().err
    assert written() == []


@pytest.mark.parametrize(
    ("error", "code", "facts"),
    [
        (KeyboardInterrupt(), 130, ["interrupted", "same command again"]),
        (OSError(28, "No space left on device", "file"), 1, ["No space left on device: file", "same command again"]),
    ],
    ids=["interruption", "file error"],
)
def test_an_interruption_and_a_file_error_have_an_exit_code_and_say_how_to_resume(
    error, code, facts, monkeypatch, capsys
):
    def train(*_, **__):
        raise error

    monkeypatch.setattr("tfstudy.experiment.run.train", train)
    assert tfstudy(*command()) == code
    text = capsys.readouterr().err
    assert all(fact in text for fact in facts)
    assert "Traceback" not in text


def test_an_interruption_of_a_command_that_can_not_be_resumed_offers_no_resume(monkeypatch, capsys):
    def read(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tfstudy.report.status.status_lines", read)
    Path("results").mkdir()
    assert tfstudy("status") == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_devices_that_the_machine_does_not_have_are_refused(monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert tfstudy(*command(), "--accelerator", "cuda") == 2
    assert "no CUDA device" in capsys.readouterr().err
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert tfstudy(*command(), "--accelerator", "auto", "--devices", "4") == 2
    error = capsys.readouterr().err
    assert all(fact in error for fact in ("--devices", "at most 1", "4"))
    assert written() == []


def test_convolutions_on_a_gpu_are_in_full_float32(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.backends.cudnn.allow_tf32", True)
    assert device_of(RunOptions()).type == "cuda"
    assert not torch.backends.cudnn.allow_tf32


def test_the_best_checkpoint_without_a_validation_split_is_refused_before_training(monkeypatch, capsys):
    def training_step(*_):
        raise AssertionError("it trained")

    monkeypatch.setattr(Seq2Seq, "training_step", training_step)
    assert tfstudy(*command("lstm", "--split", "alone", "--set", "eval.checkpoint=best")) == 2
    assert "validation" in capsys.readouterr().err
