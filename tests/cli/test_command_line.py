"""The command line as a whole: its help, completion, exit codes, and one line for invalid input and interruptions."""

import importlib.metadata
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from tests.code_blocks import check_command
from tests.commands import tfstudy
from tests.committed import ROOT
from tests.example_records import result, write
from tests.example_study import finish_run
from tests.interrupted_runs import command
from tfstudy.cli import main
from tfstudy.cli.command_line import EXAMPLES, GROUPS, app, plugins_first, version_text


def test_the_package_runs_as_a_module():
    process = subprocess.run([sys.executable, "-m", "tfstudy", "--help"], capture_output=True, text=True, check=True)
    assert "Experiments on inductive bias" in process.stdout


def test_the_help_lists_every_command_once_in_its_group(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert tfstudy("--help") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines[1:] if line.endswith("...")]
    heads = [line.removesuffix(":") for line in lines if line and not line.startswith(" ")][1:]
    assert heads == [*GROUPS, "Options", "Examples"]
    listed = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("  -")]
    commands = get_command(app).commands
    assert [name for name in listed if name in commands] == [name for names in GROUPS.values() for name in names]
    assert sorted(commands) == sorted(name for names in GROUPS.values() for name in names)
    assert tfstudy() == 2
    assert "Examples:" in capsys.readouterr().err.splitlines()


def test_every_command_and_each_of_its_options_has_a_help_text(capsys):
    runs = set()
    for name, found in get_command(app).commands.items():
        assert found.help, name
        for parameter in found.params:
            assert getattr(parameter, "help", None) or parameter.name == "help", (name, parameter.name)
            runs |= {parameter.help} if parameter.metavar in ("RUN", "A") else set()
    assert runs == {"Run: a folder, hash prefix or STUDY/ARCH/SEED."}
    for name, usage in {
        "predict": "RUN [SOURCE]...",
        "errors": "RUN...",
        "new": "{task|architecture} NAME",
        "run": "[TASK]",
    }.items():
        assert tfstudy(name, "--help") == 0
        assert capsys.readouterr().out.splitlines()[0] == f"Usage: tfstudy {name} [OPTIONS] {usage}"


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_ends_with_examples_that_are_valid_commands(name, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)  # whose results they name
    monkeypatch.setenv("COLUMNS", "80")
    assert tfstudy(*filter(None, [name]), "--help") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    shown = lines[lines.index("Examples:") + 1 :]
    assert [line.partition("#")[0].strip() for line in shown] == [command for command, _ in EXAMPLES[name]]
    for words, _ in EXAMPLES[name]:
        check_command(words.split())


def test_the_versions_are_printed_on_one_line(capsys, monkeypatch):
    assert tfstudy("--version") == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith(f"tfstudy {importlib.metadata.version('tfstudy')} (torch ")
    assert f"python {platform.python_version()}" in line
    for commit, end in (("1a2b3c4d5e6f+", ", commit 1a2b3c4 with changes)"), ("", f"{platform.python_version()})")):
        monkeypatch.setattr("tfstudy.runs.environment.commit", lambda commit=commit: commit)
        assert version_text().endswith(end)


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
        (["run", "scan", "--execution", "graph"], ["'graph'", "eager, graphed"]),
        (["run", "scan", "--logger", "tensorbord"], ["did you mean 'tensorboard'?"]),
        (["run", "scan", "--study", "a/b"], ["--study", "'a/b'"]),
        (["run", "copying", "--study", "performance"], ["reserved for `tfstudy bench`"]),
        (["config", "scan", "--arch", ""], ["unknown architecture ''"]),
        (["config", "scan", "--format", "yml"], ["'yml'"]),
        (["predict", "abc", "jump"], ["no folder of results at 'results'"]),
        (["list", "task"], ["'task'", "tasks, splits, architectures, instruments, presets, grids, runs"]),
        (["claims", "l1,p99"], ["unknown claim 'p99'"]),
        (["new", "architecture", "lstm"], ["there is an architecture 'lstm' already"]),
        (["grid", "--task", "copyin"], ["unknown task"]),
        (["grid", "scam"], ["unknown grid"]),
        (["grid", "missing.yaml"], ["can't read missing.yaml"]),
        (["grid"], ["a grid needs a task"]),
        (["grid", "--task", "copying", "--seed", "x"], ["'x'"]),
        (["grid", "--task", "copying", "--per-device", "0"], ["--per-device"]),
        (["grid", "--task", "copying", "--shard", "3/2"], ["--shard"]),
        (["grid", "--task", "copying", "--launcher", "lokal"], ["did you mean 'local'"]),
        (["grid", "--task", "copying", "--format", "json"], ["--dry-run"]),
        (["grid", "smoke", "--tier", "large"], ["unknown tier 'large'"]),
        (["grid", "--task", "copying", "--accelerator", "cuda", "--dry-run"], ["no CUDA device"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_input_is_one_line_with_exit_code_2_and_writes_nothing(words, facts, capsys):
    assert tfstudy(*words) == 2
    error = capsys.readouterr().err
    assert all(fact in error for fact in facts)
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tabel",), "did you mean 'table'?"),
        (("run", "scan", "--lr", "3"), "--lr"),
        (("grid", "--timeout", "abc"), "'--timeout': must be a number, but is 'abc'"),
        (("attention", "run", "a", "--head", "0"), "'--head': must be greater than or equal to 1, but is '0'"),
        (("run", "copying", "--seed", "0-2"), "but is '0-2'; for several seeds: tfstudy grid --seed 0-2"),
        (("run", "copying", "--seed", "-2"), "--seed must be one whole number from 0, but is '-2'"),
    ],
)
def test_wrong_words_are_answered_plainly_after_the_usage(words, message, capsys):
    assert tfstudy(*words) == 2
    error = capsys.readouterr().err
    assert message.lower() in " ".join(error.split()).lower()
    assert "Traceback" not in error


