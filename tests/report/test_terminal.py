"""Rows that fit a terminal; colour and bold only on one that shows them, and never with NO_COLOR."""

import io
import sys

import pytest
from rich.cells import cell_len
from rich.live import Live
from rich.text import Text

from tfstudy.cli.command_line import PrintableStream
from tfstudy.report.terminal import Terminal, coloured, columns, plain_table, shortened, show_lines, terminal_width


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


def test_the_last_column_is_wrapped_under_itself():
    lines = columns([("a", "word " * 10), ("long", "text")], width=37)
    assert lines[0].startswith("a     word")
    assert lines[1].startswith("      word")
    assert lines[-1] == "long  text"
    assert max(map(len, lines)) <= 37


def test_without_a_terminal_each_row_is_a_line():
    assert terminal_width() == 0
    assert columns([("a", "word " * 40)]) == [f"a  {'word ' * 40}".rstrip()]
    assert columns([]) == []


def test_a_column_is_shortened_so_that_the_last_one_has_room():
    rows = [("s0-1a2b3c4d", "positions=sinusoidal, learning_rate=0.001", "step 12,000 of 50,000, 2 h 6 min left")]
    [line] = columns(rows, width=80, cut=(1,))
    assert len(line) <= 80
    assert line.endswith("step 12,000 of 50,000, 2 h 6 min left")
    assert "positions" in line
    assert "=0.001" in line
    assert shortened("scan-addprim_turn_left", 14) == "scan-...n_left"
    assert cell_len(shortened("私は毎日日本語を勉強します", 13)) <= 13


def test_the_state_of_a_run_has_its_colour():
    text = coloured("failed  name")
    assert [(span.start, span.end, span.style) for span in text.spans] == [(0, 6, "red")]
    assert not coloured("unknown  failed").spans
    assert not coloured("failed/lstm").spans
