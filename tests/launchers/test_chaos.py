"""A grid that is killed at random, run by run and whole, and whose disk fills up, ends as one that never was."""

import json
import subprocess

import pytest

from tests.example_jobs import COPYING, numbers, planned
from tests.launchers import chaos
from tfstudy.launchers.local import Local
from tfstudy.launchers.supervisor import supervise

pytestmark = pytest.mark.slow
GRID = {**COPYING, "axes": {"arch": ["lstm", "cnn", "transformer"]}, "seeds": "0-2"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    root = tmp_path_factory.mktemp("undisturbed")
    supervise(planned(root, GRID), Local(["cpu"], 2))
    return numbers(root)


@pytest.fixture
def grid_file(tmp_path):
    """The same grid as a file."""
    path = tmp_path / "grid.yaml"
    path.write_text(json.dumps(GRID))  # JSON is YAML
    return path


def test_random_kills_of_runs_and_of_the_launcher_change_nothing():
    lines, sound = chaos.report(kills=40)
    assert sound, "\n".join(lines)
    assert any(chaos.LAUNCHER in line for line in lines)
    assert any("in training" in line for line in lines)


def test_a_full_disk_fails_runs_that_are_made_once_there_is_room(tmp_path, grid_file, undisturbed):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("a small disk can't be mounted here")
    try:
        results = disk / "results"
        assert chaos.start(grid_file, results).wait(timeout=600) == 1, "some runs can't be kept"
        done = numbers(results)
        assert all(undisturbed[name] == found for name, found in done.items()), "no partial run counts"
        assert len(done) < len(undisturbed)
        assert "no space left on the disk" in (tmp_path / "grid.log").read_text()
        subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
        assert chaos.start(grid_file, results).wait(timeout=600) == 0
        assert numbers(results) == undisturbed
        chaos.wait_until_nothing_is_left(results)
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


def test_two_launchers_on_the_same_results_make_every_run_once(tmp_path, grid_file, undisturbed):
    results = tmp_path / "results"
    both = [chaos.start(grid_file, results) for _ in range(2)]
    assert [launcher.wait(timeout=600) for launcher in both] == [0, 0]
    assert numbers(results) == undisturbed
    logs = [path.read_text() for path in results.glob("*/*/*/*/train.log")]
    assert all(text.count("parameters, seed") == 1 for text in logs)
