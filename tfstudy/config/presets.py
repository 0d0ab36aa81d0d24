"""Presets: named settings for a task and an architecture, from `configs/presets/` or from a file."""

from functools import lru_cache
from pathlib import Path

from tfstudy.config.files import configs, read_yaml
from tfstudy.config.trees import Tree
from tfstudy.tasks.errors import one_of


def presets(task: str) -> dict[str, Tree]:
    """Return the presets of a task as name -> architecture -> sections; empty for a task without a file."""
    path = configs() / "presets" / f"{task}.yaml"
    return _presets(path, path.stat().st_mtime_ns) if path.exists() else {}


@lru_cache(maxsize=32)
def _presets(path: Path, modified: int) -> dict[str, Tree]:
    """Read a file once per version: tables compare each condition with its preset."""
    return read_yaml(path)


def preset(task: str, arch: str, name: str = "default") -> Tree:
    """Return the sections of a preset; `name` may be FILE:NAME. Without a preset `default` the result is empty.

    `UserError` if the task and architecture have no preset of this name.
    """
    file, _, key = name.rpartition(":")
    available = read_yaml(Path(file)) if file else presets(task)
    known = {k: tree for k, tree in available.items() if isinstance(tree, dict) and isinstance(tree.get(arch), dict)}
    if name == "default" and name not in known:
        return {}
    tree: Tree = known[one_of("preset", key, known, f"{file or 'presets'} ({task}, {arch})")][arch]
    return {key: value for key, value in tree.items() if key != "about"}
