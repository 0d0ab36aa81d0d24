"""The tasks of tfstudy, one file or package each; a task maps strings to strings and needs no torch.

A task is found by the name of its file: `tasks/scan.py` defines the task `scan`. To add a task, add a file, or install
or name a plug-in (`plugins`). The functions are those of `tfstudy.registry.Registry`.
"""

from typing import TYPE_CHECKING, Any, cast

from tfstudy.errors import UserError, quoted
from tfstudy.registry import Registry

if TYPE_CHECKING:
    from tfstudy.tasks.base import Task, TaskConfig

__all__ = ["Task", "UserError", "build", "built_in", "find", "known", "names", "plugin"]

NOT_TASKS = {"base", "corpus", "generated", "reading", "scoring"}  # all other modules of this package are tasks
REGISTRY = Registry("task", __name__, "tasks", NOT_TASKS)
names, built_in, known, plugin = REGISTRY.names, REGISTRY.built_in, REGISTRY.known, REGISTRY.plugin


def __getattr__(name: str) -> Any:
    if name != "Task":
        raise AttributeError(f"module 'tfstudy.tasks' has no attribute '{name}'")
    from tfstudy.tasks.base import Task  # late, since errors are imported for `--help` too

    return Task


def build(name: str, settings: "TaskConfig") -> "Task":
    """Return a task with these settings; `UserError` also for a file that it can't read, which may not be set."""
    try:
        return find(name)(settings)
    except OSError as error:
        what = f"{quoted(error.filename)}: " if error.filename else ""
        raise UserError(f"task {name} can't read its data: {what}{error.strerror or error}") from None


def find(name: str) -> "type[Task]":
    """Return the class of a task, from `tasks/<name>.py`, `tasks/<name>/` or a plug-in; `UserError` without one."""
    return cast("type[Task]", REGISTRY.find(name))
