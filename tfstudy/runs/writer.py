"""Run folders: the only code that writes them. `tfstudy.runs` and `tfstudy.states` read them.

A run lives in `<root>/<study>/<task>-<split>/<arch>/s<seed>-<hash8>/`. It is finished when `result.json` is there,
which is written last. Files appear whole (written aside, then renamed) or grow by whole lines.
"""

import csv
import fcntl
import gzip
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tasks.errors import UserError
from tfstudy.config.display import to_yaml
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.runs.files import write_whole
from tfstudy.runs.identity import Identity, without_places
from tfstudy.runs.reader import read_result
from tfstudy.runs.schema import FORMAT
from tfstudy.runs.train_log import last_lines

HEADER = "step,metric,value"  # of metrics.csv
CHANCES = 5  # to lock a run


class BusyError(UserError):
    """Another process holds the run."""


class RunFolder:
    """One run's folder, held by this process alone while it is open (see `open_record`)."""

    def __init__(self, path: Path, run: str) -> None:
        self.path, self.run = path, run

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.csv"

    @property
    def finished(self) -> bool:
        return (self.path / "result.json").exists()

    @property
    def result(self) -> dict[str, Any]:
        """What `finish` wrote."""
        return read_result(self.path)

    def finish(self, result: Mapping[str, Any]) -> None:
        """Writes `result.json`, after which the run is finished."""
        text = json.dumps({"format": FORMAT, "run": self.run, **result}, indent=1, allow_nan=False)
        write_whole(self.path / "result.json", text.encode())
        (self.path / "failed.json").unlink(missing_ok=True)

    def add_environment(self, environment: Mapping[str, Any]) -> None:
        """Adds this process to `env.json`, which lists all that worked on the run."""
        path = self.path / "env.json"
        before = json.loads(path.read_text()) if path.exists() else []
        write_whole(path, json.dumps([*before, environment], indent=1).encode())

    def write_predictions(self, split: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """All predictions of a split as JSON lines; the same rows give the same bytes."""
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_whole(self.path / "predictions" / f"{split}.jsonl.gz", gzip.compress(text.encode(), mtime=0))

    def predictions(self, split: str) -> Iterator[dict[str, Any]]:
        """What `write_predictions` wrote."""
        with gzip.open(self.path / "predictions" / f"{split}.jsonl.gz", "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    def keep(self, name: str, content: str) -> None:
        """A file of the run's own, such as its tokenizer; the same name is written over."""
        write_whole(self.path / name, content.encode())

    def log(self, text: str) -> None:
        """Adds a line to `train.log`."""
        with (self.path / "train.log").open("a", encoding="utf-8") as file:
            file.write(text + "\n")

    def count_read(self, split: str, why: str) -> None:
        """Notes in `test_reads.csv` that a test split was scored."""
        with (self.path / "test_reads.csv").open("a", newline="") as file:
            csv.writer(file).writerow([split, why])

    def test_reads(self) -> dict[str, int]:
        """How often each test split was scored with this run's weights."""
        path = self.path / "test_reads.csv"
        reads = [row[0] for row in csv.reader(path.read_text().splitlines())] if path.exists() else []
        return {split: reads.count(split) for split in sorted(set(reads))}

    def rewind(self, step: int) -> None:
        """Drops the metrics written after `step`: training goes on from there and writes them again."""
        if self.metrics.exists():
            lines = self.metrics.read_text().split("\n")[:-1]  # a last line without its end is half-written
            kept = [line for line in lines[1:] if int(line.split(",")[0]) <= step]
            write_whole(self.metrics, "".join(line + "\n" for line in [HEADER, *kept]).encode())


def run_folder(root: Path, study: str, config: RunConfig, identity: Identity) -> Path:
    """Where the run of this config lives; split is `data.split`."""
    split = str(config.data.split).replace("/", "_")
    return root / study / f"{config.task}-{split}" / config.arch / f"s{config.seed}-{identity.hash[:8]}"


@contextmanager
def open_record(path: Path, config: RunConfig, identity: Identity, fresh: bool = False) -> Iterator[RunFolder]:
    """The run's folder, locked; the lock dies with this process. With `fresh` what was there is set aside.

    `UserError` if the folder can't be written, another process holds it, or it is not of this config.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / ".lock").open("a+")
    except OSError as error:
        raise UserError(f"can't write to {path}: {error.strerror}") from None
    with lock:
        _hold(lock, path)
        if fresh and any(item.name != ".lock" for item in path.iterdir()):
            print(f"set aside: {set_aside(path)}")
        record = RunFolder(path, identity.hash)
        _claim(record, config)
        yield record


def _hold(lock: Any, path: Path) -> None:
    for chance in reversed(range(CHANCES)):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if chance:  # whoever only looks whether the run is held (`runs.held`) is gone in a moment
                time.sleep(0.02)
                continue
            lock.seek(0)
            raise BusyError(
                f"{path} is being run by another process ({lock.read().strip()}); wait for it or end it"
            ) from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()} on {os.uname().nodename}")
    lock.flush()


def _claim(record: RunFolder, config: RunConfig) -> None:
    path = record.path / "config.yaml"
    if not path.exists():
        write_whole(path, f"# tfstudy run {record.run}\n{to_yaml(config)}".encode())
        return
    try:
        written = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError):
        written = None
    try:
        same = without_places(resolve(written)) == without_places(config)
    except (UserError, AttributeError):
        same = False
    if not same:
        raise UserError(
            f"{path} was edited after the run began, so its results would not be those of its config; "
            "put it back, or give --fresh to set the folder aside and begin anew"
        )


def set_aside(path: Path) -> Path:
    """Moves what a run folder holds into a folder `<name>.old-<n>` beside it, and says where."""
    number = 1
    while (aside := path.with_name(f"{path.name}.old-{number}")).exists():
        number += 1
    aside.mkdir()
    # The result goes first and the config last: stopped in between, what is left is an unfinished run of this config.
    for item in sorted(path.iterdir(), key=lambda item: (item.name != "result.json", item.name == "config.yaml")):
        if item.name != ".lock":
            item.rename(aside / item.name)
    return aside


def note_failure(path: Path, reason: str, attempts: int) -> None:
    """Leaves in `failed.json` why a run was given up, with the last lines of its log; a finished run has none."""
    path.mkdir(parents=True, exist_ok=True)
    note = {"reason": reason, "attempts": attempts, "log": last_lines(path)}
    write_whole(path / "failed.json", json.dumps(note, indent=1).encode())
