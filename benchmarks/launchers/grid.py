"""The 60 runs of configs/grids/smoke.yaml: in turn in one process, and as a grid with 1 and 2 runs in parallel.

Each run has one thread. The overhead of the launcher is the additional time per run of a grid with 1 run in parallel.
"""

import contextlib
import io
import tempfile
from functools import partial
from pathlib import Path

import torch

from benchmarks.timing import arguments, seconds, table
from tfstudy.experiment.options import RunOptions
from tfstudy.experiment.run import run
from tfstudy.grids.expand import GridRun, expand
from tfstudy.grids.plan import plan
from tfstudy.grids.spec import load_grid
from tfstudy.launchers.job_list import jobs_of
from tfstudy.launchers.local import Local
from tfstudy.launchers.supervisor import supervise

OPTIONS = RunOptions(accelerator="cpu")


def in_turn(runs: list[GridRun], root: Path) -> None:
    """Every run in this process."""
    for one in runs:
        with contextlib.redirect_stdout(io.StringIO()):
            run(one.config, root, "study", OPTIONS)


def as_grid(runs: list[GridRun], root: Path, parallel: int) -> None:
    """Every run in a process of its own, including the plan and the start of the server."""
    executor = Local(["cpu"], parallel)
    summary = supervise(jobs_of(plan(runs, root, "study"), OPTIONS), executor)
    assert len(summary.finished) == len(runs), summary.failed


def main() -> None:
    chosen = arguments(__doc__, archs=False)
    torch.set_num_threads(1)
    runs = expand(load_grid("smoke", axes={"seed": "0"} if chosen.quick else {}), smoke=True)
    ways = {"one after the other": in_turn, "grid, 1 in parallel": partial(as_grid, parallel=1)}
    ways["grid, 2 in parallel"] = partial(as_grid, parallel=2)
    measured = {}
    for name, way in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            measured[name] = [seconds(partial(way, runs, Path(folder)))]
    table(f"{len(runs)} runs", "seconds", measured, "one after the other")
    more = measured["grid, 1 in parallel"][0] - measured["one after the other"][0]
    print(f"overhead of the launcher: {more / len(runs):.2f} s per run")


if __name__ == "__main__":
    main()
