"""Whether a run is outdated: the versions that the code declares against those in its record. Imports no torch."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache

from tfstudy import evaluation, models, tasks, training
from tfstudy.errors import UserError, quoted
from tfstudy.runs.schema import Environment


def declared_versions(task: str, arch: str) -> dict[str, int]:
    """Return the versions that the code declares for a task and an architecture; `UserError` if unknown."""
    own = dict(zip(("task", "model"), _named_versions(task, arch), strict=True))
    return own | {"training": training.VERSION, "evaluation": evaluation.VERSION}


@cache  # a table asks for each of its runs
def _named_versions(task: str, arch: str) -> tuple[int, int]:
    return tasks.find(task).version, models.declared(arch, "version", 1)


def outdated_because(environments: Sequence[Environment], task: str, arch: str) -> list[str]:
    """Return why the run of these environments is outdated; empty if it is not, or if there are none.

    Each line is such as `training version 1, now 2`; a version not recorded is 1. This does not compare the data;
    `tfstudy result --changes` does that.
    """
    recorded = environments[-1].code_versions if environments else None
    try:
        declared = declared_versions(task, arch).items() if recorded is not None else ()
        changed = [(name, (recorded or {}).get(name, 1), now) for name, now in declared]
        return [f"{name} version {then}, now {now}" for name, then, now in changed if then != now]
    except UserError as error:  # the task or the architecture no longer exists
        return [] if missing_plugin(environments, task, arch) else [str(error)]


def missing_plugin(environments: Iterable[Environment], task: str, arch: str) -> str:
    """Return which plug-in the run used that is not there now, as a message; empty if there is none."""
    with suppress(UserError):  # asked first, because it is cached
        declared_versions(task, arch)
        return ""
    recorded = {name for entry in environments for name in entry.syntax_trees}
    for kind, name, names in (("task", task, tasks.names), ("architecture", arch, models.names)):
        if f"plug-in {kind} {name}" in recorded and name not in names():
            return f"unknown {kind} {quoted(name)}: its plug-in is missing"
    return ""
