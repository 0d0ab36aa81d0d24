"""Find run folders and read what is in them. Imports no torch, so that commands answer at once."""

import difflib
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tasks.errors import UserError
from tfstudy.config.files import read_yaml
from tfstudy.runs.files import content
from tfstudy.runs.schema import FORMAT, Environment, Result

RESULT = msgspec.json.Decoder(Result)
ENVIRONMENTS = msgspec.json.Decoder(list[Environment])
PREDICTIONS = msgspec.json.Decoder(dict[str, Any])


def environments(path: Path) -> list[Environment]:
    """What `env.json` says of the processes that worked on a run; empty if it can't be read."""
    try:
        return ENVIRONMENTS.decode(content(f"{path}/env.json"))
    except msgspec.DecodeError:
        return []


def predictions(path: Path, split: str) -> list[dict[str, Any]]:
    """A run's predictions of a split, an entry an example; `UserError` if it has none that can be read."""
    try:
        lines = gzip.decompress((path / "predictions" / f"{split}.jsonl.gz").read_bytes())
        if found := PREDICTIONS.decode_lines(lines):
            return found
        reason = "the file is empty"
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:  # not there, cut off, not what was written
        reason = getattr(error, "strerror", None) or str(error)
    raise UserError(f"{path} has no predictions of '{split}' that can be read ({reason})")


RUN = re.compile(r"s\d+-\w+(\.old-\d+)?")


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
