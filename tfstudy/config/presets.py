"""Presets: named settings for a task and an architecture, from `configs/presets/`, a plug-in or a file."""

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tfstudy import models, tasks
from tfstudy.config.trees import Tree, configs, merge, read_yaml
from tfstudy.errors import UserError, one_of
from tfstudy.plugins import Plugin, presets_file

REFERENCE = "transformer"  # gives its size and training settings to architectures without a preset


def presets(task: str) -> dict[str, Tree]:
    """Return the presets of a task as name -> architecture -> sections; those shared by all tasks without a file.

    Those that plug-ins bring for their architectures are not among them.
    """
    if task not in tasks.names():
        return {}
    plugin = tasks.plugin(task)
    own = presets_file(plugin) if plugin else configs() / "presets" / f"{task}.yaml"
    if plugin or own.exists():
        return _from(own)
    cls = tasks.find(task)
    return {
        name: {
            arch: merge({"train": {"steps": cls.steps_of.get(arch, cls.steps)}}, sections)
            for arch, sections in archs.items()
        }
        for name, archs in _from(configs() / "presets" / "shared.yaml").items()
    }


def all_presets(task: str) -> dict[str, Tree]:
    """Return the presets of a task, with those of all plug-ins that can be imported."""
    found = {name: dict(archs) for name, archs in presets(task).items() if isinstance(archs, dict)}
    for arch in models.names():
        with suppress(UserError):
            plugin = models.plugin(arch)
            for name, sections in _of_architecture(plugin, task).items() if plugin else ():
                found.setdefault(name, {})[arch] = sections
    return found


def _of_architecture(plugin: Plugin, task: str) -> dict[str, Tree]:
    """The presets of an architecture for a task, as name -> sections: its file has them by task."""
    tree = _from(presets_file(plugin)).get(task, {})
    return {name: sections for name, sections in tree.items() if isinstance(sections, dict)}


def _from(path: Path) -> dict[str, Tree]:
    return _read(path, path.stat().st_mtime_ns) if path.exists() else {}


@lru_cache(maxsize=32)
def _read(path: Path, modified: int) -> dict[str, Tree]:
    """Read a file once per version: tables compare each condition with its preset."""
    return read_yaml(path, aliases=True)


def preset(task: str, arch: str, name: str = "default") -> Tree:
    """Return the sections of a preset; `name` may be FILE:NAME. Without a preset `default` the result is empty.

    `UserError` if the task and architecture have no preset of this name.
    """
    return {key: value for key, value in _find(task, arch, name).items() if key not in ("about", "differences")}


def starting_point(task: str, arch: str, name: str = "default") -> Tree:
    """Return the sections of a preset; those of the reference but its model for an architecture without a preset.

    So its runs have the steps, batches and learning rate that the others have. `UserError` as in `preset`.
    """
    found = preset(task, arch, name)
    if found or name != "default":
        return found
    return {key: section for key, section in preset(task, REFERENCE).items() if key != "model"}


def about_preset(task: str, arch: str, name: str) -> str:
    """Return the description of a preset; empty without one."""
    with suppress(UserError):
        return str(_find(task, arch, name).get("about", ""))
    return ""


def differences(task: str, arch: str, name: str) -> list[str]:
    """Return what a preset has otherwise than the paper that it is named after; empty without one."""
    with suppress(UserError):
        return [str(line) for line in _find(task, arch, name).get("differences", [])]
    return []


def _find(task: str, arch: str, name: str) -> Tree:
    """Return a preset with its description."""
    file, _, key = name.rpartition(":")
    available = read_yaml(Path(file)) if file else presets(task)
    known = {k: tree for k, tree in available.items() if isinstance(tree, dict) and isinstance(tree.get(arch), dict)}
    if not file and arch in models.names() and (plugin := models.plugin(arch)):
        known |= {k: {**known.get(k, {}), arch: tree} for k, tree in _of_architecture(plugin, task).items()}
    if name == "default" and name not in known:
        return {}
    tree: Tree = known[one_of("preset", key, known, f"{file or 'presets'} ({task}, {arch})")][arch]
    return tree
