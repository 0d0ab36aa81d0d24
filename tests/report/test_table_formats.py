"""Tables in every format: published figures, LaTeX, the terminal, and `tfstudy.table`."""

import csv
import html
import io
import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tfstudy
from tests.commands import refused
from tests.commands import tfstudy as command
from tests.example_records import result, three_architectures, write
from tests.example_tables import rows
from tfstudy.analysis.published import beside
from tfstudy.errors import UserError
from tfstudy.report.notes import Note
from tfstudy.report.tables import table

HOSTILE = r"a_b&c%d$e#f{g}h~i^j\k|l"  # a name with every character that LaTeX reads as something else


def two_architectures(study: Path) -> Path:
    """Five seeds of a CNN and of an LSTM on `length`, which differ, and one seed of an LSTM on `simple`."""
    high = [result(seed, 0.8 + seed / 100, arch="cnn", experiment="c", run=f"c{seed}") for seed in range(5)]
    low = [result(seed, 0.2 - (-1) ** seed / 100) for seed in range(5)]
    return write(study, *high, *low, result(0, 0.5, split="simple", experiment="s", run="50"))


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    return two_architectures(tmp_path_factory.mktemp("results") / "study")


@pytest.fixture(scope="module")
def compared(study):
    return table(study, baseline="lstm")


@pytest.mark.parametrize("name", ["text", "md", "tex"])
def test_a_table_matches_the_golden_file(tmp_path, monkeypatch, name):
    """tests/report/golden/ holds tables that were checked by eye; check them again after changing them on purpose."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    # the golden files do not follow today's presets
    monkeypatch.setattr("tfstudy.report.notes.preset_text", lambda one: f"preset {one.preset}")
    study = two_architectures(Path("study"))
    unfinished = study / "scan-length" / "lstm" / "s9-09"
    unfinished.mkdir()
    (unfinished / "config.yaml").write_text("")
    text = table(study, baseline="lstm", results=".").render(name)
    assert text == (Path(__file__).parent / "golden" / f"table.{name}").read_text()


def test_every_cell_is_in_html_and_every_number_in_csv_and_json_and_every_paper_in_bib(compared):
    cells = [cell for part in compared.listing("html").parts for own in part.frame.values() for cell in own]
    assert all(html.escape(cell) in compared.render("html") for cell in cells)
    tree, lines = json.loads(compared.render("json")), list(csv.DictReader(io.StringIO(compared.render("csv"))))
    assert [row["mean"] for row in tree["rows"]] == list(compared.rows["mean"]) == [float(one["mean"]) for one in lines]
    for row, line in zip(tree["rows"], lines, strict=True):
        assert list(row) == list(line)
        assert line["each_seed"] == " ".join(f"{seed}:{value:g}" for seed, value in row["each_seed"].items())
        for key, value in row.items():
            if isinstance(value, int | float | None) and not isinstance(value, bool):
                assert line[key] == ("" if value is None else str(value))
    assert len(tree["notes"]) == len(compared.notes)
    assert re.findall(r"^@\w+\{([\w-]+),", compared.render("bib"), re.MULTILINE) == ["dessi-2019", "lake-2018"]


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["studdy"], "did you mean 'study'"),
        (["study", "--metric", "exact_mtch"], "did you mean 'exact_match'"),
        (["study", "--baseline", "lstn"], "did you mean 'lstm'"),
        (["study", "--by", "lenght"], "unknown tag 'lenght'"),
        (["study", "--format", "markdown"], "expected one of: text, md, csv, tex, html, json, bib"),
        (["study", "--runs", "--notes"], "only --format and --results go with it"),
    ],
)
def test_unknown_names_and_options_that_do_not_apply_are_refused(study, capsys, words, message):
    assert message in refused(capsys, "table", *words, "--results", study.parent)


# Published figures


def test_figures_are_of_the_same_kind_of_network_one_of_each_paper_and_never_a_maximum(tmp_path):
    [one] = rows(write(tmp_path, result(0)))
    for split in ("length", "template_around_right", "addprim_jump", "mcd1", "simple"):
        for arch in ("cnn", "lstm", "transformer"):
            found = beside(one._replace(split=split, arch=arch), "exact_match")
            assert len({one.figure.paper for one in found}) == len(found)
            assert not [one.figure.id for one in found if one.figure.value_kind == "max"]
            assert {(one.figure.family, one.figure.method) for one in found} <= {(arch, "plain")}
    files = one._replace(task="pairs", split="given", test="gen", arch="lstm", corpus="COGS-2")
    assert "32 [kim-2020]†" in map(str, beside(files, "exact_match")), "a folder named after a data set has its figures"
    assert beside(files._replace(corpus="co"), "exact_match") == []


# LaTeX and the terminal


def test_names_are_escaped_in_latex(compared):
    names = [HOSTILE, "[x]", "*y\nz"]
    hostile = compared.rows.assign(split_label=names, preset_label=names, arch=names)
    renamed = replace(compared, rows=hostile, notes=[Note("", "one\ntwo % three")], baseline=HOSTILE)
    text = renamed.render("tex", notes=True)
    escaped = r"a\_b\&c\%d\$e\#f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k\textbar{}l"
    assert all(f"\n{name} & " in text for name in (escaped, "{}[x]", "{}*y z")), "a row is no option of the one before"
    assert "architecture & {}[x] & {}*y z" in text.replace(f" & {escaped}", "")
    assert f"difference from {escaped} in points" in text
    assert "% one two % three\n" in text


def test_the_command_prints_for_people_on_a_terminal(study):
    words = [sys.executable, "-m", "tfstudy", "table", "study", "--results", str(study.parent)]
    reader, writer = pty.openpty()
    subprocess.run(words, stdout=writer, check=True, env=os.environ | {"COLUMNS": "80", "TERM": "xterm"})
    text = os.read(reader, 1_000_000).decode()
    os.close(writer)
    os.close(reader)
    assert "| architecture |" not in text
    assert "82.0 a [80.0, 84.0]" in re.sub(r"\x1b\[[\d;]*m", "", text)


# In Python


def test_the_table_is_what_the_command_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    three_architectures(tmp_path / "results")
    table = tfstudy.table(baseline="lstm")
    for name, text in (("", table.render("md")), ("html", table._repr_html_()), ("text", repr(table))):
        assert command("table", "--baseline", "lstm", "--format", name) == 0
        assert capsys.readouterr().out == text
    assert list(table.frame["arch"]) == ["cnn", "lstm", "transformer"]
    with pytest.raises(UserError, match="did you mean 'tex'"):
        table.render("latex")
