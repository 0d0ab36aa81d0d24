"""Write run folders. Files appear complete (written aside, then renamed) or grow by whole lines. Imports no torch."""

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig, to_yaml
from tfstudy.config.trees import yaml_sections
from tfstudy.errors import UserError
from tfstudy.runs.files import (
    BrokenError,
    archive_name,
    check_writable,
    digest_of,
    has_study,
    locked,
    naming,
    sealed,
    utc_now,
    write_atomically,
)
from tfstudy.runs.identity import Identity, run_hash, settings_of
from tfstudy.runs.schema import (
    FORMAT,
    SLICES,
    AnyEvent,
    Failed,
    Finished,
    Prediction,
    ReadTest,
    Result,
    Started,
)
from tfstudy.runs.store import (
    CONFIG,
    DIGESTED,
    EVENTS,
    MAX_CONFIG,
    METRICS,
    RESULT,
    has_result,
    last_lines,
    open_run,
    read_bytes,
    read_result,
    read_test_reads,
)
from tfstudy.runs.studyfile import check_unpacked, study_zips


class RunFolder:
    """The folder of one run. Only the process that holds its lock writes to it (see `write_run`)."""

    def __init__(self, path: Path, run: str) -> None:
        self.path, self.run = path, run
        self.checkpoints, self.metrics = path / "checkpoints", path / METRICS

    @property
    def result(self) -> Result:
        """The result; `UserError` if there is none that can be read."""
        return read_result(self.path)

    def record(self, *events: AnyEvent) -> None:
        """Add events to `events.jsonl`, with the time; if the run is finished, its result gets their digest."""
        result = check_addable(self.path)
        add_events(self.path, *(msgspec.structs.replace(event, time=utc_now()) for event in events))
        if result:
            self.write_result(result)

    def finish(self, result: Result) -> None:
        """Write `result.json`, after which the run is finished. `ValueError` for a result that can't be read back.

        Its test sets are recorded as read, once: an evaluation that was killed before this is no read.
        """
        content = msgspec.json.encode(result)
        for scores in msgspec.json.decode(content, type=Result).splits.values():  # refuses nan, which became null
            SLICES.decode(scores.encoded_slices)
        now, recorded = utc_now(), read_test_reads(self.path)
        tests = [name for name, scores in result.splits.items() if scores.role == "test" and name not in recorded]
        reads = [ReadTest(split=name, reason="run", time=now) for name in tests]
        add_events(self.path, *reads, Finished(status=result.status, time=now))
        self.write_result(msgspec.structs.replace(result, test_reads=read_test_reads(self.path)))
        (self.checkpoints / "previous.ckpt").unlink(missing_ok=True)  # only an unfinished run can go back to it

    def write_result(self, result: Result) -> None:
        """Write `result.json` with the digests of the other files as they are now."""
        files = {}
        for name in DIGESTED:
            if (file := self.path / name).exists():
                with file.open("rb+") as opened:
                    os.fsync(opened)  # what the result vouches for reaches the disk before it
                    files[name] = opened.read()
        digests = {name: digest_of(content) for name, content in files.items()}
        result = msgspec.structs.replace(result, files=digests, events_size=len(files[EVENTS]))
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

    def count_reads(self, splits: Iterable[str], reason: str) -> None:
        """Record that test sets were evaluated."""
        self.record(*(ReadTest(split=split, reason=reason) for split in splits))


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
    check_unpacked(path)
    if has_study(path):
        study_zips(path.parents[2], strict=True)
    check_writable(path)
    with ExitStack() as stack:
        try:
            path.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(path))
        except OSError as error:
            raise UserError(f"can't write to {path}: {error.strerror}") from None
        if restart and any(item.name != ".lock" for item in path.iterdir()):
            print(f"existing run archived: {archive(path)}")
        folder = RunFolder(path, identity.hash)
        _check_config(folder, config)
        _check_sound(folder)
        yield folder


def _check_config(folder: RunFolder, config: RunConfig) -> None:
    """Write `config.yaml`; `UserError` if it exists with other settings."""
    path = folder.path / CONFIG
    if not path.exists():
        if not has_result(folder.path):
            write_atomically(path, f"# tfstudy run {folder.run}\n{to_yaml(config)}".encode())
        return
    try:
        content = read_bytes(path, MAX_CONFIG)
        same = settings_of(resolve(yaml_sections(content, str(path)))) == settings_of(config)
    except (UserError, AttributeError):
        same = False
    if not same:
        raise UserError(
            f"{path} was edited after the run started, so its results would not belong to its config; restore it, or "
            "archive the run and start again (restart)"
        )


def _check_sound(folder: RunFolder) -> None:
    """`UserError` if the run is broken, or if its events are those of another run."""
    path, run = folder.path, open_run(folder.path)
    started = [event.environment for event in run.events if isinstance(event, Started)]
    own = all(run_hash(one.settings, one.data, one.code_versions) == folder.run for one in started if one.settings)
    if error := run.broken or (None if own else BrokenError(path / EVENTS, "it belongs to another run")):
        more = f"; without {RESULT} the same command evaluates its checkpoint again" if error.name == RESULT else ""
        raise UserError(f"{path}: {error}; a restart archives the run and starts again{more}")


def check_addable(path: Path) -> Result | None:
    """Return the result of a run; `UserError` if nothing is added to its record, packed or written by older code."""
    check_unpacked(path)
    result = open_run(path).result
    if result and result.format != FORMAT:
        raise UserError(
            f"{path} was recorded by older code, and nothing is added to its record; a restart runs it again"
        )
    return result


def archive(path: Path) -> Path:
    """Move the content of a run folder to `<name>.old-<n>` next to it, and return that folder."""
    archived = archive_name(path)
    archived.mkdir()
    # The result goes first and the config last: if interrupted in between, an unfinished run of this config remains.
    for item in sorted(path.iterdir(), key=lambda item: (item.name != RESULT, item.name == CONFIG)):
        if item.name != ".lock":
            item.rename(archived / item.name)
    return archived


def add_events(path: Path, *events: AnyEvent) -> None:
    """Add events to `events.jsonl`. An incomplete last line is dropped."""
    content = read_bytes(path / EVENTS)
    number = os.open(path / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    with naming(path / EVENTS), os.fdopen(number, "wb", buffering=0) as file:
        file.truncate(content.rfind(b"\n") + 1)
        file.seek(0, os.SEEK_END)
        file.write(b"".join(map(sealed, events)))
        os.fsync(file)


def write_failure(path: Path, reason: str, attempts: int) -> None:
    """Record why a run was given up, with the last lines of its log."""
    check_writable(path)
    path.mkdir(parents=True, exist_ok=True)
    add_events(path, Failed(reason=reason, attempts=attempts, log=last_lines(path), time=utc_now()))
