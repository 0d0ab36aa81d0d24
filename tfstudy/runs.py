"""Run folders as files: finding them, and reading what is in them. Loads no torch, so that it answers at once.

`tfstudy.record` says what a run folder is, and writes it.
"""

import difflib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tasks.base import UserError
from tfstudy.files import read_yaml

FORMAT = 1  # of result.json
RUN = re.compile(r"s\d+-\w+(\.old-\d+)?")


def note_failure(path: Path, reason: str, attempts: int) -> None:
    """Leaves in `failed.json` why a run was given up, with the last lines of its log; a finished run has none."""
    path.mkdir(parents=True, exist_ok=True)
    note = {"reason": reason, "attempts": attempts, "log": last_lines(path)}
    write_whole(path / "failed.json", json.dumps(note, indent=1).encode())


def held(path: Path) -> bool:
    """Whether a living process has the run open.

    Asks for a shared lock, so that two who look do not take each other for one who works.
    """
    try:
        with (path / ".lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def read_config(path: Path) -> dict[str, Any]:
    """The `config.yaml` of a run as plain values; `UserError` if it can't be read."""
    return read_yaml(path / "config.yaml")


def read_environments(path: Path) -> list[dict[str, Any]]:
    """What `env.json` says of each process that worked on a run; empty without one."""
    try:
        found = json.loads((path / "env.json").read_text())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UserError(f"{path / 'env.json'} can't be read: {error}") from None
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def last_lines(path: Path, count: int = 20) -> list[str]:
    """The end of a run's `train.log`."""
    return tail(path / "train.log", 200 * count).splitlines()[-count:]


def followed(path: Path, size: int, every: float = 0.5) -> Iterator[str]:
    """What is added to a run's `train.log` after its first `size` bytes, until no process makes the run."""
    while True:
        working = held(path)  # asked first, so that the last words of a process that ends now are still read
        try:
            with (path / "train.log").open("rb") as file:
                file.seek(size)
                more = file.read()
        except OSError:
            more = b""
        if more:
            size += len(more)
            yield more.decode(errors="replace")
        if not working:
            return
        time.sleep(every)


def tail(path: Path, size: int) -> str:
    """The last bytes of a file as text; empty if it can't be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file such that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_result(path: Path) -> dict[str, Any]:
    """The `result.json` of a finished run; `UserError` if there is none, or none that can be read."""
    try:
        result: dict[str, Any] = json.loads((path / "result.json").read_text())
    except FileNotFoundError:
        raise UserError(f"{path} is not a finished run: it has no result.json") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path / 'result.json'} can't be read: {error}") from None
    if not isinstance(result, dict):
        raise UserError(f"{path / 'result.json'} can't be read: it holds no result")
    if result.get("format") != FORMAT:
        raise UserError(f"{path / 'result.json'} has format {result.get('format')}, but this version reads {FORMAT}")
    return result


def find_runs(root: Path) -> Iterator[Path]:
    """Every run folder under `root` in the order of their names, finished or not, without those set aside."""
    try:
        with os.scandir(root) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    if ".old-" not in root.name and any(entry.name in ("config.yaml", "failed.json") for entry in entries):
        yield root
    if RUN.fullmatch(root.name):  # nothing below a run is one
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            yield from find_runs(root / entry.name)


def find_run(root: Path, text: str) -> Path:
    """The run whose folder is `text`, also within a study, or the one under `root` whose hash starts with it."""
    if (Path(text) / "config.yaml").exists() or (Path(text) / "failed.json").exists():
        return Path(text)
    runs = list(find_runs(root))
    ending = f"/{text.strip('/')}"
    found = [p for p in runs if p.name.rpartition("-")[2].startswith(text) or str(p).endswith(ending)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"'{text}' is the start of {len(found)} runs: {', '.join(map(str, found))}")
    near = difflib.get_close_matches(text, [form for p in runs for form in _forms(p)], n=1, cutoff=0.6)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise UserError(
        f"no run '{text}': it must be a run's folder or the start of a hash under {root} (`tfstudy list runs`){hint}"
    )


def _forms(path: Path) -> tuple[str, ...]:
    return path.name, path.name.rpartition("-")[2], "/".join(path.parts[-3:])


def headline(result: Mapping[str, Any]) -> str:
    """How a run came out, in some words: the first metric of its first test split."""
    return str(result["status"]) if result["status"] != "finished" else _main(result, " ") or "finished"


def describe_run(path: Path) -> str:
    """One line on a run: how far it is and where it is."""
    if not (path / "result.json").exists():
        return f"{'unfinished':34}{path}"
    try:
        result = read_result(path)
    except UserError as error:
        return f"{'unreadable':34}{path}  ({error})"
    return f"{result['status']:12}{_main(result, '_'):22}{path}"


def _main(result: Mapping[str, Any], blank: str) -> str:
    """The first metric of the first test split; empty if there is none."""
    tests = [part for part in result.get("splits", {}).values() if part["role"] == "test" and part["n"]]
    metrics = tests[0]["metrics"] if tests else {}
    name = next(iter(metrics), "")
    return f"{name.replace('_', blank)} {100 * metrics[name]:.1f} %" if name else ""
