"""The help of `tfstudy`: commands in groups, on lines that are not cut."""

import pytest

from tests.code_blocks import check_command
from tests.commands import tfstudy
from tfstudy.cli import app
from tfstudy.cli.command_group import EXAMPLES, GROUPS


@pytest.mark.parametrize("columns", [80, 120])
def test_the_help_lists_every_command_once_in_its_group(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert tfstudy("--help") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines[1:] if line.endswith("...")]
    heads = [line.removesuffix(":") for line in lines if line and not line.startswith(" ")][1:]
    assert heads == [*GROUPS, "Options", "Examples"]
    listed = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("  -")]
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert listed.count(name) == 1, name


def test_without_words_the_whole_help_is_printed(capsys):
    assert tfstudy() == 2
    lines = capsys.readouterr().err.splitlines()
    assert "Examples:" in lines
    assert not [line for line in lines if "\\n" in line]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_ends_with_examples_that_are_valid_commands(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert tfstudy(*filter(None, [name]), "--help") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    shown = lines[lines.index("Examples:") + 1 :]
    assert [line.partition("#")[0].strip() for line in shown] == [command for command, _ in EXAMPLES[name]]
    for command, _ in EXAMPLES[name]:
        check_command(command.split())


def test_the_help_of_a_command_is_at_most_60_characters():
    for command in app.registered_commands:
        first = command.callback.__doc__.splitlines()[0]
        assert len(first) <= 60, first


def test_a_misspelt_command_names_the_nearest(capsys):
    assert tfstudy("tabel") == 2
    *usage, error = capsys.readouterr().err.splitlines()
    assert usage[0].startswith("Usage: ")
    assert error.startswith("error: ")
    assert "'table'" in error


def test_errors_fit_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    for words in (["list", "x" * 20], ["run", "scna"], ["run", "scan", f"--{'long-' * 30}"]):
        assert tfstudy(*words) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) > 1
        assert [line for line in lines if len(line) > 80 and " " in line] == []


def test_plug_ins_are_mentioned_only_where_no_name_is_near(capsys):
    for name, mentioned in (("scna", False), ("mine", True)):
        assert tfstudy("run", name) == 2
        assert ("--plugin" in capsys.readouterr().err) == mentioned


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("grid", "--timeout", "abc"), "'--timeout': must be a number, but is 'abc'"),
        (("attention", "run", "a", "--head", "0"), "'--head': must be greater than or equal to 1, but is '0'"),
        (("run", "copying", "--seed", "0-2"), "but is '0-2'; for several seeds: tfstudy grid --seed 0-2"),
        (("run", "copying", "--seed", "-2"), "--seed must be one whole number from 0, but is '-2'"),
        (("new", "architecture", "lstm"), "there is an architecture 'lstm' already"),
        (("claims", "l1,p99"), "unknown claim 'p99'"),
    ],
)
def test_a_wrong_value_is_said_in_plain_words(words, message, capsys):
    assert tfstudy(*words) == 2
    assert message in " ".join(capsys.readouterr().err.split())
