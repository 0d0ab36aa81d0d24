"""Plug-ins as files, and installed packages with entry points, as small as they can be."""

from pathlib import Path

TASK = '''"""A task of one letter."""

from tfstudy.tasks.base import Example, Splits, Task, TaskConfig


class Letters(Task):
    """One letter to the same letter."""

    class Config(TaskConfig):
        split: str = "only"

    def __init__(self, config):
        self.check_config(config)

    @classmethod
    def split_schemes(cls):
        return {"only": "all letters"}

    def splits(self):
        return Splits("train", None, ("test",))

    def examples(self, split):
        return [Example((a,), (a,), {"length": 1}) for a in {"train": "abcdefgh", "test": "ij"}[split]]

    def vocabulary(self):
        return set("abcdefghij"), set("abcdefghij")
'''


def write(folder: Path, name: str, text: str = TASK) -> Path:
    """A file with a plug-in."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path


def install(site: Path, package: str, entry: str, text: str = TASK, group: str = "tfstudy.tasks") -> None:
    """A package of one module in a folder of `sys.path`; `entry` is such as `mine = a_package:Letters`."""
    info = site / f"{package}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
    write(site, package, text)
