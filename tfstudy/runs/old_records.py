"""Records of format 2 read as those of today: env.json, progress.json, test_reads.csv, failed.json and result.json.

Their result covers itself and the predictions by digests, not the other files. Those are held against what else the
record says of them: the hash of the run, its settings, its number of steps and the counts in its result.
"""

import csv
import hashlib
from pathlib import Path
from typing import Any

import msgspec

from tfstudy.config.trees import flat_yaml, flatten
from tfstudy.runs.files import BrokenError
from tfstudy.runs.identity import run_hash
from tfstudy.runs.schema import SLICES, AnyEvent, Environment, Failed, ReadTest, Result, Started
from tfstudy.runs.studyfile import read_file

FORMAT = 2
MAX_BYTES = 1 << 26
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Progress(msgspec.Struct):
    preset: str = "default"
    tuning: bool = False
    started: str = ""


RESULTS = msgspec.json.Decoder(Result)
ENVIRONMENTS = msgspec.json.Decoder(list[Environment])
PROGRESSES = msgspec.json.Decoder(_Progress)
FAILURES = msgspec.json.Decoder(Failed)


def decode_result(file: Path, content: bytes) -> Result:
    """The result in a `result.json`; `BrokenError` if its last value, the digest, is not that of the text before it."""
    body, _, end = content.rpartition(b'"digest": "')
    if end != hashlib.sha256(body).hexdigest().encode() + b'"\n}':
        raise BrokenError(file, "its digest does not match: it was damaged or edited")
    result = RESULTS.decode(content)
    for split in result.splits.values():
        SLICES.decode(split.encoded_slices)
    return result


def events(path: Path) -> tuple[AnyEvent, ...]:
    """The events of a run, as far as they are known; `BrokenError` if a file is damaged."""
    environments = _decoded(ENVIRONMENTS, path / "env.json") or []
    progress = _decoded(PROGRESSES, path / "progress.json") or _Progress()
    failure = _decoded(FAILURES, path / "failed.json")
    starts = [
        Started(environment=one, preset=progress.preset, tuning=progress.tuning, time=progress.started)
        for one in environments
    ]
    reads = [ReadTest(split=split, reason=reason) for split, reason in _test_reads(path / "test_reads.csv")]
    return (*starts, *reads, *([failure] if failure else []))


def checked_events(path: Path, config: bytes, result: Result) -> tuple[AnyEvent, ...]:
    """The events of a finished run; `BrokenError` if they, its config or its metrics are not those of the result."""
    found = events(path)
    if not (environments := [event.environment for event in found if isinstance(event, Started)]):
        raise BrokenError(path / "env.json", "it is missing")
    last = environments[-1]
    if run_hash(last.settings, last.data, last.code_versions) != result.run:
        raise BrokenError(path / "env.json", "its settings, data and versions are not those of the run")
    values = flat_yaml(config)
    if any(values.get(key) != value for key, value in flatten(last.settings).items()):
        raise BrokenError(path / "config.yaml", "its settings are not those of the run" if config else "it is missing")
    *_, row, end = [b"", *(_content(path / "metrics.csv") or b"").rsplit(b"\n", 2)]
    if result.status == "finished" and (end or row.split(b",")[0] != str(values["train.steps"]).encode()):
        raise BrokenError(path / "metrics.csv", "it does not end with the last step")
    reads = [event.split for event in found if isinstance(event, ReadTest)]
    if any(reads.count(split) < count for split, count in result.test_reads.items()):
        raise BrokenError(path / "test_reads.csv", "it has fewer rows than the result")
    return found


def _decoded(decoder: "msgspec.json.Decoder[Any]", path: Path) -> Any:
    """The value in a file; None if there is no file."""
    try:
        return decoder.decode(content) if (content := _content(path)) is not None else None
    except UNREADABLE as error:
        raise BrokenError(path, str(error)) from None


def _content(path: Path) -> bytes | None:
    try:
        return read_file(path, MAX_BYTES)
    except OSError:
        return None


def _test_reads(path: Path) -> list[tuple[str, str]]:
    try:
        rows = list(csv.reader((_content(path) or b"").decode().splitlines()))
    except (UnicodeDecodeError, csv.Error) as error:
        raise BrokenError(path, str(error)) from None
    if any(len(row) != 2 for row in rows):
        raise BrokenError(path, "a row does not have a split and a reason")
    return [(split, reason) for split, reason in rows]
