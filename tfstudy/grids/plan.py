"""From the runs of a grid to their folders: data are built and models are checked before anything starts."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tfstudy import tasks
from tfstudy.config.schema import RunConfig
from tfstudy.errors import UserError
from tfstudy.experiment.code_versions import declared_versions
from tfstudy.grids.expand import GridRun
from tfstudy.runs.identity import Identity, identify
from tfstudy.runs.reader import is_finished
from tfstudy.runs.writer import run_folder
from tfstudy.tasks.base import check_examples, fingerprint


class PlannedRun(NamedTuple):
    """A run with its folder, which may not exist yet."""

    config: RunConfig
    preset: str
    path: Path
    identity: Identity

    @property
    def finished(self) -> bool:
        """Whether the run has its result, and it is sound."""
        return is_finished(self.path)


def plan(runs: Sequence[GridRun], root: Path, study: str) -> list[PlannedRun]:
    """Return every run with its folder in `root/study`; `UserError` with the errors of all runs.

    Data are built once for all runs that share them, and a model once for all runs that share its shape and data.
    """
    from tfstudy.experiment.compatibility import DataShape, check

    data: dict[str, tuple[DataShape, str]] = {}  # with the fingerprint
    errors: dict[str, str] = {}  # of each config without its seed; empty if it is valid
    planned = []
    for config, preset in runs:
        data_key = f"{config.task} {config.data.model_dump_json()}"
        experiment = config.model_copy(update={"seed": 0}).model_dump_json()
        try:
            if data_key not in data:
                task = tasks.find(config.task)(config.data)
                check_examples(config.task, task)
                data[data_key] = DataShape.of(task), fingerprint(task)
            if experiment not in errors:
                errors[experiment] = ""
                check(config, data[data_key][0])
        except UserError as error:
            errors[experiment] = str(error)
        if not errors.get(experiment):
            identity = identify(config, data[data_key][1], declared_versions(config.task, config.arch))
            planned.append(PlannedRun(config, preset, run_folder(root, study, config, identity), identity))
    if problems := list(dict.fromkeys(text for text in errors.values() if text)):
        raise UserError("\n".join(problems))
    return planned
