"""The tasks of tfstudy, one file or package each; a task maps strings to strings and needs no torch.

A task is found by the name of its file: `tasks/scan.py` defines the task `scan`. To add a task, add a file, or install
or name a plug-in (`plugins`).
"""

import sys
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from tfstudy.errors import UserError, quoted

if TYPE_CHECKING:
    from tfstudy.plugins import Plugin
    from tfstudy.registry import Registry
    from tfstudy.tasks.base import Task, TaskConfig

__all__ = ["Task", "UserError", "build", "built_in", "find", "get_registry", "known", "names", "plugin"]

# Modules of this package that define no task
NOT_TASKS = {"base", "corpus", "generated", "reading", "scoring"}


def __getattr__(name: str) -> Any:
    if name != "Task":
        raise AttributeError(f"module 'tfstudy.tasks' has no attribute '{name}'")
    from tfstudy.tasks.base import Task  # late, since errors are imported for `--help` too

    return Task


@cache
def get_registry() -> "Registry":
    """Return what finds tasks by name."""
    from tfstudy.registry import Registry

    return Registry("task", "tfstudy.tasks", "tasks", NOT_TASKS)


def names() -> list[str]:
    """Return the names of all tasks, sorted."""
    return get_registry().names()


def built_in() -> list[str]:
    """Return the names of the tasks of this package, without plug-ins, sorted."""
    return get_registry().built_in()


def known(name: str) -> str:
    """Return the name if there is such a task; otherwise raise `UserError` with the nearest name. It imports none."""
    return get_registry().known(name)


def plugin(name: str) -> "Plugin | None":
    """Return the plug-in that defines the task; None if it is built in."""
    return get_registry().plugin(name)


def build(name: str, settings: "TaskConfig") -> "Task":
    """Return a task with these settings; `UserError` also for a file that it can't read, which may not be set."""
    try:
        return find(name)(settings)
    except OSError as error:
        what = f"{quoted(error.filename)}: " if error.filename else ""
        raise UserError(f"task {name} can't read its data: {what}{error.strerror or error}") from None


def find(name: str) -> "type[Task]":
    """Return the class of a task, from `tasks/<name>.py`, `tasks/<name>/` or a plug-in; `UserError` without one."""
    try:
        return cast("type[Task]", get_registry().find(name))
    except UserError as error:
        if "must define one subclass of Task" in str(error) and "tasks.base" in sys.modules:
            raise UserError(f"{error}; import Task from tfstudy.tasks.base") from None
        raise
