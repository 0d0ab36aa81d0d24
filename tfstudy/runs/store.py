"""Read run folders. Imports no torch.

A run lives in `<root>/<study>/<task>-<split>/<arch>/s<seed>-<hash8>/`; `tfstudy.runs.schema` describes its files. They
may come from somebody else or be damaged: `open_run` reads them, checks them against the digests in the result, and
says what is broken; nothing of a broken run is believed.
"""

import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tfstudy.config.trees import yaml_sections
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.runs import old_records
from tfstudy.runs.files import (
    RUN,
    BrokenError,
    check_plain,
    command_again,
    digest_of,
    has_study,
    is_locked,
    resume_study_command,
    unsealed,
)
from tfstudy.runs.schema import (
    FORMAT,
    SLICES,
    AnyEvent,
    Environment,
    Failed,
    Prediction,
    ReadTest,
    Result,
    Started,
    StepsComputed,
)
from tfstudy.runs.studyfile import PACKED_WITHOUT, exists, packed_in, read_file

CONFIG, METRICS, EVENTS, RESULT = "config.yaml", "metrics.csv", "events.jsonl", "result.json"
TASK_FILES = ("data.json", "tokenizer.json")  # of some tasks: with them a run predicts where its data are not
DIGESTED = (CONFIG, EVENTS, METRICS, *TASK_FILES)  # files whose sha256 a result has
OWNER = re.compile(rb"# tfstudy run ([^\n]{1,65})")  # the hash of the run in the first line of its config.yaml
HEADER = "step,metric,value"  # of metrics.csv
WEIGHTS = "weights.safetensors"  # weights alone: see `tfstudy export RUN`
CHECKPOINTS = ("last", "best")  # what `eval.checkpoint` may be
MAX_CONFIG = 1 << 20  # bytes of config.yaml
MAX_BYTES = 1 << 26  # of each other file but the predictions
MAX_PREDICTIONS = 1 << 28  # bytes of the predictions of a split, unpacked
METRIC_ROW = re.compile(r"(\d{1,15}),([\w /.-]{1,200}),(-?(?:inf|nan|\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?))", re.ASCII)
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # a RecursionError: too deeply nested
RESULTS = msgspec.json.Decoder(Result)
EVENT = msgspec.json.Decoder(AnyEvent)
PREDICTIONS = msgspec.json.Decoder(Prediction)


class _Format(msgspec.Struct):
    format: int = 0


FORMATS = msgspec.json.Decoder(_Format)


class Run(NamedTuple):
    """What was read of a run folder. Of a broken run nothing is believed."""

    path: Path
    config: bytes = b""  # the text of config.yaml; empty if there is none
    events: tuple[AnyEvent, ...] = ()
    result: Result | None = None
    broken: BrokenError | None = None  # why it can't be believed


def open_run(path: Path) -> Run:
    """Read a run folder, or a packed run, and check all of it but predictions and weights. Raises nothing."""
    try:
        if path.is_dir():
            check_plain(path)
        config = read_bytes(path / CONFIG, MAX_CONFIG)
        content = read_bytes(path / RESULT)
        name = RUN.fullmatch(path.name)
        owner = header[1].strip().decode(errors="replace") if (header := OWNER.match(config)) else ""
        if name and owner and not owner.startswith(name["hash"]):
            raise BrokenError(path / CONFIG, f"it belongs to another run ({quoted(owner, 8, '')})")
        if not content and not has_result(path):
            return Run(path, config, _read_events(path))
        result = _decode_result(path, content)
        if name and (int(name["seed"]) != result.seed or not result.run.startswith(name["hash"])):
            raise BrokenError(path / RESULT, f"it belongs to another run (s{result.seed}-{quoted(result.run, 8, '')})")
        if owner and owner != result.run:
            raise BrokenError(path / CONFIG, "it belongs to another run than the result")
        if result.format == old_records.FORMAT:
            return Run(path, config, old_records.events(path, config, result), result)
        for file in DIGESTED:
            known = read_bytes(path / file)[: result.events_size if file == EVENTS else None]
            if digest_of(known) != result.files.get(file, digest_of(b"")):
                reason = "it is not the file of the result" if known else "it is missing or empty"
                raise BrokenError(path / file, reason)
        return Run(path, config, _read_events(path), result)
    except BrokenError as error:
        return Run(path, broken=error)
    except OSError as error:
        return Run(path, broken=BrokenError(path, str(error.strerror)))


