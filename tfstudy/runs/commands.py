"""The commands that messages name for a run or a study. Imports no torch."""

import shlex
from pathlib import Path

from tfstudy import RESULTS
from tfstudy.runs.smoke_folder import without_smoke


def results_option(results: Path) -> str:
    """Return ` --results PATH`, or nothing for the default folder of results."""
    return "" if results == RESULTS else f" --results {shlex.quote(str(results))}"


def has_study(path: Path) -> bool:
    """Return whether the path of a run names its study: RESULTS/STUDY/EXPERIMENT/ARCHITECTURE/RUN."""
    return len(path.parents) > 3


def command_again(path: Path, smoke: bool = False, option: str = "") -> str:
    """Return the command that runs a run again, in the same study, with one more option."""
    command = f"tfstudy run --config {shlex.quote(str(path / 'config.yaml'))}"
    if has_study(path):
        study = path.parents[2]
        results = without_smoke(study.parent) if smoke else study.parent  # a smoke run finds its own folder
        command += f"{results_option(results)} --study {shlex.quote(study.name)}"
    return f"{command}{option} --restart"


def retry_command(study: Path) -> str:
    """Return the command that reruns the failed and interrupted runs of a study."""
    return f"tfstudy retry {shlex.quote(study.name)}{results_option(study.parent)}"


def resuming_command(path: Path, tuning: bool = False) -> str:
    """Return what resumes an unfinished run, in backticks if it is known; a trial of a search has no other command."""
    if tuning:
        return "the `tfstudy tune` command of its search"
    return f"`{retry_command(path.parents[2])}`" if has_study(path) else "its own command"
