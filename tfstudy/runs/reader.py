"""The reader of run folders: one function per file of `tfstudy.runs.schema`. Imports no torch.

The folders may come from somebody else, so every reader has bounds: of size, of depth, and of types.
"""

import csv
import gzip
import hashlib
import io
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tfstudy.config.trees import MAX_BYTES as MAX_YAML
from tfstudy.config.trees import read_yaml, yaml_sections
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.runs.files import RUN, command_again, is_locked, resuming_command
from tfstudy.runs.schema import FORMAT, SLICES, Environment, Failure, Prediction, Progress, Result, Scores
from tfstudy.runs.studyfile import PACKED_WITHOUT, BrokenError, exists, packed_in, read_bytes, read_file

T = TypeVar("T")
CONFIG_HEADER = b"# tfstudy run "  # first line of a config.yaml, followed by the hash of the run
HEADER = "step,metric,value"  # of metrics.csv
WEIGHTS = "weights.safetensors"  # weights alone: see `tfstudy export RUN`
CHECKPOINTS = ("last", "best")  # what `eval.checkpoint` may be
MAX_BYTES = 1 << 26  # of a JSON file
MAX_PREDICTIONS = 1 << 28  # bytes of the predictions of a split, unpacked
MAX_LINE = 1000  # characters of a line of `test_reads.csv`
METRIC_ROW = re.compile(r"(\d{1,15}),([\w /.-]{1,200}),(-?(?:inf|nan|\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?))", re.ASCII)
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # a RecursionError: too deeply nested
FORMATS = msgspec.json.Decoder(dict[str, Any])
RESULTS = msgspec.json.Decoder(Result)
ENVIRONMENTS = msgspec.json.Decoder(list[Environment])
PROGRESS = msgspec.json.Decoder(Progress)
FAILURES = msgspec.json.Decoder(Failure)
SCORES = msgspec.json.Decoder(Scores)
PREDICTIONS = msgspec.json.Decoder(Prediction)


class OtherFormatError(BrokenError):
    """A result in the format of another version, which may be sound."""


class _Hash(msgspec.Struct):
    run: str = ""


class _SplitDigest(msgspec.Struct):
    predictions: str = ""


class _Digests(msgspec.Struct):
    splits: dict[str, _SplitDigest] = {}


DIGESTS = msgspec.json.Decoder(_Digests)
HASHES = msgspec.json.Decoder(_Hash)


def has_result(path: Path) -> bool:
    """Whether there is a result, sound or not."""
    return exists(f"{path}/result.json")


def read_hash(path: Path) -> str:
    """The hash in the result of a run, whatever else is in it; one of the errors `UNREADABLE` if it can't be read."""
    return HASHES.decode(read_bytes(f"{path}/result.json")).run


def is_finished(path: Path) -> bool:
    """Whether the run is finished (or diverged): it has a sound result of its own. Every command asks this."""
    return has_result(path) and not broken_because(path)


def broken_because(path: Path) -> str:
    """Why the result of a run can't be believed; empty if it can, or if there is none."""
    try:
        if has_result(path):
            decode_result(path)
    except BrokenError as error:
        return str(error)
    return ""


def read_config(path: Path) -> dict[str, Any]:
    """The `config.yaml` of a run as plain values; `UserError` if it can't be read."""
    if packed_in(path) and exists(path / "config.yaml"):
        return yaml_sections(read_bytes(path / "config.yaml", MAX_YAML + 1), str(path / "config.yaml"))
    return read_yaml(path / "config.yaml")


def read_result(path: Path) -> Result:
    """The result of a finished run; `UserError` if there is none that can be read."""
    if not has_result(path):
        raise UserError(f"{path} has not finished; {how_to_continue(path)}")
    try:
        return decode_result(path)
    except BrokenError as error:
        raise UserError(f"{path / 'result.json'}: {error}") from None


def how_to_continue(path: Path) -> str:
    """What a message says of an unfinished run: that it is running, or which command resumes it."""
    if is_locked(path):
        return "it is still running (`tfstudy status` shows its progress)"
    progress = read_progress(path)
    return f"{resuming_command(path, bool(progress and progress.tuning))} resumes it"


