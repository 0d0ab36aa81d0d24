"""Rows that fit a terminal; colour and bold only on one that shows them, and never with NO_COLOR."""

import io
import sys

import pytest
from rich.live import Live
from rich.text import Text

from tfstudy.cli.command_line import PrintableStream
from tfstudy.report.terminal import Terminal, columns, plain_table, show_lines, terminal_width


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


def test_a_terminal_shows_colour_and_bold_and_a_pipe_plain_text():
    assert "\x1b[1;31mfailed" in printed(force_terminal=True)
    assert "\x1b" not in printed()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_color_and_dumb_terminals_have_plain_text(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    text = printed(force_terminal=True)
    assert "\x1b" not in text
    assert text.splitlines()[0] == "failed"


def test_lines_are_not_wrapped_and_controls_are_escaped(capsys):
    show_lines(["a" * 200, Text("\x1b[2J", style="red")])
    assert capsys.readouterr().out == f"{'a' * 200}\n\\x1b[2J\n"


class TerminalText(io.StringIO):
    """A terminal whose text can be read."""

    def isatty(self) -> bool:
        return True


def test_a_live_display_of_a_command_redraws_in_place(monkeypatch):
    """Commands print to a stream that escapes control characters; those of a live display must reach the terminal."""
    out = TerminalText()
    monkeypatch.setattr(sys, "stdout", PrintableStream(out))
    with Live(console=Terminal(), auto_refresh=False) as live:
        live.update(Text("1 of 3\x1b[2J"), refresh=True)
        live.update(Text("2 of 3"), refresh=True)
        print("a line \x1b[2J")
    text = out.getvalue()
    assert "\x1b[2K" in text
    assert "1 of 3\\x1b[2J" in text
    assert "\x1b[2J" not in text


def test_without_a_terminal_each_row_is_a_line():
    assert terminal_width() == 0
    assert columns([("a", "word " * 40)]) == [f"a  {'word ' * 40}".rstrip()]
    assert columns([]) == []
