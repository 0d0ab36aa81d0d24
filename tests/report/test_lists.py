"""Rows and lines of what is available; the commands are tested with `tfstudy list`."""

import json

import pytest

from tests.example_records import result, write
from tests.report.test_run_summary import printed
from tfstudy.report.lists import KINDS, LISTS, TEXTS, described, runs_list
from tfstudy.runs import reader, status
from tfstudy.runs.find import find_runs


@pytest.fixture
def run(tmp_path):
    [path] = find_runs(write(tmp_path / "study", result(0, 0.25)))
    return path


def test_every_kind_with_rows_is_named_in_the_overview():
    named = [row["name"].split()[2] for row in KINDS]
    assert named == [*LISTS, "corpora"]


def test_where_a_plug_in_is_from_stands_below_it():
    rows = [
        {"name": "mine", "about": "a task", "origin": "plug-in: mine.py"},
        {"name": "scan", "about": "", "origin": ""},
    ]
    assert list(described(rows)) == ["mine  a task", "      plug-in: mine.py", "scan"]


def test_tasks_have_their_name_on_a_line_of_its_own():
    row = {"name": "mine", "about": "a task", "example": ["a -> b"], "splits": ["one", "two"], "origin": ""}
    lines = printed(*TEXTS["tasks"]([row])).splitlines()
    assert lines == ["mine", "  a task", "    a -> b", "  splits: one, two"]


def test_no_runs_are_said_to_be_none():
    assert list(TEXTS["runs"]([])) == ["no runs"]


def test_a_finished_run_has_its_state_and_its_first_metric(run):
    [row] = runs_list(run.parent)
    assert (row["state"], row["metric"], row["path"]) == ("finished", "exact match 25.0 %", str(run))


def test_a_result_is_read_once(run, monkeypatch):
    read = []
    monkeypatch.setattr(status, "decode_result", lambda path: read.append(path) or reader.decode_result(path))
    runs_list(run.parent)
    assert read == [run]


@pytest.mark.parametrize("where", ["metrics", "slices", "seed"])
def test_every_part_of_a_result_is_checked(run, where):
    content = json.loads((run / "result.json").read_text())
    (content if where == "seed" else content["splits"]["test"])[where] = {"length": "many"}
    (run / "result.json").write_text(json.dumps(content))
    [row] = runs_list(run.parent)
    assert row["state"] == "failed"
    assert "the result is broken" in row["reason"]