def decode_result(path: Path) -> Result:
    """The result in a folder that has a `result.json`.

    `BrokenError` if it can't be read, was damaged or edited, or belongs to another run.
    """
    content = read_bytes(f"{path}/result.json", MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise BrokenError(f"the result is broken (larger than {MAX_BYTES >> 20} MiB)")
    try:
        result = RESULTS.decode(content)
        for split in result.splits.values():
            SLICES.decode(split.encoded_slices)
    except UNREADABLE as error:
        _check_format(content)
        raise BrokenError(f"the result is broken ({error})") from None
    if result.format != FORMAT:
        _check_format(content)
    if result.digest and not seal_matches(content):
        raise BrokenError("the result is broken (its digest does not match: it was damaged or edited)")
    if foreign := _mixed_up(path, result):
        raise BrokenError(foreign)
    return result


def _mixed_up(path: Path, result: Result) -> str:
    """Which files in the folder belong to different runs; empty if none do."""
    name = RUN.fullmatch(path.name)
    if name and (int(name["seed"]) != result.seed or not result.run.startswith(name["hash"])):
        return f"the result belongs to another run (s{result.seed}-{quoted(result.run, 8, '')})"
    header = read_bytes(f"{path}/config.yaml", len(CONFIG_HEADER) + 65).partition(b"\n")[0]
    owner = header.removeprefix(CONFIG_HEADER).strip().decode(errors="replace")
    if header.startswith(CONFIG_HEADER) and owner != result.run:
        return "config.yaml belongs to another run than the result"
    return ""


def seal(content: bytes) -> bytes:
    """An indented JSON object with the sha256 of its own text as its last value, the `digest`, which must be empty."""
    if not content.endswith(_digest_line(b"")):
        raise ValueError("'digest' must be the last key and empty")
    body = content[: -len(_digest_line(b""))]
    return body + _digest_line(digest_of(body).encode())


def seal_matches(content: bytes) -> bool:
    """Whether the text of a sealed object still has the digest that it was sealed with."""
    size = len(_digest_line(b"")) + 64
    return content[-size:] == _digest_line(digest_of(content[:-size]).encode())


def _digest_line(digest: bytes) -> bytes:
    return b'"digest": "' + digest + b'"\n}'


def _check_format(content: bytes) -> None:
    """`OtherFormatError` for a result in the format of another version."""
    try:
        number = FORMATS.decode(content).get("format")
    except UNREADABLE:
        return
    if isinstance(number, int) and number != FORMAT:
        raise OtherFormatError(f"the result has format {number}, but this version reads format {FORMAT}")


def find_weights(path: Path, result: Result) -> Path:
    """Return the checkpoint that a run was evaluated with, or else its `weights.safetensors`.

    `UserError` if the run did not finish or has neither; it names the command that trains the run again.
    """
    if result.status != "finished":
        raise UserError(f"{path} {result.status}, so it has no weights to use")
    name = one_of("checkpoint", result.checkpoint, CHECKPOINTS, str(path / "result.json"))
    for file in (path / "checkpoints" / f"{name}.ckpt", path / WEIGHTS):
        if exists(file):
            return file
    raise UserError(
        f"{path} has a result but no weights, neither checkpoints/{name}.ckpt nor {WEIGHTS}; "
        f"`{command_again(path, result.smoke)}` trains it again"
    )


def has_weights(path: Path) -> bool:
    """Whether a run folder has a file of weights."""
    files = (path / WEIGHTS, *(path / "checkpoints" / f"{name}.ckpt" for name in CHECKPOINTS))
    return any(map(exists, files))


def read_environments(path: Path) -> list[Environment]:
    """The environment of each process that worked on a run, first to last; empty if `env.json` can't be read."""
    return _decoded(ENVIRONMENTS, path / "env.json") or []


def read_progress(path: Path) -> Progress | None:
    """How far training is, as the run last reported it; None without a report."""
    return _decoded(PROGRESS, path / "progress.json")


def read_scores(path: Path) -> Scores | None:
    """What an unfinished evaluation has measured; None if there is nothing that can be read."""
    scores = _decoded(SCORES, path / "scores.json")
    try:
        for split in scores.splits.values() if scores else ():
            SLICES.decode(split.encoded_slices)
    except UNREADABLE:
        return None
    return scores if seal_matches(read_bytes(f"{path}/scores.json", MAX_BYTES)) else None


def read_failure(path: Path) -> Failure | None:
    """Why a run was given up; None if it was not."""
    if not exists(path / "failed.json"):
        return None
    return _decoded(FAILURES, path / "failed.json") or Failure("unknown: failed.json can't be read")


def read_predictions(path: Path, split: str) -> list[Prediction]:
    """A run's predictions of a split, one per example.

    `UserError` if there are none that can be read, if they are not those of the run's result, or if they are too large.
    """
    try:
        content = read_file(path / "predictions" / f"{Path(split).name}.jsonl.gz", MAX_PREDICTIONS)
        lines = gzip.GzipFile(fileobj=io.BytesIO(content)).read(MAX_PREDICTIONS + 1)
        recorded = _predictions_digest(path, split)
        if len(lines) > MAX_PREDICTIONS:
            reason = f"they unpack to more than {MAX_PREDICTIONS >> 20} MiB"
        elif recorded and recorded != digest_of(content):
            reason = "they are not those that were scored: the digest in the result is another one"
        elif predictions := PREDICTIONS.decode_lines(lines):
            return predictions
        else:
            reason = "the file is empty"
    except FileNotFoundError as error:
        reason = PACKED_WITHOUT if packed_in(path) else str(error.strerror)
    except (OSError, EOFError, zlib.error, *UNREADABLE) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise UserError(f"{path} has no readable predictions of split '{split}' ({reason})")


def digest_of(content: bytes) -> str:
    """The sha256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def _predictions_digest(path: Path, split: str) -> str:
    """The digest in the run's result; empty without a result, or if older code wrote it."""
    digests = _decoded(DIGESTS, path / "result.json")
    return digests.splits[split].predictions if digests and split in digests.splits else ""


def read_test_reads(path: Path) -> dict[str, int]:
    """How often each test set was evaluated with this run's weights."""
    content = _readable(path / "test_reads.csv", MAX_BYTES)
    return dict(sorted(Counter(row[0] for row in sound_test_reads(content)).items()))


def sound_test_reads(content: bytes) -> list[list[str]]:
    """The rows of a `test_reads.csv` that are whole: a split and a reason, both printable."""
    lines = [line.removesuffix("\r") for line in content.decode(errors="replace").split("\n")]
    rows = [next(csv.reader([line]), []) for line in lines if line.isprintable() and len(line) < MAX_LINE]
    return [row for row in rows if len(row) == 2 and all(row) and "\ufffd" not in "".join(row)]


def read_metrics(path: Path) -> list[tuple[int, str, float]]:
    """The rows of a run's `metrics.csv` that are whole: step, metric, value; empty without the file."""
    return [row[:3] for row in sound_metrics(_readable(path / "metrics.csv"))]


def sound_metrics(content: bytes) -> list[tuple[int, str, float, str]]:
    """The rows of a `metrics.csv` that are whole: step, metric, value, and the line itself."""
    rows = []
    for line in content.decode(errors="replace").split("\n")[:-1]:  # without its newline the last line is incomplete
        match = METRIC_ROW.fullmatch(line)
        if match:
            rows.append((int(match[1]), match[2], float(match[3]), line))
    return rows


def _readable(path: Path, size: int = 1 << 30) -> bytes:
    """The first `size` bytes of a file; empty if it can't be read or is damaged."""
    try:
        return read_bytes(path, size)
    except BrokenError:
        return b""


def _decoded(decoder: "msgspec.json.Decoder[T]", path: Path) -> T | None:
    try:
        return decoder.decode(_readable(path, MAX_BYTES))
    except UNREADABLE:
        return None
