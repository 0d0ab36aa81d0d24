"""Names that the shell completes after `tfstudy --install-completion`; an error completes nothing.

An option of several names, such as `--arch transformer,lstm`, is completed after its last comma.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer

from tfstudy import RESULTS

Completer = Callable[[typer.Context, str], list[str]]


def _completer(names: Callable[[dict[str, Any]], Iterable[str]]) -> Completer:
    """Return the function that Typer calls: the names that continue a word, given the options before it."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        given, comma, last = incomplete.rpartition(",")
        try:
            return [f"{given}{comma}{name}" for name in names(ctx.params) if name.startswith(last)]
        except Exception:  # a message would appear in the middle of the line that is typed
            return []

    return complete


def _tasks(_: dict[str, Any]) -> Iterable[str]:
    from tfstudy import tasks

    return tasks.names()


def _architectures(_: dict[str, Any]) -> Iterable[str]:
    from tfstudy import models

    return models.names()


def _task(options: dict[str, Any]) -> str:
    """Return the task of the command; an option without its value hides it, then it is among the words of the line."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    return options.get("task") or next(word for word in line.split() if word in _tasks(options))


def _splits(options: dict[str, Any]) -> Iterable[str]:
    from tfstudy import tasks

    return (name for name in tasks.find(_task(options)).split_schemes() if "<" not in name)


def _presets(options: dict[str, Any]) -> Iterable[str]:
    from tfstudy.config.presets import presets

    return presets(_task(options))


def _grids(_: dict[str, Any]) -> Iterable[str]:
    from tfstudy.grids.spec import grid_names

    return grid_names()


def _studies(options: dict[str, Any]) -> Iterable[str]:
    from tfstudy.runs.find import studies

    return studies(Path(options.get("results") or RESULTS))


task = _completer(_tasks)
architecture = _completer(_architectures)
split = _completer(_splits)
preset = _completer(_presets)
grid = _completer(_grids)
study = _completer(_studies)
