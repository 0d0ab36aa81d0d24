"""The writer of run folders. Files appear complete (written aside, then renamed) or grow by whole lines.

A run lives in `<root>/<study>/<task>-<split>/<arch>/s<seed>-<hash8>/`; see `tfstudy.runs.schema` for its files.
"""

import csv
import gzip
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig, to_yaml
from tfstudy.errors import UserError
from tfstudy.runs.files import archive_name, lock_run, resuming_command, write_atomically
from tfstudy.runs.identity import Identity, settings_of
from tfstudy.runs.reader import (
    HEADER,
    OtherFormatError,
    decode_result,
    digest_of,
    has_result,
    is_finished,
    read_config,
    read_environments,
    read_predictions,
    read_progress,
    read_result,
    read_scores,
    read_test_reads,
    seal,
    sound_metrics,
    sound_test_reads,
)
from tfstudy.runs.schema import SLICES, Environment, Failure, Lengths, Prediction, Progress, Result, Scores, SplitScores
from tfstudy.runs.status import last_lines
from tfstudy.runs.studyfile import MAX_DEPTH, BrokenError, check_unpacked, study_zips


class RunFolder:
    """The folder of one run. Only the process that holds its lock writes to it (see `open_run`)."""

    def __init__(self, path: Path, run: str) -> None:
        self.path, self.run = path, run

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        """The file of the training metrics."""
        return self.path / "metrics.csv"

    @property
    def finished(self) -> bool:
        """Whether there is a sound result."""
        return is_finished(self.path)

    @property
    def result(self) -> Result:
        """The result; `UserError` if there is none that can be read."""
        return read_result(self.path)

    @property
    def progress(self) -> Progress | None:
        """The last report of progress."""
        return read_progress(self.path)

    def finish(self, result: Result) -> None:
        """Write `result.json`, after which the run is finished. `ValueError` for a result that can't be read back."""
        splits = {name: self._with_digest(name, scores) for name, scores in result.splits.items()}
        content = msgspec.json.encode(msgspec.structs.replace(result, splits=splits, digest=""))
        for scores in msgspec.json.decode(content, type=Result).splits.values():  # refuses nan, which became null
            SLICES.decode(scores.encoded_slices)
        write_atomically(self.path / "result.json", seal(msgspec.json.format(content, indent=1)))
        (self.path / "failed.json").unlink(missing_ok=True)
        self.drop_scores()
        (self.checkpoints / "previous.ckpt").unlink(missing_ok=True)  # only an unfinished run can go back to it

    def _with_digest(self, split: str, scores: SplitScores) -> SplitScores:
        """The scores with the digest of their predictions."""
        file = self.path / "predictions" / f"{split}.jsonl.gz"
        return msgspec.structs.replace(scores, predictions=digest_of(file.read_bytes()) if file.exists() else "")

    def add_environment(self, environment: Environment) -> None:
        """Add this process to `env.json`."""
        _write_json(self.path / "env.json", [*read_environments(self.path), environment])

    def record_execution(self, how: str) -> None:
        """Record how this process computes the steps of training, in its entry of `env.json`."""
        *before, last = read_environments(self.path)
        _write_json(self.path / "env.json", [*before, msgspec.structs.replace(last, execution=how)])

    def write_progress(self, progress: Progress) -> None:
        """Replace `progress.json`. It is written often, so it is not forced to the disk."""
        write_atomically(self.path / "progress.json", msgspec.json.encode(progress), durable=False)

    def write_predictions(self, split: str, predictions: Sequence[Prediction]) -> None:
        """Write all predictions of a split; the same predictions give the same bytes."""
        lines = (json.dumps(msgspec.to_builtins(row), ensure_ascii=False) + "\n" for row in predictions)
        content = gzip.compress("".join(lines).encode(), mtime=0)
        write_atomically(self.path / "predictions" / f"{split}.jsonl.gz", content)

    def scores(self) -> Scores:
        """What an unfinished evaluation of this run has measured on splits whose predictions are complete."""
        scores = read_scores(self.path)
        if scores is None or scores.run != self.run:
            return Scores(self.run)
        complete = {name: split for name, split in scores.splits.items() if self._has_predictions(name, split.n)}
        return msgspec.structs.replace(scores, splits=complete)

    def _has_predictions(self, split: str, count: int) -> bool:
        try:
            return len(read_predictions(self.path, split)) == count
        except UserError:
            return False

    def write_scores(self, scores: Scores) -> None:
        """Write `scores.json`, from which the evaluation continues if it is interrupted."""
        content = msgspec.json.encode(msgspec.structs.replace(scores, digest=""))
        write_atomically(self.path / "scores.json", seal(msgspec.json.format(content, indent=1)))

    def drop_scores(self) -> None:
        """Remove `scores.json`: the run is finished, or its weights may change."""
        (self.path / "scores.json").unlink(missing_ok=True)

    def write_extended(self, lengths: Lengths) -> None:
        """Write `extended.json`."""
        _write_json(self.path / "extended.json", lengths)

    def write_task_file(self, name: str, content: str) -> None:
        """Write a file of the task, such as its tokenizer."""
        write_atomically(self.path / name, content.encode())

    def log(self, text: str) -> None:
        """Add a line to `train.log`."""
        with (self.path / "train.log").open("a", encoding="utf-8") as file:
            file.write(text + "\n")

    def count_read(self, split: str, reason: str) -> None:
        """Record in `test_reads.csv` that a test set is evaluated."""
        file = self.path / "test_reads.csv"
        content = file.read_bytes() if file.exists() else b""
        text = io.StringIO()
        csv.writer(text).writerows([*sound_test_reads(content), [split, reason]])
        write_atomically(file, text.getvalue().encode())

    def test_reads(self) -> dict[str, int]:
        """How often each test set was evaluated with this run's weights."""
        return read_test_reads(self.path)

    def rewind(self, step: int) -> None:
        """Drop the metrics after `step`, which training writes again when it resumes from there."""
        if self.metrics.exists():
            lines = [HEADER, *(row[-1] for row in sound_metrics(self.metrics.read_bytes()) if row[0] <= step)]
            write_atomically(self.metrics, "".join(line + "\n" for line in lines).encode())


