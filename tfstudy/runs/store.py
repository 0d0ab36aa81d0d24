"""Read and write run folders. Imports no torch.

A run lives in `<root>/<study>/<task>-<split>/<arch>/s<seed>-<hash8>/`; `tfstudy.runs.schema` describes its files. They
may come from somebody else or be damaged: `open_run` reads them, checks them against the digests in the result, and
says what is broken; nothing of a broken run is believed. Files appear complete (written aside, then renamed) or grow by
whole lines, and the result is written last, so that a killed run can be resumed.
"""

import gzip
import io
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig, to_yaml
from tfstudy.config.trees import MAX_BYTES, yaml_sections
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.runs import files
from tfstudy.runs.files import RUN, BrokenError, digest_of, read_bytes, sealed, unsealed, write_atomically
from tfstudy.runs.identity import Identity, run_hash, settings_of
from tfstudy.runs.schema import FORMAT, MEASUREMENTS, Environment, Event, Measurement, Prediction, Result

CONFIG, METRICS, EVENTS, RESULT = "config.yaml", "metrics.csv", "events.jsonl", "result.json"
TASK_FILES = ("data.json", "tokenizer.json")  # of some tasks: with them a run predicts where its data are not
DIGESTED = (CONFIG, EVENTS, METRICS, *TASK_FILES)  # files whose sha256 a result has
OWNER = re.compile(rb"# tfstudy run ([^\n]{1,65})")  # the hash of the run in the first line of its config.yaml
HEADER = "step,metric,value"  # of metrics.csv
WEIGHTS = "weights.safetensors"  # weights alone: see `tfstudy export RUN`
CHECKPOINTS = ("last", "best")  # what `eval.checkpoint` may be
MAX_PREDICTIONS = 1 << 28  # bytes of the predictions of a split, unpacked
MAX_MEASUREMENT = 1 << 24  # bytes
METRIC_ROW = re.compile(r"(\d{1,15}),([\w /.-]{1,200}),(-?(?:inf|nan|\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?))", re.ASCII)
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # a RecursionError: too deeply nested
RESULTS = msgspec.json.Decoder(Result)
EVENT = msgspec.json.Decoder(Event)
PREDICTIONS = msgspec.json.Decoder(Prediction)
INSTRUMENTS = "instruments"  # the folder with what they measured


class Run(NamedTuple):
    """What was read of a run folder. Of a broken run nothing is believed."""

    path: Path
    config: bytes = b""  # the text of config.yaml; empty if there is none
    events: tuple[Event, ...] = ()  # first to last
    result: Result | None = None  # of a finished run, or one that diverged
    broken: BrokenError | None = None  # why it can't be believed

    @property
    def environments(self) -> list[Environment]:
        """The environment of each process that worked on it, first to last."""
        return [one.environment for one in self.events if one.environment]

    @property
    def test_reads(self) -> dict[str, int]:
        """How often each test set was evaluated with its weights."""
        return dict(sorted(Counter(one.split for one in self.events if one.event == "test read").items()))

    @property
    def last_start(self) -> Event | None:
        """What the last process that worked on it recorded when it started."""
        return next((one for one in reversed(self.events) if one.environment), None)

    @property
    def failure(self) -> Event | None:
        """Why it was given up; None if it was not, or if a process has started to work on it since."""
        ends = [one for one in self.events if one.event in ("started", "failed")]
        return ends[-1] if ends and ends[-1].event == "failed" and not self.result else None


def open_run(path: Path) -> Run:
    """Read a run folder, or a packed run, and check all of it but predictions and weights. Raises nothing."""
    try:
        files.check_plain(path)
        config, content = read_bytes(path / CONFIG, MAX_BYTES), read_bytes(path / RESULT)
        name = RUN.fullmatch(path.name)
        owner = header[1].strip().decode(errors="replace") if (header := OWNER.match(config)) else ""
        if name and owner and not owner.startswith(name["hash"]):
            raise BrokenError(path / CONFIG, f"it belongs to another run ({quoted(owner, 8, '')})")
        if not content and not has_result(path):
            return Run(path, config, _read_events(path))
        result: Result = _decoded(RESULTS, content, path / RESULT)
        if result.format != FORMAT:
            raise BrokenError(path / RESULT, f"it has format {result.format}, and this version reads {FORMAT}")
        unsealed(content, path / RESULT)
        if name and (int(name["seed"]) != result.seed or not result.run.startswith(name["hash"])):
            raise BrokenError(path / RESULT, f"it belongs to another run (s{result.seed}-{quoted(result.run, 8, '')})")
        if owner and owner != result.run:
            raise BrokenError(path / CONFIG, "it belongs to another run than the result")
        for file in DIGESTED:
            known = read_bytes(path / file)[: result.events_size if file == EVENTS else None]
            if digest_of(known) != result.files.get(file, "" if file in (CONFIG, EVENTS) else digest_of(b"")):
                raise BrokenError(
                    path / file, "it is not the file of the result" if known else "it is missing or empty"
                )
        return Run(path, config, _read_events(path), result)
    except BrokenError as error:
        return Run(path, broken=error)
    except OSError as error:
        return Run(path, broken=BrokenError(path, str(error.strerror)))


