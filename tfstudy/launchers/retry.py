"""Runs that failed or were interrupted, as jobs to be made again: their folders say all that is needed."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.errors import UserError
from tfstudy.config.resolve import resolve
from tfstudy.grids.expand import Cell, plan
from tfstudy.launchers import job_list
from tfstudy.launchers.job import Job
from tfstudy.runs.progress import Run, plans
from tfstudy.runs.reader import read_config, read_environments

CHANGED = "its config.yaml, data or code have changed since, so it would be another run (`tfstudy why`)"


def again(runs: Sequence[Run], root: Path, study: str, common: Job) -> tuple[list[Job], dict[str, str]]:
    """A job for each of a study's runs that can go on, and the names of those that can't, each with the reason.

    `common` says how all are made.
    """
    presets, skipped = plans(root / study), dict[str, str]()
    groups: dict[str, dict[str, Cell]] = {}  # by data, which are made once for all runs of a group
    for run in runs:
        try:
            cell = _cell(run.path, presets.get(run.name, ""))
        except UserError as error:
            skipped[run.name] = str(error)
            continue
        groups.setdefault(f"{cell.config.task} {cell.config.data.model_dump_json()}", {})[run.name] = cell
    jobs: list[Job] = []
    for cells in groups.values():
        for name, found in _jobs(cells, root, study, common).items():
            if isinstance(found, Job):
                jobs.append(found)
            else:
                skipped[name] = found
    return jobs, skipped


def _cell(path: Path, preset: str) -> Cell:
    """The run's config; `UserError` if its folder doesn't tell it."""
    if not (path / "config.yaml").exists():
        raise UserError("it failed before it had a config.yaml; the grid's own command makes it again")
    made_by = how_made(path)
    if made_by.get("tuning"):
        raise UserError("it is a trial of tuning, which the command that tunes goes on with")
    return Cell(resolve(read_config(path)), preset or str(made_by.get("preset", "default")))


def how_made(path: Path) -> dict[str, Any]:
    """Of the process that last worked on a run, its preset and whether it was tuning, as far as its command says so."""
    environments = read_environments(path)
    words = [str(word) for word in environments[-1].get("arguments", [])] if environments else []
    if len(words) == 1 and words[0].startswith("{"):  # a launcher's program
        job = json.loads(words[0])
        return {key: job[key] for key in ("preset", "tuning") if key in job}
    named = [word.removeprefix("--preset=") for word in words if word.startswith("--preset=")]
    named += [after for word, after in itertools.pairwise(words) if word == "--preset"]
    preset = {"preset": named[-1]} if named and "," not in named[-1] else {}
    return preset | {"tuning": words[:1] == ["tune"]}


def _jobs(cells: dict[str, Cell], root: Path, study: str, common: Job) -> dict[str, Job | str]:
    """Each run's job, or why it has none. The runs share their data; a model that no longer fits them is its own."""
    try:
        planned = plan(list(cells.values()), root, study)
    except UserError as error:
        if len(cells) == 1:
            return {name: str(error) for name in cells}
        return {
            name: found
            for one, cell in cells.items()
            for name, found in _jobs({one: cell}, root, study, common).items()
        }
    jobs = job_list.jobs(planned, root, study, common)
    return {name: job if job.name == name else CHANGED for name, job in zip(cells, jobs, strict=True)}
