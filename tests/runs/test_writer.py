"""Files of a run appear complete or not at all; metrics grow by whole lines."""

import errno
import gzip
import json
import os
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import command, folder
from tfstudy import tasks
from tfstudy.runs.files import write_atomically
from tfstudy.runs.reader import read_predictions, read_result
from tfstudy.runs.schema import Lengths, Prediction, Result, Slice, SplitScores
from tfstudy.runs.writer import RunFolder
from tfstudy.training.loggers import MetricsFile


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def test_the_result_is_the_last_file_of_a_run():
    assert tfstudy(*command()) == 0
    times = {path.name: path.stat().st_mtime_ns for path in folder().rglob("*") if path.is_file()}
    assert max(times, key=times.get) == "result.json"
    names = {"config.yaml", "env.json", "metrics.csv", "train.log", "result.json", "test_reads.csv"}
    assert names <= times.keys()
    assert not list(folder().rglob("*.part"))


def test_a_file_that_can_not_be_finished_is_not_there_at_all(tmp_path, monkeypatch):
    write_atomically(tmp_path / "old.json", b"old")

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "replace", fail)
    for name in ("result.json", "old.json"):
        with pytest.raises(OSError, match="Input/output error"):
            write_atomically(tmp_path / name, b"new")
    assert not (tmp_path / "result.json").exists()
    assert (tmp_path / "old.json").read_bytes() == b"old"
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_a_run_whose_result_can_not_be_written_is_not_finished(monkeypatch, capsys):
    replace = os.replace

    def fail(source, target):
        if Path(target).name == "result.json":
            raise OSError(errno.EIO, "Input/output error", str(target))
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        assert tfstudy(*command()) == 1
    err = capsys.readouterr().err
    assert "Input/output error" in err
    assert "Traceback" not in err
    assert not (folder() / "result.json").exists()
    assert not list(folder().rglob("*.part"))
    assert tfstudy(*command()) == 0
    assert "resuming after step 40 of 40" in capsys.readouterr().err


def example_result(**more) -> Result:
    fields = {"run": "0" * 64, "experiment": "e", "task": "copying", "split": "copy", "arch": "lstm", "seed": 0}
    return Result(**fields | {"status": "finished", "smoke": False} | more)


@pytest.mark.parametrize(
    "problem",
    [
        {"train_seconds": float("nan")},
        {"splits": {"test": SplitScores.create("test", {"n": 2, "metrics": {"exact_match": float("nan")}})}},
        {"splits": {"test": SplitScores.create("test", {"n": 2, "slices": {"length": {"3": {"n": float("inf")}}}})}},
    ],
    ids=["seconds", "metric", "slice"],
)
def test_a_result_with_an_impossible_number_is_not_written(problem, tmp_path):
    with pytest.raises(ValueError, match=r"Expected `(float|int)`, got `null`"):
        RunFolder(tmp_path, "0" * 64).finish(example_result(**problem))
    assert not (tmp_path / "result.json").exists()


def test_a_result_is_read_as_it_was_written(tmp_path):
    part = {"n": 2, "metrics": {"exact_match": 0.5}, "exact_match_interval": (0.1, 0.9)}
    scores = SplitScores.create("test", part | {"slices": {"length": {"3": part}}, "mean_over_lengths": {"x": 0.5}})
    result = example_result(splits={"test": scores}, lengths=Lengths(3, None, 3, {"3": {"n": 2, "exact_match": 0.5}}))
    RunFolder(tmp_path, "0" * 64).finish(result)
    found = read_result(tmp_path)
    assert found.splits["test"].slices["length"]["3"] == Slice(2, {"exact_match": 0.5}, (0.1, 0.9))
    assert found.lengths == result.lengths
    assert json.loads((tmp_path / "result.json").read_text())["splits"]["test"]["slices"]["length"]["3"]["n"] == 2
    RunFolder(tmp_path, "0" * 64).finish(found)
    assert read_result(tmp_path).splits["test"].slices == found.splits["test"].slices


def test_the_same_predictions_are_the_same_bytes(tmp_path, monkeypatch):
    rows = [Prediction("ä", "b c", "b c", "b", 0.5, {"length": 2}), Prediction("", "", "")]
    writer = RunFolder(tmp_path, "0" * 64)
    written = []
    for now in (1.0, 1e9):
        monkeypatch.setattr("time.time", lambda now=now: now)
        writer.write_predictions("test", rows)
        written.append((tmp_path / "predictions/test.jsonl.gz").read_bytes())
    assert written[0] == written[1]
    assert gzip.decompress(written[0]).decode().splitlines()[0] == (
        '{"source": "ä", "target": "b c", "prediction": "b c", "oracle_length": "b", "teacher_forced_accuracy": 0.5, '
        '"tags": {"length": 2}}'
    )
    assert read_predictions(tmp_path, "test") == rows


def test_rewinding_drops_later_rows_and_a_half_written_last_line(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("step,metric,value\n5,a,1.0\n10,a,2.0\n10,b,3.0\n15,a,4.0\n10,hal")
    RunFolder(tmp_path, "").rewind(10)
    assert path.read_text() == "step,metric,value\n5,a,1.0\n10,a,2.0\n10,b,3.0\n"
    RunFolder(tmp_path, "").rewind(0)
    assert path.read_text() == "step,metric,value\n"


def test_a_half_written_header_is_written_again(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("step,met")
    RunFolder(tmp_path, "").rewind(0)
    MetricsFile(path).log_metrics({"a": 1.0}, 5)
    assert path.read_text() == "step,metric,value\n5,a,1.0\n"


def test_metrics_have_one_header_and_one_row_for_each_step_and_name(finished_run):
    finished_run()
    header, *rows = (folder() / "metrics.csv").read_text().splitlines()
    assert header == "step,metric,value"
    keys = [tuple(row.split(",")[:2]) for row in rows]
    assert len(keys) == len(set(keys)) == 8 * 3 + 4 * 3
    assert {key[0] for key in keys if key[1] == "validation_loss"} == {"10", "20", "30", "40"}
    assert [int(key[0]) for key in keys] == sorted(int(key[0]) for key in keys)