def _decoded(decoder: msgspec.json.Decoder[Any], content: bytes, file: Path) -> Any:
    try:
        return decoder.decode(content)
    except UNREADABLE as error:
        raise BrokenError(file, str(error)) from None


def _read_events(path: Path) -> tuple[Event, ...]:
    """The events of a run. An incomplete last line, which a kill may leave, is dropped."""
    lines, file = read_bytes(path / EVENTS).split(b"\n")[:-1], path / EVENTS
    return tuple(_decoded(EVENT, unsealed(line + b"\n", file), file) for line in lines)


def has_result(path: Path) -> bool:
    """Whether there is a result, sound or not."""
    return os.path.lexists(f"{path}/{RESULT}") or files.exists(f"{path}/{RESULT}")


def is_finished(path: Path) -> bool:
    """Whether the run is finished (or diverged): it has a sound result of its own. Every command asks this."""
    return has_result(path) and open_run(path).result is not None


def sound_run(path: Path) -> Run:
    """The same as `open_run`; `UserError` if the run is broken."""
    if (run := open_run(path)).broken:
        raise UserError(f"{path}: {run.broken}")
    return run


def read_result(path: Path) -> Result:
    """The result of a finished run; `UserError` if there is none, or if the run is broken."""
    run = sound_run(path)
    if not run.result:
        raise UserError(f"{path} has not finished; {how_to_continue(run)}")
    return run.result


def read_config(path: Path, restart: bool = False) -> dict[str, Any]:
    """The `config.yaml` of a run as plain values; `UserError` if it can't be read, or if the run is broken.

    For a restart it is a config like any other file, whatever is broken.
    """
    try:
        content = read_bytes(path / CONFIG, MAX_BYTES) if restart else sound_run(path).config
    except BrokenError as error:
        raise UserError(f"{path}: {error}") from None
    if not content:
        raise UserError(f"can't read {path / CONFIG}: it is missing or empty")
    return yaml_sections(content, str(path / CONFIG))


def how_to_continue(run: Run) -> str:
    """What a message says of an unfinished run: that it is running, or which command resumes it."""
    if files.is_locked(run.path):
        return "it is still running (`tfstudy status` shows its progress)"
    if run.last_start and run.last_start.tuning:
        return "the `tfstudy tune` command of its search resumes it"
    again = f"`{files.resume_study_command(run.path.parents[2])}`" if files.has_study(run.path) else "its own command"
    return f"{again} resumes it"


def read_metrics(path: Path) -> list[tuple[int, str, float]]:
    """The rows of a run's `metrics.csv` that are whole: step, metric, value; empty without the file."""
    lines = read_bytes(sound_run(path).path / METRICS).decode(errors="replace").split("\n")[:-1]
    return [(int(row[1]), row[2], float(row[3])) for row in map(METRIC_ROW.fullmatch, lines) if row]


def read_predictions(path: Path, split: str) -> list[Prediction]:
    """A run's predictions of a split, one per example; `UserError` if there are none that are those of its result.

    Before the run is finished they are those of any attempt.
    """
    result = sound_run(path).result
    scores = result.splits.get(split) if result else None
    try:
        content = files.read_file(path / "predictions" / f"{Path(split).name}.jsonl.gz", MAX_PREDICTIONS)
        if result and (scores is None or scores.predictions != digest_of(content)):
            raise BrokenError(path, "they are not those that were scored: the digest in the result is another one")
        if len(lines := gzip.GzipFile(fileobj=io.BytesIO(content)).read(MAX_PREDICTIONS + 1)) > MAX_PREDICTIONS:
            raise BrokenError(path, f"they unpack to more than {MAX_PREDICTIONS >> 20} MiB")
        return PREDICTIONS.decode_lines(lines)
    except FileNotFoundError as error:
        reason = "packed without predictions" if files.packed_in(path) else str(error.strerror)
    except (OSError, EOFError, zlib.error, BrokenError, *UNREADABLE) as error:
        reason = getattr(error, "reason", "") or getattr(error, "strerror", None) or str(error)
    raise UserError(f"{path} has no readable predictions of split '{split}' ({reason})")


