"""The reader of run folders: one function per file of `tfstudy.runs.schema`. Imports no torch."""

import csv
import gzip
import os
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tasks.errors import UserError
from tfstudy.config.files import read_yaml
from tfstudy.runs.files import read_bytes
from tfstudy.runs.schema import FORMAT, SLICES, Environment, Failure, Prediction, Progress, Result

T = TypeVar("T")
FORMATS = msgspec.json.Decoder(dict[str, Any])
RESULTS = msgspec.json.Decoder(Result)
ENVIRONMENTS = msgspec.json.Decoder(list[Environment])
PROGRESS = msgspec.json.Decoder(Progress)
FAILURES = msgspec.json.Decoder(Failure)
PREDICTIONS = msgspec.json.Decoder(Prediction)


class BrokenError(UserError):
    """A record that can't be read; the message says why, without the path."""


def has_result(path: Path) -> bool:
    """Whether the run is finished, whatever its result says."""
    return os.path.exists(f"{path}/result.json")


def read_config(path: Path) -> dict[str, Any]:
    """The `config.yaml` of a run as plain values; `UserError` if it can't be read."""
    return read_yaml(path / "config.yaml")


def read_result(path: Path) -> Result:
    """The result of a finished run; `UserError` if there is none that can be read."""
    if not has_result(path):
        raise UserError(f"{path} is not a finished run: it has no result.json")
    try:
        return decode_result(path)
    except BrokenError as error:
        raise UserError(f"{path / 'result.json'}: {error}") from None


def decode_result(path: Path) -> Result:
    """The result in a folder that has a `result.json`; `BrokenError` if it can't be read."""
    content = read_bytes(f"{path}/result.json")
    try:
        result = RESULTS.decode(content)
        for split in result.splits.values():
            SLICES.decode(split.encoded_slices)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _check_format(content)
        raise BrokenError(f"the result is broken ({error})") from None
    if result.format != FORMAT:
        _check_format(content)
    return result


def _check_format(content: bytes) -> None:
    """`BrokenError` for a result in the format of another version."""
    try:
        number = FORMATS.decode(content).get("format")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if number != FORMAT:
        raise BrokenError(f"the result has format {number}, but this version reads format {FORMAT}")


def read_environments(path: Path) -> list[Environment]:
    """The environment of each process that worked on a run, first to last; empty if `env.json` can't be read."""
    return _decoded(ENVIRONMENTS, path / "env.json") or []


def read_progress(path: Path) -> Progress | None:
    """How far training is, as the run last reported it; None without a report."""
    return _decoded(PROGRESS, path / "progress.json")


def read_failure(path: Path) -> Failure | None:
    """Why a run was given up; None if it was not."""
    if not (path / "failed.json").exists():
        return None
    return _decoded(FAILURES, path / "failed.json") or Failure("unknown: failed.json can't be read")


def read_predictions(path: Path, split: str) -> list[Prediction]:
    """A run's predictions of a split, one per example; `UserError` if there are none that can be read."""
    try:
        lines = gzip.decompress((path / "predictions" / f"{split}.jsonl.gz").read_bytes())
        if predictions := PREDICTIONS.decode_lines(lines):
            return predictions
        reason = "the file is empty"
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise UserError(f"{path} has no readable predictions of split '{split}' ({reason})")


def read_test_reads(path: Path) -> dict[str, int]:
    """How often each test set was evaluated with this run's weights."""
    lines = read_bytes(f"{path}/test_reads.csv").decode(errors="replace").splitlines()
    return dict(sorted(Counter(row[0] for row in csv.reader(lines) if row).items()))


def _decoded(decoder: "msgspec.json.Decoder[T]", path: Path) -> T | None:
    try:
        return decoder.decode(read_bytes(str(path)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
