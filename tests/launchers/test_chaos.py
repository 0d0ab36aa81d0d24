"""A grid that is killed at random, run by run and whole, that two launchers share, or whose disk fills up, ends as one
that was left alone. `make chaos` kills 200 times (KILLS=200)."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.example_jobs import COPYING, digests, process_of, wait_for

pytestmark = pytest.mark.slow
GRID = {**COPYING, "axes": {"arch": ["transformer", "lstm"]}, "seeds": "0-4"}


def start(folder: Path, results: Path) -> "subprocess.Popen[bytes]":
    (folder / "grid.yaml").write_text(json.dumps(GRID))  # JSON is YAML
    words = ["grid", str(folder / "grid.yaml"), "--study", "study", "--results", str(results), "--accelerator", "cpu"]
    with (folder / "grid.log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-m", "tfstudy", *words], stdout=log, stderr=log)


def runs(results: Path) -> list[Path]:
    return [path for path in results.glob("*/*/*/s*") if path.is_dir() and ".old-" not in path.name]


def wait_until_nothing_is_left(results: Path) -> None:
    """Wait until no living process names these results or has a file of them open."""

    def left(process: Path) -> bool:
        with contextlib.suppress(OSError):
            names = [(process / "cmdline").read_text(errors="replace"), *map(os.readlink, (process / "fd").iterdir())]
            return int(process.name) != os.getpid() and any(str(results) in name for name in names)
        return False

    wait_for(lambda: not any(left(process) for process in Path("/proc").glob("[0-9]*")), 30)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert start(folder, folder / "results").wait(timeout=600) == 0
    return digests(folder / "results")


def test_random_kills_of_runs_and_of_the_launcher_change_nothing(tmp_path, undisturbed):
    """One kill in ten is of the launcher. A grid that ends before there were enough kills begins in an empty folder."""
    draw, killed, resumed, number = random.Random(0), Counter[str](), 0, 0
    while killed.total() < (wanted := int(os.environ.get("KILLS", "40"))):
        number += 1
        results = tmp_path / f"results-{number}"
        while (launcher := start(tmp_path, results)).poll() is None:
            while launcher.poll() is None:
                time.sleep(0.05 * 100 ** draw.random())  # up to 5 s: before a first checkpoint, and long after
                living = [process for path in runs(results) if (process := process_of(path))]
                if living and killed.total() < wanted:
                    what, victim = "run", draw.choice(living)
                    if draw.random() < 0.1:
                        what, victim = "launcher", launcher.pid
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
                        killed[what] += 1
            if launcher.wait() == 0:
                break
            wait_until_nothing_is_left(results)
        assert digests(results) == undisturbed, "a run is lost or different"
        assert len(runs(results)) == len(undisturbed), "a run is doubled"
        resumed += sum("resuming after step" in (path / "train.log").read_text() for path in runs(results))
    print(f"{killed['run']} runs and {killed['launcher']} launchers killed in {number} grids, {resumed} runs resumed")
    assert min(killed["launcher"], resumed) > 0


def test_a_full_disk_fails_runs_that_are_made_once_there_is_room(tmp_path, undisturbed):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("a small disk can't be mounted here")
    try:
        results = disk / "results"
        assert start(tmp_path, results).wait(timeout=600) == 1, "some runs can't be kept"
        finished = digests(results)
        assert finished.items() < undisturbed.items(), "no partial run counts"
        assert "no space left on the disk" in (tmp_path / "grid.log").read_text()
        subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
        assert start(tmp_path, results).wait(timeout=600) == 0
        assert digests(results) == undisturbed
        wait_until_nothing_is_left(results)
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


def test_two_launchers_on_the_same_results_make_every_run_once(tmp_path, undisturbed):
    results = tmp_path / "results"
    both = [start(tmp_path, results) for _ in range(2)]
    assert [launcher.wait(timeout=600) for launcher in both] == [0, 0]
    assert digests(results) == undisturbed
    assert all((path / "train.log").read_text().count("parameters, seed") == 1 for path in runs(results))