def saved_instruments(run: Path) -> list[str]:
    """The names of the instruments whose measurements are saved in a run folder, sorted."""
    names = (name.removesuffix(".json") for name in files.names_in(run / INSTRUMENTS) if name.endswith(".json"))
    return [name for name in names if name.isidentifier() and name.isascii()]


def read_measurement(run: Path, instrument: str) -> Measurement:
    """A measurement in a run folder; `UserError` if there is none, if it can't be drawn, or if it is another run's."""
    file, result = run / INSTRUMENTS / f"{instrument}.json", read_result(run)
    try:
        if not (content := read_bytes(file, MAX_MEASUREMENT)):
            raise UserError(f"{run} has no measurement {quoted(instrument)}; `tfstudy measure --save` saves it")
        record = MEASUREMENTS.decode(unsealed(content, file))
    except (BrokenError, *UNREADABLE) as error:
        raise UserError(f"{file} is broken ({error})") from None
    if (record.instrument, record.run) != (instrument, result.run):
        raise UserError(f"{file} belongs to another run or instrument ({quoted(record.run[:8])}, {record.instrument})")
    return record


def find_weights(path: Path, result: Result) -> Path:
    """The checkpoint that a run was evaluated with, or else its `weights.safetensors`; `UserError` without either."""
    if result.status != "finished":
        raise UserError(f"{path} {result.status}, so it has no weights to use")
    checkpoint = f"checkpoints/{one_of('checkpoint', result.checkpoint, CHECKPOINTS, str(path / RESULT))}.ckpt"
    if file := next((path / name for name in (checkpoint, WEIGHTS) if files.exists(path / name)), None):
        return file
    again = files.command_again(path, result.smoke)
    raise UserError(f"{path} has no weights, neither {checkpoint} nor {WEIGHTS}; `{again}` trains it again")


def last_lines(path: Path, count: int = 20) -> list[str]:
    """The last lines of the log; empty without one that can be read."""
    try:
        return read_bytes(path / "train.log").decode(errors="replace").splitlines()[-count:]
    except BrokenError:
        return []


# Writing


class RunFolder:
    """The folder of one run. Only the process that holds its lock writes to it (see `write_run`)."""

    def __init__(self, path: Path, run: str) -> None:
        self.path, self.run = path, run
        self.checkpoints, self.metrics = path / "checkpoints", path / METRICS

    def record(self, *events: Event) -> None:
        """Add events to `events.jsonl`, with the time; if the run is finished, its result gets their digest."""
        files.check_writable(self.path)
        result = open_run(self.path).result
        add_events(self.path, *events)
        if result:
            self.write_result(result)

    def finish(self, result: Result) -> None:
        """Write `result.json`, after which the run is finished. `ValueError` for a result that can't be read back.

        Its test sets are recorded as read, once: an evaluation that was killed before this is no read.
        """
        RESULTS.decode(msgspec.json.encode(result))  # refuses nan, which becomes null
        recorded = open_run(self.path).test_reads
        tests = [name for name, scores in result.splits.items() if scores.role == "test" and name not in recorded]
        reads = [Event(event="test read", split=name, reason="run") for name in tests]
        add_events(self.path, *reads, Event(event="finished", status=result.status))
        self.write_result(msgspec.structs.replace(result, test_reads=open_run(self.path).test_reads))
        (self.checkpoints / "previous.ckpt").unlink(missing_ok=True)  # only an unfinished run can go back to it

    def write_result(self, result: Result) -> None:
        """Write `result.json` with the digests of the other files as they are now."""
        contents = {}
        for name in DIGESTED:
            if (file := self.path / name).exists():
                with file.open("rb+") as opened:
                    os.fsync(opened)  # what the result vouches for reaches the disk before it
                    contents[name] = opened.read()
        digests = {name: digest_of(content) for name, content in contents.items()}
        result = msgspec.structs.replace(result, files=digests, events_size=len(contents[EVENTS]))
        write_atomically(self.path / RESULT, sealed(result))

    def write_predictions(self, split: str, predictions: Sequence[Prediction]) -> str:
        """Write all predictions of a split; the same ones give the same bytes. Return the sha256 of the file."""
        lines = (json.dumps(msgspec.to_builtins(row), ensure_ascii=False) + "\n" for row in predictions)
        content = gzip.compress("".join(lines).encode(), mtime=0)
        write_atomically(self.path / "predictions" / f"{split}.jsonl.gz", content)
        return digest_of(content)

    def log(self, text: str) -> None:
        """Add a line to `train.log`."""
        with (self.path / "train.log").open("a", encoding="utf-8") as file:
            file.write(text + "\n")


