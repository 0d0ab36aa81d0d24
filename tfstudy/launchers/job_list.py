"""From a planned grid to the jobs that are to be made, the longest first."""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tasks.errors import UserError
from tfstudy.grids.expand import Cell
from tfstudy.launchers.job import Job
from tfstudy.runs.files import held, write_whole
from tfstudy.runs.progress import PLANS
from tfstudy.runs.reader import read_result

SAMPLE = 5  # finished runs that an estimate is made from


def jobs(planned: Sequence[tuple[Cell, Path]], root: Path, study: str, common: Job) -> list[Job]:
    """One job a run; `common` says how all are made."""
    return [
        common._replace(
            path=str(path), config=cell.config.model_dump(mode="json"), root=str(root), study=study, preset=cell.preset
        )
        for cell, path in planned
    ]


def sharded(jobs: Sequence[Job], shard: str) -> list[Job]:
    """Part I of N, given as `I/N`: every N-th job. All parts together are all jobs, each once."""
    if not shard:
        return list(jobs)
    found = re.fullmatch(r"(\d+)/(\d+)", shard)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError(f"--shard must be I/N with 1 <= I <= N, such as 1/4, but is '{shard}'")
    return list(jobs)[int(found[1]) - 1 :: int(found[2])]


def divide(jobs: Sequence[Job]) -> tuple[list[Job], list[Job]]:
    """Those that have their result, and those that are to be made."""
    done: list[Job] = []
    todo: list[Job] = []
    for job in jobs:
        (done if (Path(job.path) / "result.json").exists() else todo).append(job)
    return done, todo


def take_over(jobs: Sequence[Job]) -> list[Job]:
    """Copies runs that another study of the same results has finished, and says which: they are not made twice.

    A run's name tells its whole identity, so the other study's is the same run. Checkpoints are linked, not copied.
    """
    return [job for job in jobs if _taken(job)]


def _taken(job: Job) -> bool:
    path = Path(job.path)
    if path.exists():  # begun here
        return False
    found = sorted(Path(job.root).glob(f"*/{job.name}/result.json"))
    if not found or held(found[0].parent):
        return False
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        shutil.copytree(found[0].parent, aside, copy_function=_copy, ignore=shutil.ignore_patterns(".*"))
        with (aside / "train.log").open("a") as log:
            log.write(f"taken over from {found[0].parent}\n")
        aside.rename(path)
    except OSError:  # another process of this grid was faster, or the disk is full and the run will say so
        shutil.rmtree(aside, ignore_errors=True)
    return (path / "result.json").exists()


def _copy(source: str, target: str) -> None:
    if source.endswith(".ckpt"):  # these are replaced, never written into
        with contextlib.suppress(OSError):  # no links there, or another disk
            os.link(source, target)
            return
    shutil.copy2(source, target)


def keep_plan(jobs: Sequence[Job]) -> None:
    """Leaves in the study's folder which runs a grid is to make, so that `tfstudy.states` knows those not yet begun.

    The plan of the same configs is written over: after a change of code they are runs of other names.
    """
    if not jobs:
        return
    digest = hashlib.sha256(json.dumps([job.config for job in jobs], sort_keys=True).encode()).hexdigest()[:8]
    path = Path(jobs[0].root) / jobs[0].study / PLANS / f"{digest}.json"
    with contextlib.suppress(FileNotFoundError):  # another process of the same grid wrote the same just now
        write_whole(path, json.dumps({"runs": {job.name: job.preset for job in jobs}}, indent=0).encode())


def estimates(jobs: Sequence[Job], root: Path) -> dict[str, float]:
    """Seconds that jobs will take, by path, judged by finished runs of the same architecture on the same data.

    Without one, by those on other splits of the task; a job without either is left out.
    """
    known: dict[tuple[str, str], list[tuple[float, float]]] = {}
    out = {}
    for job in jobs:
        experiment, arch = Path(job.path).parts[-3:-1]
        for pattern in (experiment, f"{job.config['task']}-*"):
            if (pattern, arch) not in known:
                known[pattern, arch] = _costs(root, pattern, arch)
            if costs := known[pattern, arch]:
                train, rest = (median(cost) for cost in zip(*costs, strict=True))
                out[job.path] = train * job.config["train"]["steps"] + rest
                break
    return out


def longest_first(jobs: Sequence[Job], seconds: dict[str, float]) -> list[Job]:
    """So that no long run is left for the end; those of unknown length come first. The order is otherwise kept."""
    return sorted(jobs, key=lambda job: -seconds.get(job.path, float("inf")))


def _costs(root: Path, experiment: str, arch: str) -> list[tuple[float, float]]:
    """Seconds a step of training, and seconds of the rest, of some finished runs."""
    found: list[tuple[float, float]] = []
    for path in root.glob(f"*/{experiment}/{arch}/s*/result.json"):
        try:
            result = read_result(path.parent)
        except UserError:  # a damaged result, or one of another version
            continue
        if result["status"] == "finished" and result["step"]:
            found.append((result["train_seconds"] / result["step"], result.get("evaluate_seconds", 0.0)))
        if len(found) == SAMPLE:
            break
    return found
