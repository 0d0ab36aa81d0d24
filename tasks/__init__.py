"""The tasks of tfstudy: one file a task, strings in and strings out, no torch.

A task is found by its file's name: `tasks/scan.py` holds the task `scan`. To add one, add a file.
"""

import importlib
import inspect
import pkgutil

from tasks.base import Task
from tasks.errors import UserError, one_of

__all__ = ["Task", "UserError", "find", "names"]

# Files of this folder that are no task.
PARTS = {"base", "errors", "scoring", "generated"}


def names() -> list[str]:
    """The names of all tasks, sorted."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in PARTS)


def find(name: str) -> type[Task]:
    """The task class of `tasks/<name>.py`; `UserError` if there is no such file."""
    one_of("task", name, names())
    module = importlib.import_module(f"tasks.{name}")
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Task)
        and f"{value.__module__}.".startswith(f"{module.__name__}.")
    ]
    if len(found) != 1:
        raise UserError(f"tasks/{name}.py must define one subclass of Task, but defines {len(found)}")
    return found[0]