def read_bytes(path: str | Path, limit: int = MAX_BYTES) -> bytes:
    """The content of a file of a run; empty if there is none, `BrokenError` if it can't be believed."""
    try:
        return read_file(path, limit)
    except OSError:
        return b""


def _decode_result(path: Path, content: bytes) -> Result:
    file = path / RESULT
    try:
        number = FORMATS.decode(content).format
        if number == old_records.FORMAT:
            return old_records.decode_result(file, content)
        if number and number != FORMAT:
            reason = f"it has format {number}, but this version reads formats {old_records.FORMAT} and {FORMAT}"
            raise BrokenError(file, reason)
        result = RESULTS.decode(unsealed(content, file))
        for split in result.splits.values():
            SLICES.decode(split.encoded_slices)
    except UNREADABLE as error:
        raise BrokenError(file, str(error)) from None
    if missing := {CONFIG, EVENTS} - result.files.keys():
        raise BrokenError(file, f"it has no digest of {', '.join(sorted(missing))}")
    return result


def _read_events(path: Path) -> tuple[AnyEvent, ...]:
    """The events of a run, first to last. An incomplete last line, which a kill may leave, is dropped."""
    lines = read_bytes(path / EVENTS).split(b"\n")[:-1]
    try:
        return tuple(EVENT.decode(unsealed(line + b"\n", path / EVENTS)) for line in lines)
    except UNREADABLE as error:
        raise BrokenError(path / EVENTS, str(error)) from None


def has_result(path: Path) -> bool:
    """Whether there is a result, sound or not."""
    return os.path.lexists(f"{path}/{RESULT}") or exists(f"{path}/{RESULT}")


def is_finished(path: Path) -> bool:
    """Whether the run is finished (or diverged): it has a sound result of its own. Every command asks this."""
    return has_result(path) and open_run(path).result is not None


def broken_because(path: Path) -> str:
    """Why a run can't be believed; empty if it can."""
    return str(open_run(path).broken or "")


def sound_run(path: Path) -> Run:
    """The same as `open_run`; `UserError` if the run is broken."""
    run = open_run(path)
    if run.broken:
        raise UserError(f"{path}: {run.broken}")
    return run


def read_result(path: Path) -> Result:
    """The result of a finished run; `UserError` if there is none, or if the run is broken."""
    result = sound_run(path).result
    if not result:
        raise UserError(f"{path} has not finished; {how_to_continue(path)}")
    return result


def read_config(path: Path) -> dict[str, Any]:
    """The `config.yaml` of a run as plain values; `UserError` if it can't be read, or if the run is broken."""
    if not (content := sound_run(path).config):
        raise UserError(f"can't read {path / CONFIG}: it is missing or empty")
    return yaml_sections(content, str(path / CONFIG))


def how_to_continue(path: Path) -> str:
    """What a message says of an unfinished run: that it is running, or which command resumes it."""
    if is_locked(path):
        return "it is still running (`tfstudy status` shows its progress)"
    start, again = last_start(path), "its own command"
    if start and start.tuning:
        again = "the `tfstudy tune` command of its search"
    elif has_study(path):
        again = f"`{resume_study_command(path.parents[2])}`"
    return f"{again} resumes it"


def last_start(path: Path) -> Started | None:
    """What the last process that worked on a run recorded when it started; None if there is no sound record of it."""
    return next((event for event in reversed(open_run(path).events) if isinstance(event, Started)), None)


