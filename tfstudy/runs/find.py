"""Find studies and runs by name. Imports no torch."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tfstudy.errors import UserError, expected, one_of, quoted
from tfstudy.plugins import command
from tfstudy.runs.files import RUN, is_archived
from tfstudy.runs.store import CHECKPOINTS, WEIGHTS, is_finished
from tfstudy.runs.studyfile import NAME, exists, packed_runs

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
        raise UserError(
            f"there is no folder of results at {quoted(root)}; choose another one, or train a model first "
            "(`tfstudy run TASK`); the trained models of the study `first` come with the source code of tfstudy"
        )


def studies(root: Path) -> list[str]:
    """The names of the studies in a folder of results, without trials of searches and measurements of speed."""
    names = [path.name for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    return sorted(name for name in names if not name.startswith(".") and name not in NO_STUDIES)


def find_study(root: Path, name: str) -> Path:
    """The folder of a study, given by its name or its path; `UserError` if there is none."""
    names = studies(root)
    if not names:
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
        found = dict.fromkeys(study for study, *others in parts if len(others) > 2)
        if len(found) > 1:
            raise UserError(f"name a study: {', '.join(found)}; or {quoted(root)} for all of them together")
        return root
    if name not in studies(root):
        folder, whole = Path(name).resolve(), root.resolve()
        if folder == whole:
            return root
        if whole not in folder.parents and next(find_runs(Path(name)), None):
            return Path(name)
    return find_study(root, name)


def find_runs(root: Path) -> Iterator[Path]:
    """Every run under `root`, finished or not, in the order of their names, without archived runs and trials.

    A packed run has the path that its folder had. A link directly in `root`, as to a study, is followed; links further
    inside are not.
    """
    found = set(packed_runs(root))
    for top in (root, *(root / name for name in studies(root) if (root / name).is_symlink())):
        for folder, names, files in os.walk(top):
            path = Path(folder)
            if not is_archived(path) and not STARTED.isdisjoint([*names, *files]):
                found.add(path)
            if RUN.fullmatch(path.name):
                names.clear()
            elif any(map(NAME.fullmatch, files)):
                found.update(packed_runs(path))
            names[:] = [name for name in names if not name.startswith(".") and name not in NO_STUDIES]
    return iter(sorted(found, key=lambda path: path.parts))


def find_run(root: Path, text: str, studies: Sequence[str] = ()) -> Path:
    """The run that `text` names: see `FORMS`. Copies of a run in several studies count as one, finished ones first.

    `studies` are named in the message where a study would do as well.

    `UserError` if no run matches, or several different ones.
    """
    if any(exists(f"{text}/{name}") for name in STARTED):
        return Path(text)
    check_results_folder(root)
    runs = list(find_runs(root))
    by_name = _matching(root, runs, _words(root, text))
    if len(by_name) == 1:
        weights = (WEIGHTS, *(f"checkpoints/{name}.ckpt" for name in CHECKPOINTS))
        [copies] = by_name.values()
        return min(copies, key=lambda path: (not is_finished(path), not any(exists(path / name) for name in weights)))
    if by_name:
        shown = [f"  {copies[0].relative_to(root)}" for copies in list(by_name.values())[:SHOWN]]
        more = [f"  ... and {len(by_name) - SHOWN} more"] if len(by_name) > SHOWN else []
        message = f"{quoted(text, LONGEST)} matches {len(by_name)} runs; name one of them:"
        raise UserError("\n".join([message, *shown, *more]))
    names = [*studies]
    for path in runs:  # from the shortest name to the longest
        study, experiment, arch, run = ("", "", "", *path.parts)[-4:]
        seed = run.partition("-")[0]
        names += [f"{study}/{arch}", f"{study}/{experiment}/{arch}", f"{study}/{arch}/{seed}"]
        names += [f"{study}/{experiment}/{arch}/{seed}", f"{experiment}/{arch}/{run}", run]
    what, forms = ("study or run", f"a study, {FORMS}") if studies else ("run", FORMS)
    raise UserError(f"no {what} {quoted(text, LONGEST)} in {root}{expected(text, names, forms)}")


def _matching(root: Path, runs: Sequence[Path], words: Sequence[str]) -> dict[str, list[Path]]:
    """The runs that words name, with the copies of each: by seed and folders, or else by the start of their hash."""
    for by_hash in (False, True):
        found: dict[str, list[Path]] = {}
        for path in runs if words[-1] else ():
            run, parts, last = RUN.fullmatch(path.name), path.relative_to(root).parts, words[-1]
            named = run and (run["hash"].startswith(last) if by_hash else last in (f"s{run['seed']}", run["seed"]))
            remaining = iter((*parts[:-1], last) if named else parts)
            if all(word in remaining for word in words):
                found.setdefault(path.name, []).append(path)
        if found:
            return found
    return {}
