"""Presets: named settings for a task and an architecture, from `configs/presets/`, a plug-in or a file."""

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tfstudy import models, tasks
from tfstudy.config.trees import Tree, configs, merge, read_yaml
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.plugins import presets_file

REFERENCE = "transformer"  # gives its size and training settings to architectures without a preset
NOTES = ("about", "differences")  # keys of a preset that are no settings


def presets(task: str, archs: Iterable[str] | None = None) -> dict[str, dict[str, Tree]]:
    """Return the presets of a task as name -> architecture -> sections; those shared by all tasks without a file.

    A plug-in's task without a file has those tuned on several tasks. Plug-ins bring those of their architectures;
    plug-ins that can't be imported are left out. With `archs`, only these are imported.
    """
    if task not in tasks.names():
        return {}
    plugin = tasks.plugin(task)
    own = presets_file(plugin) if plugin else configs() / "presets" / f"{task}.yaml"
    shared = not own.exists()
    found = _named(_read(configs() / "presets" / "shared.yaml" if shared else own))
    if shared:
        found, cls = {"default": found["tuned"]} if plugin else found, tasks.find(task)
        for trees in found.values():
            for arch, tree in trees.items():
                trees[arch] = merge({"train": {"steps": cls.steps_of.get(arch, cls.steps)}}, tree)
    for arch in models.names() if archs is None else archs:
        brought = None
        with suppress(UserError):
            brought = models.plugin(arch)
        theirs = _named(_read(presets_file(brought))) if brought else {}
        for name, tree in theirs.get(task, {}).items():
            found.setdefault(name, {})[arch] = tree
    return found


def _read(path: Path) -> Tree:
    return _read_once(path, path.stat().st_mtime_ns) if path.exists() else {}


@lru_cache(maxsize=32)
def _read_once(path: Path, modified: int) -> Tree:
    """Read a file once per version: tables compare each condition with its preset."""
    return read_yaml(path, aliases=True)


def _named(tree: Tree) -> dict[str, dict[str, Tree]]:
    """Return what in a file are presets."""
    named = {name: archs for name, archs in tree.items() if isinstance(archs, dict)}
    return {name: {k: one for k, one in archs.items() if isinstance(one, dict)} for name, archs in named.items()}


def preset(task: str, arch: str, name: str = "default", notes: bool = False) -> Tree:
    """Return the sections of a preset, or its notes; `name` may be FILE:NAME. Empty without a preset `default`.

    `UserError` if the task and architecture have no preset of this name.
    """
    file, _, key = name.rpartition(":")
    if file and os.path.exists(file) and not os.path.isfile(file):  # a record may name a pipe, which would never end
        raise UserError(f"preset {quoted(name, 300)}: the part before the colon must be a file")
    available = _named(read_yaml(Path(file))) if file else presets(task, [arch] if arch in models.names() else [])
    known = {k: archs for k, archs in available.items() if arch in archs}
    if name == "default" and name not in known:
        return {}
    found = known[one_of("preset", key, known, f"{file or 'presets'} ({task}, {arch})")][arch]
    return {key: value for key, value in found.items() if (key in NOTES) == notes}


def preset_notes(task: str, arch: str, name: str) -> Tree:
    """Return what a preset is `about`, and its `differences` from the paper it is named after; empty without one."""
    with suppress(UserError):
        return preset(task, arch, name, notes=True)
    return {}


def starting_point(task: str, arch: str, name: str = "default") -> Tree:
    """Return the sections of a preset; for an architecture without a preset those of the reference, but not its size.

    So its runs have the steps, batches, learning rate and dropout that the others have. `UserError` as in `preset`.
    """
    if (found := preset(task, arch, name)) or name != "default":
        return found
    found = preset(task, REFERENCE)
    return found | {"model": {key: value for key, value in found.get("model", {}).items() if key == "dropout"}}


def has_size(settings: Tree) -> bool:
    """Whether a starting point gives the network's size; else its widths are chosen to reach that of the reference."""
    return bool(settings.get("model", {}).keys() - {"dropout"})
