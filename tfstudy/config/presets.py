"""Named settings of a task and an architecture, from `configs/presets/` or a file."""

from pathlib import Path

from tasks.errors import one_of
from tfstudy.config.files import configs, read_yaml
from tfstudy.config.trees import Tree


def presets(task: str) -> dict[str, Tree]:
    """The presets of a task: name to architecture to sections. A task without a file has none."""
    path = configs() / "presets" / f"{task}.yaml"
    return read_yaml(path) if path.exists() else {}


def preset(task: str, arch: str, name: str = "default") -> Tree:
    """The sections of a preset for (task, arch), of the task's or as FILE:NAME; `default` alone may be missing."""
    file, _, key = name.rpartition(":")
    every = read_yaml(Path(file)) if file else presets(task)
    known = {k: tree for k, tree in every.items() if isinstance(tree, dict) and isinstance(tree.get(arch), dict)}
    if name == "default" and name not in known:
        return {}
    tree: Tree = known[one_of("preset", key, known, f"{file or 'presets'} ({task}, {arch})")][arch]
    return {key: value for key, value in tree.items() if key != "about"}
