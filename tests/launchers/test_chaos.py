"""A grid that is killed at random, run by run and whole, and whose disk fills up, ends as one that never was."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.example_jobs import COPYING, numbers, planned, process_of
from tfstudy.launchers.local import Local
from tfstudy.launchers.supervisor import supervise
from tfstudy.runs.files import is_locked

pytestmark = pytest.mark.slow
GRID = {**COPYING, "axes": {"arch": ["lstm", "cnn", "transformer"]}, "seeds": "0-2"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    root = tmp_path_factory.mktemp("undisturbed")
    supervise(planned(root, GRID), Local(["cpu"], 2))
    return numbers(root)


@pytest.fixture
def told(tmp_path):
    """The same grid as a file."""
    path = tmp_path / "grid.yaml"
    path.write_text(json.dumps(GRID))  # JSON is YAML
    return path


def command(grid_file: Path, results: Path) -> "subprocess.Popen[bytes]":
    """The grid's command in a session of its own, so that what it leaves can be found."""
    words = ["grid", str(grid_file), "--study", "study", "--results", str(results), "--accelerator", "cpu"]
    log = (grid_file.parent / "grid.log").open("ab")
    with log:
        return subprocess.Popen(
            [sys.executable, "-m", "tfstudy", *words], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )


def runs(results: Path) -> list[Path]:
    return [path for path in results.glob("*/*/*/s*") if path.is_dir() and ".old-" not in path.name]


def left(results: Path) -> list[str]:
    """Living processes that have this folder in their command line or open as a file."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace")
            files = [os.readlink(file) for file in (process / "fd").iterdir()]
            if int(process.name) != os.getpid() and any(str(results) in text for text in (words, *files)):
                found.append(words)
    return found


def wait_until(condition, seconds: float = 10.0) -> None:
    last = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < last, "it took too long"
        time.sleep(0.05)


def test_random_kills_of_runs_and_of_the_launcher_change_nothing(tmp_path, grid_file, undisturbed):
    results, draw, kills = tmp_path / "results", random.Random(0), {"run": 0, "launcher": 0}
    for _ in range(60):
        launcher = command(grid_file, results)
        last = time.monotonic() + draw.uniform(8, 25)
        while launcher.poll() is None and time.monotonic() < last:
            time.sleep(draw.uniform(0.1, 1.5))
            living = [process for path in runs(results) if (process := process_of(path))]
            if living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(draw.choice(living), signal.SIGKILL)
                    kills["run"] += 1
            if kills["run"] > 12:
                break
        if kills["launcher"] < 3 and launcher.poll() is None:
            launcher.kill()
            kills["launcher"] += 1
        if launcher.wait(timeout=600) == 0:
            break
        wait_until(lambda: not left(results))
    assert kills["launcher"] == 3
    assert kills["run"] > 3
    assert launcher.returncode == 0
    assert numbers(results) == undisturbed
    assert not left(results)
    assert not any(is_locked(path) for path in runs(results))
    assert not list(results.glob("**/failed.json")), "what was given up once is done now"


def test_a_full_disk_fails_runs_that_are_made_once_there_is_room(tmp_path, grid_file, undisturbed):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("a small disk can't be mounted here")
    try:
        results = disk / "results"
        assert command(grid_file, results).wait(timeout=600) == 1, "some runs can't be kept"
        done = numbers(results)
        assert all(undisturbed[name] == found for name, found in done.items()), "no partial run counts"
        assert len(done) < len(undisturbed)
        assert "no space left on the disk" in (tmp_path / "grid.log").read_text()
        subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
        assert command(grid_file, results).wait(timeout=600) == 0
        assert numbers(results) == undisturbed
        wait_until(lambda: not left(results))
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


def test_two_launchers_on_the_same_results_make_every_run_once(tmp_path, grid_file, undisturbed):
    results = tmp_path / "results"
    both = [command(grid_file, results) for _ in range(2)]
    assert [launcher.wait(timeout=600) for launcher in both] == [0, 0]
    assert numbers(results) == undisturbed
    logs = [path.read_text() for path in results.glob("*/*/*/*/train.log")]
    assert all(text.count("parameters, seed") == 1 for text in logs)
