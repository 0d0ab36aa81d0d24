"""The tasks of tfstudy, one file or package each; a task maps strings to strings and needs no torch.

A task is found by the name of its file: `tasks/scan.py` defines the task `scan`. To add a task, add a file.
"""

import importlib
import inspect
import pkgutil
import sys

from tfstudy.tasks.base import Task
from tfstudy.tasks.errors import UserError, one_of

__all__ = ["Task", "UserError", "find", "names"]

NOT_TASKS = {"base", "errors", "scoring", "generated"}  # modules of this package that define no task


def names() -> list[str]:
    """Return the names of all tasks, sorted."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in NOT_TASKS)


def find(name: str) -> type[Task]:
    """Return the task class of `tasks/<name>.py` or `tasks/<name>/`; raise `UserError` if there is no such task."""
    one_of("task", name, names())
    module = importlib.import_module(f"tfstudy.tasks.{name}")
    classes = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Task)
        and f"{value.__module__}.".startswith(f"{module.__name__}.")
    ]
    if len(classes) != 1:
        hint = "; import Task from tfstudy.tasks.base" if "tasks.base" in sys.modules else ""
        raise UserError(f"tasks/{name}.py must define one subclass of Task, but defines {len(classes)}{hint}")
    return classes[0]
