"""`tfstudy.table`: the same table as text, HTML and a pandas frame."""

from pathlib import Path

import pytest

import tfstudy
from tests.commands import tfstudy as command
from tests.example_records import result, rival, three_architectures, write
from tfstudy.errors import UserError


@pytest.fixture(autouse=True)
def _study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    three_architectures(tmp_path / "results")


def test_the_table_is_what_the_command_prints(capsys):
    table = tfstudy.table(baseline="lstm", columns=["arch", "n", "result"])
    for name, text in (("md", table.render("md")), ("html", table._repr_html_()), ("text", repr(table))):
        assert command("table", "--baseline", "lstm", "--columns", "arch,n,result", "--format", name) == 0
        assert capsys.readouterr().out == text
    assert r"\caption{The caption}" in table.render("tex", caption="The caption")
    assert table.notes


def test_a_study_is_named_if_there_are_several(capsys):
    write(Path("several/one"), result(0), result(1))
    write(Path("several/two"), rival(0, 0.5))
    with pytest.raises(UserError, match="name a study: one, two"):
        tfstudy.table(results="several")
    commands = (["table"], ["plot", "--out", "a.svg"], ["report", "--out", "a"], ["check", "--against", "a.json"])
    for words in commands:
        assert command(*words, "--results", "several") == 2
        assert "name a study: one, two; or 'several' for all" in capsys.readouterr().err
    assert command("table", "several", "--results", "several", "--format", "md") == 0
    assert len(tfstudy.table("several", results="several")) == 2


@pytest.mark.parametrize("study", ["results/study/scan-length", "elsewhere/one", "elsewhere", "results"])
def test_the_command_and_python_find_the_same_study(study, capsys):
    write(Path("elsewhere/one"), result(0), result(1))
    try:
        expected = 0, tfstudy.table(study).render("md"), ""
    except UserError as error:
        expected = 2, "", f"error: {error}\n"
    assert (command("table", study, "--format", "md"), *capsys.readouterr()) == expected
    assert (expected[0] == 0) == (study != "results/study/scan-length")


def test_the_frame_has_a_row_for_each_line_and_values_in_percent():
    table = tfstudy.table(by="arch")
    frame = table.frame
    assert len(frame) == len(table) == 3
    assert list(frame["arch"]) == sorted(frame["arch"])
    lstm = frame[frame["arch"] == "lstm"].iloc[0]
    assert (lstm["n"], lstm["mean"]) == (4, pytest.approx(21.5))
    assert lstm["low"] < lstm["mean"] < lstm["high"]


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ({"study": "studdy"}, "did you mean"),
        ({"metric": "exact_mtch"}, "did you mean 'exact_match'"),
        ({"baseline": "lstn"}, "did you mean 'lstm'"),
        ({"columns": ["arhc"]}, "did you mean 'arch'"),
        ({"results": "nowhere"}, "no folder of results"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest_match(arguments, fact):
    with pytest.raises(tfstudy.UserError, match=fact):
        tfstudy.table(**arguments)


def test_an_unknown_format_is_an_error_with_the_nearest_match():
    with pytest.raises(tfstudy.UserError, match="did you mean 'tex'"):
        tfstudy.table().render("latex")
