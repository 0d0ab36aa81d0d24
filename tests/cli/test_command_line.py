"""The command line as a whole: its help, exit codes, pipes, and one line for invalid input."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from tests.commands import refused, tfstudy
from tests.committed import ROOT
from tests.example_records import result, write
from tests.example_study import runs_in_every_state
from tests.interrupted_runs import command
from tests.test_code_blocks import check_command
from tfstudy import plugins
from tfstudy.cli.command_line import EXAMPLES, GROUPS, app

SCREEN = (80, 40)  # columns and lines of a terminal


def help_of(capsys, *words: str) -> list[str]:
    """The lines of a command's help at 80 columns, without codes of colour and empty lines around it."""
    assert tfstudy(*words, "--help") == 0
    lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).strip().splitlines()
    assert max(map(len, lines)) <= SCREEN[0]
    return [line.strip() for line in lines]


@pytest.fixture(autouse=True)
def _columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(SCREEN[0]))


def test_the_help_lists_at_most_twenty_commands_each_once_in_its_group_with_a_text_for_each_option(capsys):
    commands = get_command(app).commands
    names = [name for group in GROUPS.values() for name in group]
    assert sorted(commands) == sorted(names)
    assert len(names) <= 20
    words = [line.strip("│ ").split(" ")[0] for line in help_of(capsys)]
    assert [word for word in words if word in commands] == names
    assert tfstudy() == 2
    capsys.readouterr()
    for name, found in commands.items():
        assert found.help, name
        assert [p.name for p in found.params if not getattr(p, "help", None) and p.name != "help"] == [], name
    assert max(len(help_of(capsys, name)) for name in ("run", "grid")) <= SCREEN[1]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_ends_with_examples_that_are_valid_commands(name, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)  # whose results they name
    shown = [line.partition("  #")[0].rstrip() for line in help_of(capsys, *filter(None, [name])) if "  # " in line]
    assert shown == [words for words, _ in EXAMPLES[name]]
    for words in shown:
        check_command(words.split())


# Invalid input


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ("run scna", ["'scna'", "did you mean 'scan'?"]),
        ("run scan --split lenght", ["did you mean 'length'?"]),
        ("run scan --config none.yaml", ["none.yaml", "No such file or directory"]),
        ("run scan --execution graph", ["'graph'", "eager, graphed"]),
        ("run scan --logger tensorbord", ["did you mean 'tensorboard'?"]),
        ("run scan --study a/b", ["--study", "'a/b'"]),
        ("predict abc jump", ["no folder of results at 'results'"]),
        ("grid --resume study", ["no folder of results at 'results'"]),
        ("result a b --log", ["OTHER and --log"]),
        ("list task", ["'task'", "tasks, architectures, instruments, presets, grids, runs"]),
        ("grid --resume scan --task scan", ["--resume", "leave out"]),
        ("grid --task copying --launcher lokal", ["did you mean 'local'"]),
        ("grid --task copying --format json", ["--dry-run"]),
        ("grid --task copying --accelerator cuda --dry-run", ["no CUDA device"]),
    ],
)
def test_invalid_input_is_one_line_with_exit_code_2_and_writes_nothing(words, facts, capsys):
    error = refused(capsys, *shlex.split(words))
    assert all(fact in error for fact in facts)


@pytest.mark.parametrize("words", ["run scan --seed abc", "run scan --seed=-7", "bench --repeats 0 --threads 1"])
def test_a_number_that_is_none_or_out_of_bounds_is_quoted(words, capsys):
    assert tfstudy(*words.split()) == 2
    assert f"but is '{re.search(r'abc|-7|0', words)[0]}'" in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_a_file_error_has_an_exit_code_and_says_how_to_resume(monkeypatch, capsys):
    def ended(*_, **__):
        raise OSError(28, "No space left on device", "file")

    text = "error: No space left on device: file"
    monkeypatch.setattr("tfstudy.experiment.run.train", ended)
    assert tfstudy(*command()) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"{text}; run the same command again to resume"
    monkeypatch.setattr("tfstudy.report.progress.status", ended)
    assert tfstudy("status") == 1
    assert capsys.readouterr().err == f"{text}\n", "this command resumes nothing"


# Output


def test_letters_that_the_encoding_lacks_are_replaced_and_a_closed_pipe_is_no_error():
    write(Path("results/mine"), result(0, 0.2), result(1, 0.4))
    program = [sys.executable, "-m", "tfstudy"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*program, "list", "tasks", "sorting"], env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Del?tang" in done.stdout
    for words in ("--help", "status mine"):
        piped = f"{shlex.join(program)} {words} | head -c 1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", piped], env=environment, capture_output=True, text=True)
        assert (done.stderr, done.stdout[1:] in ("0\n", "1\n")) == ("", True)


def test_a_printed_command_can_be_pasted(monkeypatch, capsys):
    monkeypatch.setenv(plugins.VARIABLE, "")
    Path("my plugins").mkdir()
    Path("my plugins/mine.py").touch()
    plugins.add("my plugins/mine.py")
    words = ["grid", "--resume", "a study; rm -r *", "--results", "it's"]
    plugin = str(Path("my plugins/mine.py").resolve())
    assert shlex.split(plugins.command(*words)) == ["tfstudy", *words, "--plugin", plugin]
    monkeypatch.setenv(plugins.VARIABLE, "")
    runs_in_every_state()
    Path("results/study").rename("results/my study")
    assert tfstudy("status", "my study") == 0
    [printed] = re.findall(r"tfstudy grid .*", capsys.readouterr().out)
    assert tfstudy(*shlex.split(printed)[1:], "--dry-run") == 0
    assert "5 runs, 0 finished" in capsys.readouterr().out  # one failed, one interrupted, three that are pending
