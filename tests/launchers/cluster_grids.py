"""Grids on a cluster that runs on this machine, their processes, and a comparison with the same grid on one machine."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tfstudy.launchers.job import Job

SETTINGS = {
    "data.train_examples": 200,
    "data.eval_examples": 32,
    "model.dim": 16,
    "model.hidden": 16,
    "train.steps": 1000,
    "train.validation_interval": 25,
    "train.log_interval": 25,
    "train.batch_size": 8,
    "eval.max_examples": 24,
}
RUNS = 4


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def grid(results: Path, *more: str, seeds: str = f"0-{RUNS - 1}") -> list[str]:
    """The command of a grid whose runs take some seconds."""
    settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    words = ["grid", "--task", "copying", "--arch", "lstm", "--seed", seeds, "--accelerator", "cpu", *settings]
    return [sys.executable, "-m", "tfstudy", *words, "--study", "s", "--results", str(results), *more]


def output_of(process: "subprocess.Popen[str]", seconds: float = 500) -> str:
    """The output of a grid, which must end with exit code 0."""
    try:
        out, _ = process.communicate(timeout=seconds)
    finally:
        kill(process.pid)
    assert process.returncode == 0, out
    return out


def start(words: list[str], **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        words,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="session")
def local(tmp_path_factory) -> Callable[..., Path]:
    """The results of the same grid, run by processes of this machine."""

    @cache
    def run_grid(*more: str) -> Path:
        results = tmp_path_factory.mktemp("local")
        output_of(start(grid(results, *more)))
        return results

    return run_grid


def assert_same(results: Path, other: Path) -> None:
    """Both folders hold the same runs, with the same scores, metrics and predictions."""
    runs = folders(other)
    assert runs == folders(results)
    for run in runs:
        one, two = (json.loads((root / run / "result.json").read_text()) for root in (results, other))
        assert one["splits"] == two["splits"]
        for file in [*(other / run).glob("predictions/*"), other / run / "metrics.csv"]:
            assert file.read_bytes() == (results / file.relative_to(other)).read_bytes(), file


def folders(results: Path) -> list[Path]:
    return sorted(path.parent.relative_to(results) for path in results.glob("s/*/*/*/result.json"))


def processes(condition: Callable[[int], bool]) -> list[int]:
    """The living processes of this machine that meet a condition."""

    def living(number: int) -> bool:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z" and condition(number)
        return False

    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and living(int(path.name))]


def command_line(process: int) -> list[str]:
    return Path(f"/proc/{process}/cmdline").read_text().split("\0")


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def within(process: int, ancestor: int) -> bool:
    while process > 1 and process != ancestor:
        process = parent(process)
    return process == ancestor


def is_run(process: int, results: Path) -> bool:
    words = command_line(process)
    return "tfstudy.launchers" in words and str(results) in words[-2]


def unfinished_run(
    results: Path, condition: Callable[[int], bool] = lambda _: True, seconds: float = 300
) -> tuple[int, Path]:
    """Wait for a run that has a checkpoint and no result; return its process and its folder."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for process in processes(lambda number: is_run(number, results) and condition(number)):
            with contextlib.suppress(OSError, IndexError, ValueError):
                path = Path(Job.from_json(command_line(process)[-2]).path)
                if (path / "checkpoints" / "last.ckpt").exists() and not (path / "result.json").exists():
                    return process, path
        time.sleep(0.02)
    raise AssertionError("no run has a checkpoint and no result")


def assert_no_process_is_left(results: Path, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while left := processes(lambda number: is_run(number, results)):
        assert time.monotonic() < deadline, [command_line(process) for process in left]
        time.sleep(0.1)


def kill(process: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def resumed(path: Path) -> bool:
    return "resumed after step" in (path / "train.log").read_text()


def wait_for(condition: Callable[[], Any], seconds: float = 120) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
