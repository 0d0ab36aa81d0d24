"""Rows and lines of what is available; the commands are tested with `tfstudy list`."""

from tests.report.test_run_summary import printed
from tfstudy.report.lists import KINDS, LISTS, TEXTS, described


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
