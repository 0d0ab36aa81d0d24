"""Find studies and runs by name, and say which state each run is in. Imports no torch.

A run is finished (or diverged) if it has a sound `result.json`, running while a process holds its `.lock`, failed if a
grid gave it up or one of its files is damaged, pending if a grid planned it and it has not started, and otherwise
interrupted.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tfstudy.config.trees import flat_yaml
from tfstudy.errors import UserError, expected, one_of, quoted
from tfstudy.plugins import command
from tfstudy.runs import store
from tfstudy.runs.files import ARCHIVED, DEPTH, RUN, ZIP_NAME, BrokenError, exists, is_locked, packed_runs, read_plain

STATES = ("finished", "diverged", "running", "failed", "interrupted", "pending")
FINISHED, DIVERGED, RUNNING, FAILED, INTERRUPTED, PENDING = STATES
PLANS = ".plans"  # the folder of a study with the runs that its grids planned
MAX_PLAN = 1 << 24  # bytes
LONGEST = 200  # characters of a path that a message quotes
SHOWN = 5  # runs that a message lists
TUNING = "tuning"  # the folder of the trials of searches, in a folder of results
PERFORMANCE = "performance"  # that of the measurements of `tfstudy bench`
NO_STUDIES = (TUNING, PERFORMANCE)
STARTED = {"config.yaml", "result.json", "events.jsonl"}  # a run folder has at least one of these files
FORMS = (
    "a folder, the start of a hash, STUDY/HASH, or [STUDY/][TASK-SPLIT/]ARCH[/SEED] such as first/lstm or "
    "scan-length/lstm/s3 (`tfstudy list runs`)"
)


def check_results_folder(root: Path) -> None:
    """Raise `UserError` if there is no such folder of results."""
    if not root.is_dir():
        raise UserError(f"there is no folder of results at {quoted(root)}; choose another, or train a model first")


def studies(root: Path) -> list[str]:
    """The names of the studies in a folder of results, without trials of searches and measurements of speed."""
    folders = [path for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    return sorted(path.name for path in folders if not path.name.startswith(".") and path.name not in NO_STUDIES)


def find_study(root: Path, name: str) -> Path:
    """The folder of a study, given by its name or its path; `UserError` if there is none."""
    check_results_folder(root)
    if not (names := studies(root)):
        raise UserError(f"no studies in {root}; choose another folder of results")
    if any(exists(folder / "config.yaml") for folder in (Path(name), root / name)):
        raise UserError(f"{name} is a run, not a study; `{command('result', name)}` shows what it measured")
    study, *inside = _words(root, name)
    if study in names and inside:
        raise UserError(f"{name} is a folder of the study {study}, not a study")
    return root / one_of("study", study, names)


def _words(root: Path, text: str) -> list[str]:
    """The parts of the name of a study or a run; of the path of a folder in `root`, those within `root`."""
    for absolute in (os.path.abspath, os.path.realpath):
        folder, path = Path(absolute(root)), Path(absolute(text))
        if folder in path.parents:
            return list(path.relative_to(folder).parts)
    return text.strip("/").split("/")


def study_folder(study: str | Path, results: str | Path, several: bool = False) -> Path:
    """The folder of a study given by its name or its path, or that of all results if it is named.

    Without a name it is the folder of all results, which must have one study only unless `several` are allowed.
    `UserError` for an unknown name.
    """
    root, name = Path(results), str(study)
    if not name:
        check_results_folder(root)
        parts = (path.relative_to(root).parts for path in (() if several else find_runs(root)))
        found = dict.fromkeys(own[0] for own in parts if len(own) > DEPTH)
        if len(found) > 1:
            raise UserError(f"name a study: {', '.join(found)}; or {quoted(root)} for all of them together")
        return root
    if name not in studies(root):
        folder, whole = Path(name).resolve(), root.resolve()
        if folder == whole and root.is_dir():
            return root
        if whole not in folder.parents and next(find_runs(Path(name)), None):
            return Path(name)
    return find_study(root, name)


def find_runs(root: Path) -> Iterator[Path]:
    """Every run under `root`, finished or not, in the order of their names, without archived runs and trials.

    A packed run has the path that its folder had. A link directly in `root`, as to a study, is followed; links further
    inside are not.
    """
    found = set[Path]()
    for top in (root, *(root / name for name in studies(root) if (root / name).is_symlink())):
        for folder, names, files in os.walk(top):
            path = Path(folder)
            if ARCHIVED not in path.name and not STARTED.isdisjoint([*names, *files]):
                found.add(path)
            if any(map(ZIP_NAME.fullmatch, files)):
                found |= packed_runs(path)
            inside = () if RUN.fullmatch(path.name) else names
            names[:] = [name for name in inside if not name.startswith(".") and name not in NO_STUDIES]
    return iter(sorted(found, key=lambda path: path.parts))


def find_run(root: Path, text: str, studies: Sequence[str] = ()) -> Path:
    """The run that `text` names: see `FORMS`. Copies of a run in several studies count as one, finished ones first.

    `UserError` if no run matches, or several different ones; it names `studies` where a study would do as well.
    """
    if any(exists(f"{text}/{name}") for name in STARTED):
        return Path(text)
    check_results_folder(root)
    runs, words = list(find_runs(root)), _words(root, text)
    found = [path for path in runs if _is_named(path.relative_to(root), words, False)]
    found = found or [path for path in runs if _is_named(path.relative_to(root), words, True)]
    if len(names := {path.name: path for path in reversed(found)}) == 1:
        weights = (store.WEIGHTS, *(f"checkpoints/{name}.ckpt" for name in store.CHECKPOINTS))
        return min(found, key=lambda run: (not store.is_finished(run), not any(exists(run / name) for name in weights)))
    if names:
        shown = [f"\n  {path.relative_to(root)}" for path in sorted(names.values())]
        more = f"\n  ... and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        name_one = f"{quoted(text, LONGEST)} matches {len(names)} runs; name one of them:"
        raise UserError(f"{name_one}{''.join(shown[:SHOWN])}{more}")
    forms = [*studies]
    for path in runs:  # from the shortest name to the longest
        study, experiment, arch, run = ("", "", "", *path.parts)[-4:]
        seed = run.partition("-")[0]
        forms += [f"{study}/{arch}", f"{study}/{arch}/{seed}", f"{study}/{experiment}/{arch}/{seed}", run]
    what, allowed = ("study or run", f"a study, {FORMS}") if studies else ("run", FORMS)
    raise UserError(f"no {what} {quoted(text, LONGEST)} in {root}{expected(text, forms, allowed)}")


def _is_named(path: Path, words: Sequence[str], by_hash: bool) -> bool:
    """Whether words name a run: parts of its path in their order, of which the last may be its seed or hash."""
    run, last = RUN.fullmatch(path.name), words[-1]
    own = run and last and (run["hash"].startswith(last) if by_hash else last in (f"s{run['seed']}", run["seed"]))
    remaining = iter((*path.parts[:-1], last) if own else path.parts)
    return all(word in remaining for word in words)


# States


class Plan(msgspec.Struct):
    """A file in the folder `PLANS` of a study: the runs of a grid, by name."""

    runs: dict[str, str]  # presets
    configs: dict[str, dict[str, Any]] = {}


class RunStatus(NamedTuple):
    """The state of a run, and how far it is."""

    path: Path
    state: str
    seconds: float = 0.0  # of training and evaluation, if it finished
    step: int = 0  # of its last metrics
    steps: int = 0  # planned; 0 if unknown
    seconds_left: float | None = None  # of training, if it is running and its speed is known
    reason: str = ""  # of a failure

    @property
    def name(self) -> str:
        """The folder within the study: `scan-length/lstm/s0-1a2b3c4d`."""
        return "/".join(self.path.parts[-3:])


def study_runs(study: Path) -> list[RunStatus]:
    """Every run of a study: those that started, by name, then those that a grid planned and that have not started."""
    started = [run for run in map(run_status, map(store.open_run, find_runs(study))) if run]
    names = {run.name for run in started}
    return started + [RunStatus(study / name, PENDING) for name in read_plan(study).runs if name not in names]


def read_plan(study: Path) -> Plan:
    """What all grids of a study planned; damaged plans are ignored."""
    plan = Plan({})
    for path in sorted((study / PLANS).glob("*.json")):
        with suppress(OSError, BrokenError, *store.UNREADABLE):
            found = msgspec.json.decode(read_plain(path, MAX_PLAN), type=Plan)
            plan = Plan(plan.runs | found.runs, plan.configs | found.configs)
    return plan


def run_status(run: store.Run) -> RunStatus | None:
    """The state of a run; None if it has not started."""
    if result := run.result:
        return RunStatus(run.path, result.status, result.seconds, result.step, result.step)
    step, steps = 0, flat_yaml(run.config).get("train.steps")
    with suppress(UserError, IndexError):
        step = store.read_metrics(run.path)[-1][0]
    status = RunStatus(run.path, INTERRUPTED, step=step, steps=steps if isinstance(steps, int) else 0)
    if is_locked(run.path):
        return status._replace(state=RUNNING, seconds_left=_seconds_left(status, run))
    if failure := run.broken or run.failure:
        return status._replace(state=FAILED, reason=str(failure))
    return status if run.config else None


def _seconds_left(status: RunStatus, run: store.Run) -> float | None:
    """Seconds until training ends, at the speed at which the process has written metrics; None before it has."""
    with suppress(OSError, ValueError, StopIteration, ZeroDivisionError):
        start = next(one for one in reversed(run.events) if one.event in ("started", "resumed"))
        written = (status.path / store.METRICS).stat().st_mtime
        took = written - datetime.fromisoformat(start.time).timestamp()
        left = (status.steps - status.step) * took / (status.step - start.step)
        return max(0.0, left - (time.time() - written)) if status.step > start.step else None
    return None


def log_text(path: Path) -> str:
    """The last lines of the log, and why the run failed if it did; `UserError` if there is neither."""
    failure = store.open_run(path).failure
    if lines := [*store.last_lines(path), *([f"failed: {failure}"] if failure else [])]:
        return "\n".join(lines)
    raise UserError(f"{path} has no log")
