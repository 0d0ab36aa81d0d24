"""A grid that takes seconds, its jobs, and the results of its runs."""

import hashlib
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tfstudy.experiment.api import RunOptions
from tfstudy.grids.expand import expand, plan
from tfstudy.launchers.batch import jobs_of
from tfstudy.launchers.job import Job
from tfstudy.runs.files import is_locked
from tfstudy.runs.store import read_result

COPYING = {
    "base": {
        "task": "copying",
        "data": {"train_examples": 200},
        "model": {"dim": 16},
        "train": {"steps": 60, "validation_interval": 10, "log_interval": 10, "batch_size": 8, "warmup_steps": 5},
        "eval": {"max_examples": 20},
    },
    "axes": {"arch": ["lstm"]},
}


def planned(root: Path, grid: dict = COPYING) -> list[Job]:
    """The jobs of a grid, on the CPU."""
    return jobs_of(plan(expand(grid), root, "study"), RunOptions(accelerator="cpu"))


def digests(root: Path) -> dict[str, str]:
    """The SHA-256 of the scores, learning curve, predictions and weights of every finished run of a grid."""
    return {path.parent.name: _digest(path.parent) for path in root.glob("*/*/*/s*/result.json")}


def _digest(run: Path) -> str:
    state = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    weights = [(name, tensor.numpy().tobytes()) for name, tensor in state.items()]
    predictions = [(path.name, path.read_bytes()) for path in sorted(run.glob("predictions/*"))]
    parts = read_result(run).splits, (run / "metrics.csv").read_bytes(), predictions, weights
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def process_of(path: Path) -> int:
    """The process that works on a run, according to its lock; 0 if there is none."""
    try:
        return int((path / ".lock").read_text().split()[1]) if is_locked(path) else 0
    except (OSError, IndexError):
        return 0


def seen(root: Path, wanted: int, then: Callable[[int], object]) -> threading.Thread:
    """Call `then` with the process of the first run that has validated `wanted` times, once there is one."""

    def look() -> None:
        for _ in range(6000):
            for path in root.glob("*/*/*/s*"):
                log = path / "train.log"
                if log.exists() and log.read_text().count("validation loss") >= wanted and process_of(path):
                    then(process_of(path))
                    return
            time.sleep(0.005)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    return thread


def wait_for(condition: Callable[[], Any], seconds: float = 120) -> Any:
    """Wait until the condition is true; return its value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def executable(path: Path, text: str) -> Path:
    """Write a shell script that can be executed."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
