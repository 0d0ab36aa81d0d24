"""Listings in every format: numbers and escapes, what fits a terminal, colour, and what LaTeX needs."""

import csv
import io
import json
import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from tfstudy.errors import UserError
from tfstudy.report.markup import FORMATS, MINUS, csv_text, ends, json_text, number, p_value, q_equals, significant
from tfstudy.report.render import Cells, Terminal, render, show, text_width

# Numbers and escapes


def test_numbers_have_a_minus_sign_and_no_negative_zero_but_a_difference_has_the_sign_of_its_exact_value():
    assert (number(-1.25), number(-0.01), number(math.nan)) == (f"{MINUS}1.2", "0.0", "")
    assert (number(2.0, "+"), number(0.0, "+"), ends(-1, 2, "+")) == ("+2.0", "+0.0", f"[{MINUS}1.0, +2.0]")
    assert (ends(-0.0003, 2, "+"), ends(0.0003, 2, "+")) == (f"[{MINUS}0.0, +2.0]", "[+0.0, +2.0]")


def test_a_significant_p_value_is_not_rounded_to_the_threshold_and_other_numbers_have_three_digits():
    assert [p_value(p) for p in (0.04949, 0.04999696, 0.05)] == [".049", "<.050", ".050"]
    assert q_equals(0.04999696) == "q < .050"
    values = (0.0321, -0.0321, 0, 99.94, 99.96)
    assert list(map(significant, values)) == ["0.0321", f"{MINUS}0.0321", "0.00", "99.9", "100"]


def test_json_has_null_for_nan_at_any_depth():
    assert json_text({"a": math.nan, "b": [-math.inf, (1.5, "ü\u202e")]}).split() == [
        '{', '"a":', 'null,', '"b":', '[', 'null,', '[', '1.5,', '"ü\\u202e"', ']', ']', '}',
    ]  # fmt: skip
    assert csv_text(pd.DataFrame({"n": pd.Series([3, None], dtype=object)})) == 'n\n3\n""\n', "whole numbers stay whole"


# Formats

ROWS = Cells(
    {"name": ["a|b", "=1+1"], "about": ["<script>", "two words"], "n": ["1", "2,000"]},
    title="A title",
    bold={"name": [True, False]},
)


def test_a_listing_has_its_title_lines_and_notes_in_every_format_and_values_as_json():
    texts = {name: render([ROWS, "a line"], ["a note", "<b>[x](y)"], name, values={"n": 1}) for name in FORMATS}
    assert json.loads(texts.pop("json")) == {"n": 1}
    rows = list(csv.reader(io.StringIO(texts.pop("csv"))))
    assert rows == [["name", "about", "n"], ["a|b", "<script>", "1"], ["'=1+1", "two words", "2,000"]]
    for name, text in texts.items():
        assert all(part in text for part in ("A title", "a line", "a note")), name
    assert texts["md"].startswith("A title\n\n| name | about | n |\n|---|---|---|\n| **a\\|b** | &lt;script> | 1 |")
    assert "<script>" not in texts["html"]
    assert "&lt;b&gt;" in texts["html"]
    assert "](y" not in texts["md"], "no link"
    assert r"\begin{tabular}{llr}" in texts["tex"]
    assert texts["text"].splitlines()[:3] == ["A title", "name  about          n", "a|b   <script>       1"]
    with pytest.raises(UserError, match="did you mean 'html'"):
        render([ROWS], (), "htm")


# On a terminal


@given(
    st.lists(st.lists(st.text("ab 日", max_size=30), min_size=2, max_size=2), min_size=1, max_size=4),
    st.integers(20, 90),
)
def test_no_line_is_wider_than_a_terminal_and_no_text_is_lost(rows, width):
    heads = ["a name", "b"]
    cells = Cells(dict(zip(heads, zip(*rows, strict=True), strict=True)), left=heads, folded=frozenset(heads))
    text = render([cells], (), "text", width=width)
    assert max(map(cell_len, text.splitlines())) <= width
    expected = "".join([*heads, *(cell for row in rows for cell in row)])
    assert sorted("".join(text.split())) == sorted("".join(expected.split()))


def test_a_table_wider_than_the_terminal_is_continued_below_and_heads_are_folded_only_if_that_helps():
    frame = {"name": ["x" * 20], "a long head": ["1"], "other": ["y" * 10]}
    lines = {width: render([Cells(frame)], (), "text", width=width).splitlines() for width in (60, 38, 32, 10)}
    assert lines[60][0].endswith("a long head  other")
    assert lines[38][-1] == "x" * 20 + "     1  yyyyyyyyyy"
    assert lines[32][-4:] == ["x" * 20 + "     1", "", "name                  other", "x" * 20 + "  yyyyyyyyyy"]
    assert max(map(len, lines[10])) <= 12, "as narrow as columns can be"
    path = Cells({"path": ["x" * 20], "settings": ["one two three " * 4]}, folded=frozenset(("path", "settings")))
    assert "x" * 20 in render([path], (), "text", width=40), "a path that can be copied"


def test_without_a_terminal_a_row_is_a_line():
    assert text_width() > 10_000
    text = render([Cells({"a": ["word " * 40]}, headless=True)], (), "text")
    assert text == f"{'word ' * 40}".rstrip() + "\n"


@pytest.mark.parametrize(("name", "value"), [("TERM", "xterm"), ("NO_COLOR", "1"), ("TERM", "dumb"), ("", "")])
def test_a_terminal_shows_colour_a_pipe_plain_text_and_neither_obeys_a_control(monkeypatch, name, value):
    for other in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv(name or "TERM", value or "xterm")
    out = io.StringIO()
    cells = Cells({"state": ["failed", "\x1b[2J"]}, title="title", styles={"failed": "bold red"})
    show([Text("line", "red"), cells], (), Terminal(file=out, width=80, force_terminal=bool(name)))
    text = out.getvalue()
    assert ("\x1b[1;31mfailed" in text) == (value == "xterm")
    assert ("\x1b" in text) == (value == "xterm")
    assert "\\x1b[2" in text
    assert "\x1b[2J" not in text
