"""Whether a run was made by older code: the declared versions now against those in its record. Imports no torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tasks
from tasks.errors import UserError
from tfstudy import models
from tfstudy.evaluation import version as evaluation
from tfstudy.runs.reader import read_environments
from tfstudy.training import version as training


def declared_versions(task: str, arch: str) -> dict[str, int]:
    """Return the versions that the code declares for a task and an architecture; `UserError` for unknown names."""
    return {
        "task": tasks.find(task).version,
        "model": models.declared_version(arch),
        "training": training.VERSION,
        "evaluation": evaluation.VERSION,
    }


def raised_versions(task: str, arch: str, recorded: Mapping[str, int]) -> list[str]:
    """Return a line for each declared version that differs from the recorded one, such as `training version 1, now 2`.

    A version that was not recorded counts as 1.
    """
    now = declared_versions(task, arch)
    names = [name for name in now if recorded.get(name, 1) != now[name]]
    return [f"{name} version {recorded.get(name, 1)}, now {now[name]}" for name in names]


def outdated_because(path: Path, task: str, arch: str) -> list[str]:
    """Return why the run in this folder is outdated, judged by its record; empty if it is not or has no record.

    This reads one small file. The content of the data is not compared (`tfstudy why` and `tfstudy grid` do that).
    """
    entries: list[dict[str, Any]] = read_environments(path)
    try:
        return raised_versions(task, arch, entries[-1].get("code_versions", {})) if entries else []
    except UserError as error:  # the task or the architecture no longer exists
        return [str(error)]
