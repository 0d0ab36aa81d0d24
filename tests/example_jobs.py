"""A grid that takes seconds, its jobs, and the results of its runs."""

import hashlib
import json
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tfstudy.experiment.api import RunOptions
from tfstudy.grids.expand import expand, plan
from tfstudy.launchers.batch import jobs_of
from tfstudy.launchers.job import Job
from tfstudy.runs.files import is_locked

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


def planned(root: Path, grid: dict = COPYING, devices: int = 1) -> list[Job]:
    """The jobs of a grid, on the CPU."""
    return jobs_of(plan(expand(grid), root, "study"), RunOptions(devices=devices, accelerator="cpu"))


def numbers(root: Path) -> dict[str, object]:
    """The scores, learning curve and predictions of every run of a grid."""
    return {path.parent.name: numbers_of(path) for path in root.glob("*/*/*/s*/result.json")}


def numbers_of(result: Path) -> tuple[object, ...]:
    """The scores, learning curve and predictions of the run with this result."""
    predictions = [(p.name, p.read_bytes()) for p in sorted(result.parent.glob("predictions/*"))]
    return json.loads(result.read_text())["splits"], result.with_name("metrics.csv").read_bytes(), predictions


def digests(root: Path) -> dict[str, str]:
    """The SHA-256 of the scores, learning curve, predictions and weights of every finished run of a grid."""
    return {
        path.parent.name: hashlib.sha256(
            repr((numbers_of(path), weights_of(path.with_name("checkpoints") / "last.ckpt"))).encode()
        ).hexdigest()
        for path in root.glob("*/*/*/s*/result.json")
    }


def weights_of(checkpoint: Path) -> list[tuple[str, bytes]]:
    """The weights in a checkpoint as bytes."""
    import torch

    state = torch.load(checkpoint, weights_only=True)["state_dict"]
    return [(name, tensor.numpy().tobytes()) for name, tensor in state.items()]


def process_of(path: Path) -> int:
    """The process that works on a run, according to its lock; 0 if there is none."""
    try:
        return int((path / ".lock").read_text().split()[1]) if is_locked(path) else 0
    except (OSError, IndexError):
        return 0


def seen(root: Path, wanted: int, then: Callable[[int], object]) -> threading.Thread:
    """Calls `then` with the process of the first run that has validated `wanted` times, once there is one."""

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


def executable(path: Path, text: str) -> Path:
    """Write a shell script that can be executed."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
