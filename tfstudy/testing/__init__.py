"""Checks for the tests of your own tasks and architectures: the properties that those of tfstudy have too.

    from tfstudy.testing import check_task, load_plugin

    def test_it_has_the_properties_of_a_task():
        check_task(load_plugin("mine.py"))

They need no test framework. Each raises one `AssertionError` with all properties that fail.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfstudy.plugins import load_file
from tfstudy.tasks.base import Task

if TYPE_CHECKING:
    from tfstudy.models.base import Model

__all__ = ["check_architecture", "check_task", "load_plugin"]


def check_task(cls: type[Task], *configs: Mapping[str, Any]) -> None:
    """Check a task with each of these configs; without any, in each of its split schemes.

    A config has keys of section `data`, such as `{"split": "length", "train_examples": 300}`. Small data are enough.
    """
    from tfstudy.testing.task_properties import PROPERTIES, task_variants

    _check(cls.__name__, PROPERTIES, task_variants(cls, configs))


def check_architecture(cls: "type[Model]") -> None:
    """Check an architecture with its config `small` and in each of its `variants`; this takes seconds for each."""
    from tfstudy.testing.architecture_properties import PROPERTIES, architecture_variants

    _check(cls.__name__, PROPERTIES, architecture_variants(cls))


def load_plugin(path: str | Path) -> type:
    """Return the task or the architecture that a file for `--plugin` defines; `UserError` if it can't be imported."""
    return load_file(Path(path).resolve())


def require(condition: object, message: str) -> None:
    """Raise `AssertionError` with a message unless the condition holds. `python -O` removes an `assert`, but not it."""
    if not condition:
        raise AssertionError(message)


def _check(name: str, properties: Mapping[str, Callable[[Any], None]], variants: Iterable[Any]) -> None:
    failures, first = [], None
    for variant in variants:
        for title, check in properties.items():
            try:
                check(variant)
            except Exception as error:
                first = first or error
                reason = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
                failures.append(f"{name}{variant}: {title}: {reason}".strip(": "))
    if failures:
        raise AssertionError("\n".join(failures)) from first
