"""Finished records of format 2 read as those of today: env.json, test_reads.csv and result.json.

Their result covers itself and the predictions by digests, not the other files. Those are held against what else the
record says of them: the hash of the run, its settings, its number of steps and the counts in its result.
"""

import csv
import hashlib
from pathlib import Path

import msgspec

from tfstudy.config.trees import flat_yaml, flatten
from tfstudy.runs.files import BrokenError
from tfstudy.runs.identity import run_hash
from tfstudy.runs.schema import SLICES, AnyEvent, Environment, ReadTest, Result, Started
from tfstudy.runs.studyfile import read_file

FORMAT = 2
MAX_BYTES = 1 << 26
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


RESULTS = msgspec.json.Decoder(Result)
ENVIRONMENTS = msgspec.json.Decoder(list[Environment])


def decode_result(file: Path, content: bytes) -> Result:
    """The result in a `result.json`; `BrokenError` if its last value, the digest, is not that of the text before it."""
    body, _, end = content.rpartition(b'"digest": "')
    if end != hashlib.sha256(body).hexdigest().encode() + b'"\n}':
        raise BrokenError(file, "its digest does not match: it was damaged or edited")
    result = RESULTS.decode(content)
    for split in result.splits.values():
        SLICES.decode(split.encoded_slices)
    return result


def events(path: Path, config: bytes, result: Result) -> tuple[AnyEvent, ...]:
    """The events of a run; `BrokenError` if they, its config or its metrics are not those of the result."""
    if not (environments := _environments(path / "env.json")):
        raise BrokenError(path / "env.json", "it is missing")
    last = environments[-1]
    if run_hash(last.settings, last.data, last.code_versions) != result.run:
        raise BrokenError(path / "env.json", "its settings, data and versions are not those of the run")
    values = flat_yaml(config)
    if any(values.get(key) != value for key, value in flatten(last.settings).items()):
        raise BrokenError(path / "config.yaml", "its settings are not those of the run" if config else "it is missing")
    *_, row, end = [b"", *_content(path / "metrics.csv").rsplit(b"\n", 2)]
    if result.status == "finished" and (end or row.split(b",")[0] != str(values["train.steps"]).encode()):
        raise BrokenError(path / "metrics.csv", "it does not end with the last step")
    reads = _test_reads(path / "test_reads.csv")
    if any([read.split for read in reads].count(split) < count for split, count in result.test_reads.items()):
        raise BrokenError(path / "test_reads.csv", "it has fewer rows than the result")
    preset, tuning, time = result.preset, result.tuning, result.started
    return (*(Started(environment=one, preset=preset, tuning=tuning, time=time) for one in environments), *reads)


def _environments(path: Path) -> list[Environment]:
    try:
        return ENVIRONMENTS.decode(_content(path) or b"[]")
    except UNREADABLE as error:
        raise BrokenError(path, str(error)) from None


def _content(path: Path) -> bytes:
    try:
        return read_file(path, MAX_BYTES)
    except OSError:
        return b""


def _test_reads(path: Path) -> list[ReadTest]:
    try:
        rows = list(csv.reader(_content(path).decode().splitlines()))
        return [ReadTest(split=split, reason=reason) for split, reason in rows]
    except (ValueError, csv.Error) as error:  # also of a row that does not have a split and a reason
        raise BrokenError(path, str(error)) from None
