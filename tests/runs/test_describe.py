"""A run in one line."""

import json

import pytest

from tests.example_records import result, write
from tfstudy.runs import progress, reader
from tfstudy.runs.describe import describe_run
from tfstudy.runs.find import find_runs


@pytest.fixture
def path(tmp_path):
    [path] = find_runs(write(tmp_path / "study", result(0, 0.25)))
    return path


def test_a_finished_run_shows_its_state_and_its_first_metric(path):
    assert describe_run(path).split() == ["finished", "exact", "match", "25.0", "%", str(path)]


def test_the_result_is_read_once(path, monkeypatch):
    read = []
    monkeypatch.setattr(progress, "decode_result", lambda path: read.append(path) or reader.decode_result(path))
    monkeypatch.setattr(reader, "read_result", lambda path: pytest.fail("a second reading"))
    describe_run(path)
    assert read == [path]


@pytest.mark.parametrize("where", ["metrics", "slices", "seed"])
def test_every_part_of_a_result_is_checked(path, where):
    content = json.loads((path / "result.json").read_text())
    (content if where == "seed" else content["splits"]["test"])[where] = {"length": "many"}
    (path / "result.json").write_text(json.dumps(content))
    assert describe_run(path).startswith("failed ")
    assert "the result is broken" in describe_run(path)
