"""Files of a run appear complete or not at all, also on a full disk; damaged and edited ones are refused and kept."""

import errno
import fcntl
import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_study import CONFIG
from tests.example_task import TASK, added
from tests.interrupted_runs import assert_same, at_row, command, folder, killed
from tfstudy import tasks
from tfstudy.config.resolve import resolve
from tfstudy.errors import UserError
from tfstudy.runs.files import BusyError, is_locked, write_atomically
from tfstudy.runs.identity import identify
from tfstudy.runs.schema import Lengths, Prediction, Result, Resumed, Slice, SplitScores
from tfstudy.runs.store import read_predictions, read_result
from tfstudy.runs.writer import RunFolder, add_events, write_run


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def test_the_result_is_the_last_file_of_a_run():
    assert tfstudy(*command()) == 0
    times = {path.name: path.stat().st_mtime_ns for path in folder().rglob("*") if path.is_file()}
    assert max(times, key=times.get) == "result.json"
    names = {"config.yaml", "events.jsonl", "metrics.csv", "train.log", "result.json"}
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


def test_a_full_disk_names_the_file_that_can_not_be_written(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for name, write in {
        "config.yaml": lambda: write_atomically(tmp_path / "config.yaml", b"new"),
        "events.jsonl": lambda: add_events(tmp_path, Resumed(step=1)),
    }.items():
        with pytest.raises(OSError, match="No space left") as error:
            write()
        assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(tmp_path / name))


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
    (tmp_path / "config.yaml").touch()
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


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 300 kB, and a function that enlarges it."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = shutil.which("mount")
    done = (
        subprocess.run([mount, "-t", "tmpfs", "-o", "size=300k", "none", path], capture_output=True) if mount else None
    )
    if not done or done.returncode:
        pytest.skip("may not mount a file system here")
    try:
        yield path, lambda: subprocess.run([mount, "-o", "remount,size=50m", path], check=True)
    finally:
        subprocess.run(["umount", path], check=True)


def test_a_really_full_disk_is_reported_and_the_same_command_resumes_with_space(small_disk, capsys):
    path, enlarge = small_disk
    assert tfstudy(*command(), "--results", path / "results") == 1
    err = capsys.readouterr().err
    assert f"No space left on device: {path}/results/" in err
    assert "Traceback" not in err
    assert not list(path.rglob("result.json"))
    enlarge()
    assert tfstudy(*command(), "--results", path / "results") == 0
    assert tfstudy(*command(), "--results", "others") == 0
    assert_same(folder(path / "results"), folder(Path("others")))


ATTEMPT = ("events.jsonl", ".progress")  # every attempt adds to these


def files(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file() and file.name != ".lock"}


def interrupted(step: int = 15) -> Path:
    """A run that was killed at this step, with a checkpoint at 10."""
    killed(command(), at_row(step))
    return folder()


@pytest.mark.parametrize(
    "damage",
    [lambda content: content[: len(content) // 2], lambda content: content[:2000] + bytes(500) + content[2500:]],
    ids=["truncated", "overwritten"],
)
def test_a_run_with_a_damaged_checkpoint_goes_back_to_the_one_before(damage, capsys, undisturbed):
    path = interrupted(25)
    checkpoint = path / "checkpoints/last.ckpt"
    damaged = damage(checkpoint.read_bytes())
    checkpoint.write_bytes(damaged)
    assert tfstudy(*command()) == 0
    err = capsys.readouterr().err
    assert f"{checkpoint} is damaged and is not used (kept as last.ckpt.damaged)" in err
    assert "resuming after step 10" in err
    assert checkpoint.with_name("last.ckpt.damaged").read_bytes() == damaged
    assert not checkpoint.with_name("previous.ckpt").exists(), "once the run is finished"
    assert_same(path, undisturbed(command()))


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("steps: 40", "steps: 50"),
        lambda _: "- a list",
        lambda text: text + "extra: 1\n",
    ],
)
@pytest.mark.parametrize("finished", [False, True])
def test_an_edited_config_is_refused_and_nothing_is_changed(edit, finished, capsys):
    path = interrupted(40 if finished else 5)
    if finished:
        (path / "result.json").write_text("{}")
    config = path / "config.yaml"
    config.write_text(edit(config.read_text()))
    before = files(path)
    assert tfstudy(*command()) == 2
    assert f"{config} was edited" in capsys.readouterr().err
    assert files(path) == before


def test_a_result_of_another_format_is_refused(tmp_path, capsys):
    path = interrupted(5)
    (path / "result.json").write_text('{"format": 99, "run": "x"}')
    with pytest.raises(UserError, match=r"result\.json.* format 99"):
        read_result(path)
    assert tfstudy(*command()) == 2
    assert "format 99" in capsys.readouterr().err


def test_looking_at_a_lock_neither_takes_nor_creates_it(tmp_path):
    assert not is_locked(tmp_path)
    assert not (tmp_path / ".lock").exists()
    (tmp_path / ".lock").touch()
    with (tmp_path / ".lock").open("rb") as observer:
        fcntl.flock(observer, fcntl.LOCK_SH)
        assert not is_locked(tmp_path), "another process that looks does not work on the run"


def test_a_run_can_start_while_another_process_looks_at_its_lock(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = resolve(CONFIG)
    path = Path("run")
    path.mkdir()
    with (path / ".lock").open("w+") as observer:
        fcntl.flock(observer, fcntl.LOCK_SH)
        monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(observer, fcntl.LOCK_UN))
        with write_run(path, config, identify(config, "", {})):
            assert is_locked(path)
            monkeypatch.setattr("time.sleep", lambda _: None)
            with pytest.raises(BusyError, match="process"), write_run(path, config, identify(config, "", {})):
                pass
