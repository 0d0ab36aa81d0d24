"""Whether a run is what its command would give now, and if not, what has changed since."""

import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tasks
from tasks.base import fingerprint
from tasks.errors import UserError
from tfstudy import models
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.experiment import prepare
from tfstudy.runs.environment import syntax_trees
from tfstudy.runs.identity import identify
from tfstudy.runs.progress import DIVERGED, DONE, FAILED, RUNNING, read_run
from tfstudy.runs.reader import read_config, read_environments, read_result

PARTS = ("task", "split", "arch", "seed", "decode", "eval")  # of the config that stand in result.json too


def explain(path: Path) -> list[str]:
    """Lines on a run: how far it is, then all that has changed since it was made, or that nothing has."""
    lines, changes, code = [f"{path}", f"  {_state(path)}"], *_changes(path)
    if changes:
        return [*lines, "not up to date:", *(f"  {change}" for change in [*changes, *code])]
    if code:
        same = "up to date by its hash: its config, its data and the versions of the code are those of now; but"
        return [*lines, same, *(f"  {change}" for change in code)]
    return [*lines, "up to date: its config, its data and the code are those of now"]


def _state(path: Path) -> str:
    run = read_run(path)
    if not run:
        return "not begun"
    at = f" at step {run.step} of {run.steps}" if run.steps else ""
    words = {
        DONE: "finished",
        DIVERGED: "diverged, which is its result",
        RUNNING: f"running now{at}",
        FAILED: f"failed{at}: {run.reason}; `tfstudy retry` makes it again",
    }
    return words.get(run.state, f"interrupted{at}; `tfstudy retry`, or its own command, goes on with it")


def _changes(path: Path) -> tuple[list[str], list[str]]:
    """What makes it another run, and code that changed without saying so."""
    try:
        config = resolve(read_config(path))
    except UserError as error:
        return [f"config: {line}" for line in str(error).splitlines()], []
    environments = read_environments(path)
    if not environments:
        return ["it has no env.json, so that it is not known what it was made with"], []
    then = environments[-1]
    made, data, versions = made_as(path), then.get("data", ""), then.get("code_versions", {})
    changes = _config(path, config) if not identify(config, data, versions).hash.startswith(made) else []
    changes += _data(config, str(data))
    now = prepare.versions(config)
    changes += [
        f"version of the {part}: {versions.get(part)} then, {now.get(part)} now"
        for part in {**versions, **now}
        if versions.get(part) != now.get(part)
    ]
    return changes, _trees(config, environments)


def made_as(path: Path) -> str:
    """The run's hash when it was begun; its start if only the folder tells it."""
    found = re.match(r"# tfstudy run (\w+)", (path / "config.yaml").read_text(errors="replace"))
    return found[1] if found else path.name.rpartition("-")[2]


def _config(path: Path, config: RunConfig) -> list[str]:
    """What is known of a config that is not the one that the run was begun with."""
    try:
        result = read_result(path)
    except UserError:
        result = {}
    tree = config.model_dump(mode="json")
    now = {**tree, "split": tree["data"]["split"]}
    known = [
        f"config: {part} was {result[part]}, but is {now[part]}"
        for part in PARTS
        if part in result and result[part] != now[part]
    ]
    given = read_config(path)
    added = [
        f"{section}.{key}"
        for section, keys in tree.items()
        if isinstance(keys, dict)
        for key in keys
        if key not in (given.get(section) or {})
    ]
    if added:
        known.append(f"config: keys that config.yaml does not have and that now take their default: {', '.join(added)}")
    return known or ["config: config.yaml was edited after the run began; what stood there is not known"]


def _data(config: RunConfig, then: str) -> list[str]:
    try:
        now = fingerprint(tasks.find(config.task)(config.data))
    except UserError as error:
        return [f"data: they can't be made now: {error}"]
    return [f"data: their content was {then[:8]}, but is {now[:8]}"] if now != then else []


def _trees(config: RunConfig, environments: Sequence[dict[str, Any]]) -> list[str]:
    """Files that decide numbers and differ from those of any process that worked on the run."""
    models.find(config.arch)
    others = {f"tfstudy.models.{name}" for name in models.names() if name != config.arch}
    others |= {f"tasks.{name}" for name in tasks.names() if name != config.task}
    recorded = {(name, tree) for env in environments for name, tree in env.get("syntax_trees", {}).items()}
    recorded = {(name, tree) for name, tree in recorded if name not in others}
    gone = {name for name, _ in recorded if not _importable(name)}
    now = syntax_trees()
    changed = sorted({name for name, tree in recorded if name not in gone and now.get(name, tree) != tree})
    return [f"code: {name} is gone" for name in sorted(gone)] + [
        f"code: {name} has changed since, though no version was raised" for name in changed
    ]


def _importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True
