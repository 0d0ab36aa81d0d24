"""A grid of seconds, its jobs, and what its runs found."""

import json
from pathlib import Path

from tfstudy.grids import expand
from tfstudy.launchers import job_list
from tfstudy.launchers.job import Job
from tfstudy.runs.files import held

COPYING = {
    "base": {
        "task": "copying",
        "data": {"examples": 200},
        "model": {"dim": 16},
        "train": {"steps": 60, "validation_interval": 10, "log_interval": 10, "batch_size": 8, "warmup_steps": 5},
        "eval": {"max_examples": 20},
    },
    "axes": {"arch": ["lstm"]},
}


def planned(root: Path, told: dict = COPYING, **common) -> list[Job]:
    cells = expand.plan(expand.expand(told), root, "study")
    return job_list.jobs(cells, root, "study", Job("", {}, "", "", accelerator="cpu")._replace(**common))


def numbers(root: Path) -> dict[str, object]:
    """What a grid found: every run's scores, learning curve and predictions."""
    return {
        path.parent.name: (
            json.loads(path.read_text())["splits"],
            path.with_name("metrics.csv").read_bytes(),
            [(p.name, p.read_bytes()) for p in sorted(path.parent.glob("predictions/*"))],
        )
        for path in root.glob("*/*/*/s*/result.json")
    }


def process_of(path: Path) -> int:
    """The process that holds a run, as its lock says; 0 if none does."""
    try:
        return int((path / ".lock").read_text().split()[1]) if held(path) else 0
    except (OSError, IndexError):
        return 0
