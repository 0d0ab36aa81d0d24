"""Tables on a terminal: they fit its width, and name the columns that were left out and the notes below them."""

import os
import pty
import subprocess
import sys

import pytest
from rich.cells import cell_len

from tests.commands import tfstudy
from tests.example_records import result, write
from tests.report.table_studies import printed, two_architectures
from tfstudy.report.table_terminal import LEFT_OUT, LEFT_OUT_LAST
from tfstudy.report.tables import table


def text_before_notes(lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines[: lines.index("")]]


def left_out(lines: list[str]) -> list[str]:
    """The names of the columns that were left out."""
    text = " ".join(line.strip() for line in lines)
    names = text.partition("characters: ")[2].partition(";")[0]
    return [name.partition(" ")[0] for name in names.split(", ") if name]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("options", [{}, {"baseline": "lstm", "seeds": True}])
def test_no_line_is_wider_than_the_terminal(tmp_path, width, options):
    assert max(map(cell_len, printed(table(two_architectures(tmp_path), **options), width))) <= width


@pytest.mark.parametrize(("width", "options"), [(60, {}), (80, {"baseline": "lstm"}), (100, {"seeds": True})])
def test_results_are_not_folded(tmp_path, width, options):
    lines = printed(table(two_architectures(tmp_path), **options), width)
    words = " ".join(lines)
    assert all(text in words for text in ("82.0 [80.0, 84.0]", "19.8 [18.4, 21.2]", "50.0 [20.0, 80.0]"))


def test_a_line_ends_with_the_result_beside_the_published_figure(tmp_path):
    lines = text_before_notes(printed(table(two_architectures(tmp_path)), 80))
    [lstm] = [line for line in lines if "lstm" in line and "13.8" in line]
    assert lstm.rpartition("  ")[0].split("  ")[-1].strip() == "13.8 [lake-2018]†"
    assert lstm.endswith("  19.8 [18.4, 21.2]")


def test_the_notes_stand_below_the_table(tmp_path):
    found = table(two_architectures(tmp_path))
    lines = printed(found, 80)
    assert lines[0].split()[:2] == ["split", "architecture"]
    below = " ".join(line.strip() for line in lines[lines.index("") :])
    assert all(note[:40] in below for note in found.notes)


def test_columns_are_left_out_in_their_order_and_named(tmp_path):
    found = table(two_architectures(tmp_path), baseline="lstm")
    order = [*LEFT_OUT, *LEFT_OUT_LAST]
    previous: set[str] = set()
    for width in range(200, 50, -5):
        names = left_out(printed(found, width))
        assert previous <= set(names)
        present = [key for key in order if key in {*left_out(printed(found, 50))}]
        assert sorted(names, key=order.index) == present[: len(names)]
        previous = set(names)
    assert {"parameters", "p", "group"} <= previous
    assert left_out(printed(found, 200)) == []


def test_presets_that_differ_are_never_left_out(tmp_path):
    records = [result(0, experiment=name, run=f"0{name}") for name in ("e", "f")]
    lines = printed(table(write(tmp_path, *records), seeds=True, baseline="lstm dim=e"), 50)
    assert "preset" not in left_out(lines)


def test_long_settings_are_folded_between_words(tmp_path):
    found = table(two_architectures(tmp_path))
    settings = "decode.method=greedy data.subword_vocab_size=2000 model.dropout=0.3"
    line = found.lines[0]._replace(condition=found.lines[0].condition._replace(settings=settings))
    lines = [line.split() for line in printed(found._replace(lines=[line, *found.lines[1:]]), 100)]
    assert {"subword_vocab_size=2000", "dropout=0.3"} <= {word for line in lines for word in line}


def test_requested_columns_are_never_left_out(tmp_path):
    found = table(two_architectures(tmp_path), columns="parameters,arch,preset,oracle_length,L50,result,published,n")
    lines = printed(found, 80)
    assert left_out(lines) == []
    assert "parameters" in " ".join(lines)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_command_prints_for_people_on_a_terminal_and_markdown_elsewhere(tmp_path, terminal):
    two_architectures(tmp_path / "study")
    command = [sys.executable, "-m", "tfstudy", "table", "study", "--results", str(tmp_path)]
    environment = os.environ | {"COLUMNS": "80", "TERM": "xterm"}
    reader, writer = pty.openpty() if terminal else os.pipe()
    subprocess.run(command, stdout=writer, check=True, env=environment)
    os.close(writer)
    text = os.read(reader, 1_000_000).decode()
    os.close(reader)
    assert text.startswith("| split |") != terminal
    assert ("82.0 [80.0, 84.0]" in text) or terminal


def test_text_is_printed_on_request(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    two_architectures(tmp_path / "study")
    assert tfstudy("table", "study", "--format", "text", "--results", tmp_path) == 0
    out = capsys.readouterr().out
    assert max(map(cell_len, out.splitlines())) <= 80
    assert "|" not in out
    assert "\x1b" not in out
