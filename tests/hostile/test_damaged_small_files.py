"""Damaged small files of an unfinished run are cut back to what is sound, with one line, and the run goes on."""

import csv
import json
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tfstudy.runs.reader import read_environments, read_progress, read_test_reads, sound_metrics
from tfstudy.runs.repair import repair
from tfstudy.runs.schema import Environment, Progress
from tfstudy.runs.writer import RunFolder

METRICS = b"step,metric,value\n5,train_loss,1.5\n5,gradient_norm,inf\n10,train_loss,1.25e-05\n10,validation_loss,nan\n"
WITHOUT_THE_FIRST = METRICS.replace(b"5,train_loss,1.5\n", b"")
READS = b"test,run\r\ntest,evaluate\r\n"


@pytest.fixture
def run(tmp_path) -> Path:
    """The folder of an unfinished run, with all its small files."""
    folder = RunFolder(tmp_path, "")
    folder.metrics.write_bytes(METRICS)
    (tmp_path / "test_reads.csv").write_bytes(READS)
    folder.add_environment(Environment(device="cpu"))
    folder.write_progress(Progress(40, 10, attempt=3))
    return tmp_path


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_sound_files_are_left_as_they_are(run):
    before = contents(run)
    assert repair(run) == []
    assert contents(run) == before


def test_missing_and_empty_files_need_no_repair(run, tmp_path):
    for file in list(run.iterdir()):
        file.unlink()
    assert repair(tmp_path) == []
    for name in ("metrics.csv", "test_reads.csv"):
        (tmp_path / name).touch()
    assert repair(tmp_path) == []


@pytest.mark.parametrize("length", range(len(METRICS)))
def test_metrics_truncated_anywhere_are_those_of_a_killed_process(run, length):
    (run / "metrics.csv").write_bytes(METRICS[:length])
    assert repair(run) == []
    RunFolder(run, "").rewind(10)
    assert METRICS.startswith((run / "metrics.csv").read_bytes())


DAMAGES = {
    "binary": (lambda content: bytes(range(256)) * 3, b""),
    "binary lines": (lambda content: content + b"\xff\xfe\n\x00\x01\n", METRICS),
    "a tail of NULs": (lambda content: content + bytes(4096), METRICS),
    "NULs and more rows": (lambda content: content + bytes(512) + b"\n", METRICS),
    "a letter in a step": (lambda content: content.replace(b"5,train", b"x,train"), WITHOUT_THE_FIRST),
    "a comma in a value": (lambda content: content.replace(b"1.5", b"1,5"), WITHOUT_THE_FIRST),
    "another header": (lambda content: content.replace(b"step", b"stop"), METRICS),
    "a step of 5,000 digits": (lambda content: content + b"1" * 5000 + b",train_loss,1\n", METRICS),
    "a terminal's control": (lambda content: content + b"15,\x1b[2J,1\n", METRICS),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_metrics_are_cut_back_to_their_whole_rows(run, name):
    damage, sound = DAMAGES[name]
    damaged = damage(METRICS)
    (run / "metrics.csv").write_bytes(damaged)
    [line] = repair(run)
    assert line.startswith(f"{run / 'metrics.csv'} was damaged and is cut back to its ")
    assert (run / "metrics.csv").read_bytes() == (sound or b"step,metric,value\n")
    assert (run / "metrics.broken-1.csv").read_bytes() == damaged
    assert repair(run) == []
    RunFolder(run, "").rewind(5)
    assert all(row[0] <= 5 for row in sound_metrics((run / "metrics.csv").read_bytes()))


@pytest.mark.parametrize(
    ("damage", "reads"),
    [
        (lambda content: bytes(range(256)) * 600, {}),
        (lambda content: content + bytes(4096), {"test": 2}),
        (lambda content: content + b"\xff\xfe\n", {"test": 2}),
        (lambda content: content + b"x" * 200_000 + b",run\n", {"test": 2}),
        (lambda content: content + b'"open,run\n', {"test": 2}),
        (lambda content: content[:10] + b"te\x1bst,run\r\n", {"test": 1}),
        (lambda content: content + b"a,b,c\n", {"test": 2}),
    ],
)
def test_damaged_counts_of_test_reads_are_cut_back(run, damage, reads):
    (run / "test_reads.csv").write_bytes(damage(READS))
    assert read_test_reads(run) == reads
    [line] = repair(run)
    assert f"{run / 'test_reads.csv'} was damaged" in line
    RunFolder(run, "").count_read("test", "run")
    assert read_test_reads(run) == {"test": reads.get("test", 0) + 1}
    assert repair(run) == []


def test_every_truncation_of_the_counts_is_readable_and_can_grow(run):
    for length in range(len(READS)):
        (run / "test_reads.csv").write_bytes(READS[:length])
        repair(run)
        before = read_test_reads(run).get("test", 0)
        RunFolder(run, "").count_read("test", "run")
        assert read_test_reads(run)["test"] == before + 1
        with (run / "test_reads.csv").open(newline="") as file:
            assert all(len(row) == 2 for row in csv.reader(file))


@pytest.mark.parametrize("content", [b"", b"[", b"{}", b"\x00" * 99, b"[5]", b"[" * 100_000, b'[{"versions": 5}]'])
def test_a_damaged_record_of_the_environment_is_kept_and_starts_again(run, content):
    (run / "env.json").write_bytes(content)
    assert read_environments(run) == []
    [line] = repair(run)
    assert line == f"{run / 'env.json'} can't be read and starts again (kept as env.broken-1.json)"
    assert (run / "env.broken-1.json").read_bytes() == content
    RunFolder(run, "").add_environment(Environment(device="cuda"))
    assert [entry.device for entry in read_environments(run)] == ["cuda"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"steps": -1}', b'{"steps":' + b"[" * 100_000])
def test_a_damaged_report_of_progress_is_kept_and_starts_again(run, content):
    (run / "progress.json").write_bytes(content)
    [line] = repair(run)
    assert "progress.json can't be read" in line
    assert read_progress(run) is None


SMALL = ["run", "copying", "--arch", "lstm", "--accelerator", "cpu", "--set", "model.dim=8", "--set", "train.steps=4"]
SMALL += ["--set", "train.warmup_steps=1", "--set", "data.train_examples=40", "--set", "data.eval_examples=8"]


def test_a_run_of_which_all_small_files_are_damaged_goes_on_to_the_same_result(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert tfstudy(*SMALL) == 0
    [path] = Path("results/runs").glob("*/*/s*")
    predictions = {file: file.read_bytes() for file in path.glob("predictions/*")}
    splits = json.loads((path / "result.json").read_text())["splits"]
    names = ["metrics.csv", "test_reads.csv", "env.json", "progress.json"]
    (path / "result.json").unlink()
    for name in [*names, "failed.json", "scores.json", "extended.json"]:
        (path / name).write_bytes(bytes(range(256)) * 20)
    capsys.readouterr()
    assert tfstudy(*SMALL) == 0
    captured = capsys.readouterr()
    assert [sum(name in line and "kept as" in line for line in captured.err.splitlines()) for name in names] == [1] * 4
    assert json.loads((path / "result.json").read_text())["splits"] == splits
    assert {file: file.read_bytes() for file in path.glob("predictions/*")} == predictions
