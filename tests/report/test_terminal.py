"""Colour and bold: only on a terminal that shows them, and never with NO_COLOR."""

import io

import pytest
from rich.text import Text

from tfstudy.report.terminal import Terminal, plain_table, show_lines


def printed(**options) -> str:
    out = io.StringIO()
    console = Terminal(file=out, width=80, **options)
    console.print(Text("failed", style="bold red"))
    table = plain_table("title")
    table.add_column("head")
    table.add_row("cell", style="bold")
    console.print(table)
    return out.getvalue()


@pytest.fixture(autouse=True)
def _terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def test_a_terminal_shows_colour_and_bold():
    assert "\x1b[1;31mfailed" in printed(force_terminal=True)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_color_and_dumb_terminals_have_plain_text(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    text = printed(force_terminal=True)
    assert "\x1b" not in text
    assert text.splitlines()[0] == "failed"


def test_a_pipe_has_plain_text():
    assert "\x1b" not in printed()


def test_lines_are_not_wrapped_and_controls_are_escaped(capsys):
    show_lines(["a" * 200, Text("\x1b[2J", style="red")])
    assert capsys.readouterr().out == f"{'a' * 200}\n\\x1b[2J\n"