def read_environments(path: Path) -> list[Environment]:
    """The environment of each process that worked on a run, first to last; empty if the run is broken."""
    return environments_of(open_run(path).events)


def environments_of(events: Iterable[AnyEvent]) -> list[Environment]:
    """The same, of the events of a run."""
    found: list[Environment] = []
    for event in events:
        if isinstance(event, Started):
            found.append(event.environment)
        elif isinstance(event, StepsComputed) and found:
            found[-1] = msgspec.structs.replace(found[-1], execution=event.how)
    return found


def read_test_reads(path: Path) -> dict[str, int]:
    """How often each test set was evaluated with this run's weights."""
    return test_reads_of(open_run(path).events)


def test_reads_of(events: Iterable[AnyEvent]) -> dict[str, int]:
    """The same, of the events of a run."""
    return dict(sorted(Counter(event.split for event in events if isinstance(event, ReadTest)).items()))


def failure_of(run: Run) -> Failed | None:
    """Why a run was given up; None if it was not, or if a process has started to work on it since."""
    ends = [event for event in run.events if isinstance(event, Started | Failed)]
    return ends[-1] if ends and isinstance(ends[-1], Failed) and not run.result else None


def last_step(path: Path) -> int:
    """The last step in the metrics of a run, finished or not; 0 before the first one."""
    try:
        *_, row, _ = [b"", *read_bytes(path / METRICS).rsplit(b"\n", 2)]
    except BrokenError:
        return 0
    found = METRIC_ROW.fullmatch(row.decode(errors="replace"))
    return int(found[1]) if found else 0


def read_predictions(path: Path, split: str) -> list[Prediction]:
    """A run's predictions of a split, one per example; before the run is finished, those of any attempt.

    `UserError` if there are none that can be read, if they are not those of the run's result, or if they are too large.
    """
    result = sound_run(path).result
    scores = result.splits.get(split) if result else None
    try:
        content = read_file(path / "predictions" / f"{Path(split).name}.jsonl.gz", MAX_PREDICTIONS)
        if result and (scores is None or scores.predictions != digest_of(content)):
            reason = "they are not those that were scored: the digest in the result is another one"
        elif len(lines := gzip.GzipFile(fileobj=io.BytesIO(content)).read(MAX_PREDICTIONS + 1)) > MAX_PREDICTIONS:
            reason = f"they unpack to more than {MAX_PREDICTIONS >> 20} MiB"
        elif predictions := PREDICTIONS.decode_lines(lines):
            return predictions
        else:
            reason = "the file is empty"
    except FileNotFoundError as error:
        reason = PACKED_WITHOUT if packed_in(path) else str(error.strerror)
    except (OSError, EOFError, zlib.error, BrokenError, *UNREADABLE) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise UserError(f"{path} has no readable predictions of split '{split}' ({reason})")


def read_metrics(path: Path) -> list[tuple[int, str, float]]:
    """The rows of a run's `metrics.csv` that are whole: step, metric, value; empty without the file."""
    sound_run(path)
    lines = read_bytes(path / METRICS).decode(errors="replace").split("\n")[:-1]  # the last one may be incomplete
    found = filter(None, map(METRIC_ROW.fullmatch, lines))
    return [(int(row[1]), row[2], float(row[3])) for row in found]


def find_weights(path: Path, result: Result) -> Path:
    """Return the checkpoint that a run was evaluated with, or else its `weights.safetensors`.

    `UserError` if the run did not finish or has neither; it names the command that trains the run again.
    """
    if result.status != "finished":
        raise UserError(f"{path} {result.status}, so it has no weights to use")
    name = one_of("checkpoint", result.checkpoint, CHECKPOINTS, str(path / RESULT))
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


def last_lines(path: Path, count: int = 20) -> list[str]:
    """The last lines of the log; empty without one that can be read."""
    try:
        return read_bytes(path / "train.log").decode(errors="replace").splitlines()[-count:]
    except BrokenError:
        return []