def run_folder(root: Path, study: str, config: RunConfig, identity: Identity) -> Path:
    """The folder of the run with this config."""
    split = str(config.data.split).replace("/", "_")
    return root / study / f"{config.task}-{split}" / config.arch / f"s{config.seed}-{identity.hash[:8]}"


@contextmanager
def write_run(path: Path, config: RunConfig, identity: Identity, restart: bool = False) -> Iterator[RunFolder]:
    """The run's folder, locked until the block or this process ends. With `restart` an existing run is archived.

    `UserError` if the folder can't be written or has a link, if another process works on the run, if its config was
    edited, if it is broken or packed, or if a zip file of the study, which may have the run, can't be read.
    """
    if files.has_study(path):
        files.study_zips(path.parents[2], strict=True)
    files.check_writable(path)
    with ExitStack() as stack:
        try:
            path.mkdir(parents=True, exist_ok=True)
            stack.enter_context(files.locked(path))
            if restart and any(item.name != ".lock" for item in path.iterdir()):
                print(f"existing run archived: {path.rename(files.archive_name(path))}")
                path.mkdir()
                stack.enter_context(files.locked(path))
        except OSError as error:
            raise UserError(f"can't write to {path}: {error.strerror}") from None
        for part in path.rglob(f".*{files.PART}"):  # of a process that was killed
            part.unlink()
        folder = RunFolder(path, identity.hash)
        if not (path / CONFIG).exists() and not has_result(path):
            write_atomically(path / CONFIG, f"# tfstudy run {folder.run}\n{to_yaml(config)}".encode())
        _check_own(folder, config)
        yield folder


def _check_own(folder: RunFolder, config: RunConfig) -> None:
    """`UserError` if a run is broken, if its config has other settings, or if its events are those of another run."""
    path, run, settings, problem = folder.path, open_run(folder.path), None, ""
    with suppress(UserError, AttributeError):
        settings = settings_of(resolve(yaml_sections(read_bytes(path / CONFIG, MAX_BYTES), CONFIG)))
    hashes = {run_hash(one.settings, one.data, one.code_versions) for one in run.environments}
    if (path / CONFIG).exists() and settings != settings_of(config):
        problem = f"{CONFIG} was edited after the run started, so its results would not belong to it; restore it, or"
    elif run.broken:
        more = f"; without {RESULT} the same command evaluates its checkpoint again, and"
        problem = f"{run.broken}{more if run.broken.name == RESULT else ';'}"
    elif hashes - {folder.run}:
        problem = f"{EVENTS} is damaged: it belongs to another run;"
    if problem:
        raise UserError(f"{path}: {problem} a restart archives the run and starts again")


def add_events(path: Path, *events: Event) -> None:
    """Add events to `events.jsonl`, now unless they have a time. An incomplete last line is dropped."""
    whole = read_bytes(path / EVENTS).rfind(b"\n") + 1
    number = os.open(path / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    with files.naming(path / EVENTS), os.fdopen(number, "wb", buffering=0) as file:
        file.truncate(whole)
        file.seek(whole)
        file.write(b"".join(sealed(msgspec.structs.replace(one, time=one.time or files.utc_now())) for one in events))
        os.fsync(file)


def save_measurement(run: Path, record: Measurement) -> None:
    """Write a measurement to a run folder, in place of an earlier one of the same instrument."""
    files.check_writable(run)
    write_atomically(run / INSTRUMENTS / f"{record.instrument}.json", sealed(record))


def write_failure(path: Path, reason: str, attempts: int) -> None:
    """Record why a run was given up."""
    files.check_writable(path)
    path.mkdir(parents=True, exist_ok=True)
    add_events(path, Event(event="failed", reason=reason, attempts=attempts))
