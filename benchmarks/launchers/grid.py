"""The 60 runs of configs/grids/smoke.yaml: one after the other in one process, and as a grid with 1 and 2 at once.

Every way makes them on one thread each. The launcher's cost is what a run takes longer as a grid of one at a time.
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
from tfstudy.grids import expand
from tfstudy.launchers import job_list
from tfstudy.launchers.job import Job
from tfstudy.launchers.local import Local
from tfstudy.launchers.supervisor import supervise


def jobs(cells: list[expand.Cell], root: Path) -> list[Job]:
    """The planned runs in this folder."""
    return job_list.jobs(expand.plan(cells, root, "study"), root, "study", Job("", {}, "", "", accelerator="cpu"))


def in_turn(cells: list[expand.Cell], root: Path) -> None:
    """Every run in this process."""
    options = RunOptions(accelerator="cpu")
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()):
            run(cell.config, root, "study", options)


def as_grid(cells: list[expand.Cell], root: Path, at_once: int) -> None:
    """Every run in a process of its own, planning and the start of the server counted in."""
    engine = Local(["cpu"], at_once)
    summary = supervise(jobs(cells, root), engine)
    assert len(summary.done) == len(cells), summary.failed


def main() -> None:
    chosen = arguments(__doc__, archs=False)
    torch.set_num_threads(1)
    told = expand.read("smoke")
    cells = expand.expand(expand.put_over(told, {}, "0") if chosen.quick else told, smoke=True)
    ways = {"one after the other": in_turn, "grid, 1 at once": partial(as_grid, at_once=1)}
    ways["grid, 2 at once"] = partial(as_grid, at_once=2)
    measured = {}
    for name, way in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            measured[name] = [seconds(partial(way, cells, Path(folder)))]
    table(f"{len(cells)} runs", "seconds", measured, "one after the other")
    more = measured["grid, 1 at once"][0] - measured["one after the other"][0]
    print(f"the launcher's own cost: {more / len(cells):.2f} s a run")


if __name__ == "__main__":
    main()