def test_an_empty_argument_is_refused_and_not_taken_for_everything(capsys):
    Path("results").mkdir()
    for words in ("table", "report --out a", "check --against a", "claims", "retry", "plot --out a"):
        assert tfstudy(*words.split(), "") == 2
        assert re.fullmatch(r"error: the argument (STUDY|ID) is empty; .*leave it out\n", capsys.readouterr().err)
    for words in (["measure", "", "entropy"], ["errors", "a", ""], ["result", ""]):
        assert tfstudy(*words) == 2
        assert re.search(r"(TARGET|RUN) is empty; give a value\n", capsys.readouterr().err)


def test_errors_fit_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    for words in (["list", "x" * 20], ["run", "scna"], ["run", "scan", f"--{'long-' * 30}"]):
        assert tfstudy(*words) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) > 1
        assert [line for line in lines if len(line) > 80 and " " in line] == []


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
    def ended(*_, **__):
        raise error

    monkeypatch.setattr("tfstudy.experiment.run.train", ended)
    assert tfstudy(*command()) == code
    text = capsys.readouterr().err
    assert all(fact in text for fact in facts)
    assert "Traceback" not in text
    monkeypatch.setattr("tfstudy.report.status.status_lines", ended)
    assert tfstudy("status") == code
    assert "same command again" not in capsys.readouterr().err, "this command resumes nothing"


def test_piped_output_has_no_codes(capsys):
    finish_run(Path("results/study/copying-copy/lstm/s0-00000000"))
    for words in (["status", "study"], ["list", "runs"], ["list", "tasks"], ["result", "study/lstm/s0"]):
        assert tfstudy(*words) == 0
        assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "mine", "--plugin", "a.py"], ["--plugin", "a.py", "run", "mine"]),
        (["--plugin=a.py", "run", "--plugin=b.py", "--smoke"], ["--plugin=a.py", "--plugin=b.py", "run", "--smoke"]),
        (["predict", "RUN", "--", "--plugin", "a"], ["predict", "RUN", "--", "--plugin", "a"]),
        ([], []),
    ],
)
def test_plugin_may_stand_after_the_command(words, expected):
    assert plugins_first(words) == expected


# Completion


@pytest.fixture
def completed(monkeypatch, capsys):
    """Return the words that bash is offered at the end of a line."""

    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_TFSTUDY_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        monkeypatch.setattr("sys.argv", ["tfstudy"])
        with pytest.raises(SystemExit):
            main()
        output = capsys.readouterr()
        assert not output.err
        return output.out.split()

    return complete


def test_names_are_completed(completed, tmp_path):
    write(tmp_path / "results" / "lengths", result(0, 0.2))
    for line, word in {
        "tfstudy ta": "table",
        "tfstudy run s": "scan",
        "tfstudy run scan --split len": "length",
        "tfstudy run scan --preset dessi": "dessi-2019",
        "tfstudy grid sc": "scan",
        "tfstudy grid --arch transformer,c": "transformer,cnn",
        "tfstudy table le": "lengths",
    }.items():
        offered = completed(line)
        assert word in offered, line
        assert all(one.startswith(line.split(" ")[-1]) for one in offered)
    assert completed("tfstudy run none --split ") == []
