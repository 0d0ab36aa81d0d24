"""`tfstudy check` writes its files whatever its exit code."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.commands import tfstudy
from tests.example_records import result, write
from tfstudy.cli.check_command import files_of

FILES = ("--junit", "junit.xml", "--summary", "summary.md")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def baseline(capsys) -> str:
    """The table of a study of two seeds."""
    write(Path("results/s"), result(0, 0.5), result(1, 0.6))
    assert tfstudy("table", "s", "--format", "json") == 0
    Path("baseline.json").write_text(capsys.readouterr().out)
    return "baseline.json"


def written_error() -> str:
    """The message in both files, which hold one error and nothing else."""
    suite = ElementTree.parse("junit.xml").getroot()
    assert suite.tag == "testsuite"
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "1",
        "failures": "0",
        "errors": "1",
        "skipped": "0",
    }
    [error] = suite.findall("testcase/error")
    assert all(line in Path("summary.md").read_text() for line in error.get("message").splitlines())
    return error.get("message")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("s", "--against", "nothing.json"), "can't read nothing.json: No such file or directory"),
        (("s", "--against", "baseline.json", "--tolerance", "-1"), "--tolerance"),
        (("s", "--against", "baseline.json", "--tolerence", "1"), "--tolerence"),
        (("s",), "--against"),
        (("t", "--against", "baseline.json"), "unknown study 't'"),
        (("s", "--against", "baseline.json", "--results", "elsewhere"), "elsewhere"),
        (("s", "--against", "broken.json"), "broken.json is not a table"),
    ],
)
def test_an_error_is_written_to_both_files(words, message, baseline, capsys):
    Path("broken.json").write_text("{")
    assert tfstudy("check", *words, *FILES) == 2
    assert message in written_error()
    assert message in capsys.readouterr().err


def test_a_study_without_runs_is_an_error_in_both_files(baseline):
    Path("results/empty").mkdir()
    assert tfstudy("check", "empty", "--against", baseline, *FILES) == 2
    assert written_error()


def test_a_finished_check_is_no_error_whatever_its_exit_code(baseline):
    assert tfstudy("check", "s", "--against", baseline, *FILES) == 0
    write(Path("results/t"), *(result(seed, value) for seed, value in enumerate((0.1, 0.2))))
    assert tfstudy("check", "t", "--against", baseline, *FILES) in (0, 1)
    suite = ElementTree.parse("junit.xml").getroot()
    assert suite.get("errors") == "0"
    assert suite.findall("testcase")


def test_help_writes_nothing(capsys):
    assert tfstudy("check", "--help", *FILES) == 0
    assert "--against" in capsys.readouterr().out
    assert not list(Path().iterdir())


def test_the_summary_is_written_if_the_junit_file_cannot_be(baseline, capsys):
    Path("folder").mkdir()
    assert tfstudy("check", "s", "--against", baseline, "--junit", "folder", "--summary", "new/summary.md") == 2
    shown = capsys.readouterr()
    assert "can't write folder: Is a directory" in shown.err
    assert Path("new/summary.md").read_text() in shown.out


def test_results_stay_in_the_junit_file_if_the_summary_cannot_be_written(baseline, capsys):
    Path("file").touch()
    assert tfstudy("check", "s", "--against", baseline, "--junit", "new/junit.xml", "--summary", "file/s.md") == 2
    assert "can't write file/s.md: no such folder" in capsys.readouterr().err
    suite = ElementTree.parse("new/junit.xml").getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("1", "0")


def test_both_files_that_cannot_be_written_are_named(baseline, capsys):
    Path("file").touch()
    assert tfstudy("check", "s", "--against", baseline, "--junit", "file/j.xml", "--summary", "file/s.md") == 2
    message = capsys.readouterr().err
    assert "can't write file/j.xml: no such folder; can't write file/s.md: no such folder" in message


def test_an_error_is_written_to_the_summary_if_the_junit_file_cannot_be(capsys):
    Path("file").touch()
    assert tfstudy("check", "s", "--junit", "file/j.xml", "--summary", "new/s.md") == 2
    assert "--against" in Path("new/s.md").read_text()
    assert "--against" in capsys.readouterr().err


def test_the_files_are_found_on_an_invalid_command_line():
    assert files_of(["s", "--junit=a.xml", "--tolerence", "--summary", "b.md"]) == {
        "--junit": Path("a.xml"),
        "--summary": Path("b.md"),
    }
    assert files_of(["--junit"]) == {}