def run_folder(root: Path, study: str, config: RunConfig, identity: Identity) -> Path:
    """The folder of the run with this config."""
    split = str(config.data.split).replace("/", "_")
    return root / study / f"{config.task}-{split}" / config.arch / f"s{config.seed}-{identity.hash[:8]}"


@contextmanager
def open_run(
    path: Path, config: RunConfig, identity: Identity, restart: bool = False, replace_broken: bool = False
) -> Iterator[RunFolder]:
    """The run's folder, locked until the block or this process ends. With `restart` an existing run is archived.

    `UserError` if the folder can't be written, if another process works on the run, if its config was edited, or if its
    result is broken; with `replace_broken`, such a result is renamed and the run counts as unfinished. `UserError` also
    for a packed run, and if a zip file of the study, which may have the run, can't be read.
    """
    check_unpacked(path)
    for parent in path.parents[:MAX_DEPTH]:
        study_zips(parent, strict=True)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / ".lock").open("a+")
    except OSError as error:
        raise UserError(f"can't write to {path}: {error.strerror}") from None
    with lock:
        lock_run(lock, path)
        if restart and any(item.name != ".lock" for item in path.iterdir()):
            print(f"existing run archived: {archive(path)}")
        folder = RunFolder(path, identity.hash)
        _check_config(folder, config)
        _check_result(path, replace_broken)
        yield folder


def _check_config(folder: RunFolder, config: RunConfig) -> None:
    """Write `config.yaml`; `UserError` if it exists with other settings."""
    path = folder.path / "config.yaml"
    if not path.exists():
        write_atomically(path, f"# tfstudy run {folder.run}\n{to_yaml(config)}".encode())
        return
    try:
        same = settings_of(resolve(read_config(folder.path))) == settings_of(config)
    except (UserError, AttributeError):
        same = False
    if not same:
        raise UserError(
            f"{path} was edited after the run started, so its results would not belong to its config; restore it, or "
            "archive the run and start again with --restart"
        )


def _check_result(path: Path, replace_broken: bool) -> None:
    if not has_result(path):
        return
    try:
        decode_result(path)
    except BrokenError as error:
        if not replace_broken or isinstance(error, OtherFormatError):
            raise UserError(
                f"{path / 'result.json'}: {error}; --restart archives the run and starts again; "
                f"{resuming_command(path)} evaluates its checkpoint again and keeps this result under another name"
            ) from None
        kept = archive_name(path / "result.json", "broken")
        (path / "result.json").rename(kept)
        print(f"{path / 'result.json'}: {error}; kept as {kept.name}, the run continues from its checkpoint")


def archive(path: Path) -> Path:
    """Move the content of a run folder to `<name>.old-<n>` next to it, and return that folder."""
    archived = archive_name(path)
    archived.mkdir()
    # The result goes first and the config last: if interrupted in between, an unfinished run of this config remains.
    for item in sorted(path.iterdir(), key=lambda item: (item.name != "result.json", item.name == "config.yaml")):
        if item.name != ".lock":
            item.rename(archived / item.name)
    return archived


def write_failure(path: Path, reason: str, attempts: int) -> None:
    """Write `failed.json`: why a run was given up, with the last lines of its log."""
    path.mkdir(parents=True, exist_ok=True)
    _write_json(path / "failed.json", Failure(reason, attempts, last_lines(path)))


def _write_json(path: Path, value: Any) -> None:
    write_atomically(path, msgspec.json.format(msgspec.json.encode(value), indent=1))
