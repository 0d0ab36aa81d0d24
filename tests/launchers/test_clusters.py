"""Grids on clusters of two nodes that run on this machine and lose a node, against the same grid without a cluster.

`make engines` sets them up: Ray as a package, Slurm from those of Debian, as root.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.example_jobs import digests, process_of, wait_for
from tfstudy.runs.find import find_runs
from tfstudy.runs.store import open_run

pytestmark = pytest.mark.slow
needs_ray = pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="Ray is not installed: make engines")
SLURM = Path(__file__).parent / "slurm.sh"
SETTINGS = {
    "data.train_examples": 200, "data.eval_examples": 32, "model.dim": 16, "model.hidden": 16, "train.batch_size": 8,
    "train.validation_interval": 25, "train.log_interval": 25, "eval.max_examples": 24,
}  # fmt: skip


def grid(results: Path, *more: str, seeds: str = "0-3", steps: int = 1000) -> list[str]:
    """The command of a grid of four runs, which take some seconds."""
    values = (SETTINGS | {"train.steps": steps}).items()
    settings = [word for key, value in values for word in ("--set", f"{key}={value}")]
    words = ["grid", "--task", "copying", "--arch", "lstm", "--seed", seeds, "--accelerator", "cpu", *settings]
    return [sys.executable, "-m", "tfstudy", *words, "--study", "s", "--results", str(results), *more]


def start(words: list[str], **environment: str) -> "subprocess.Popen[str]":
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(words, env=os.environ | environment, start_new_session=True, **pipes)


def output_of(process: "subprocess.Popen[str]") -> str:
    """The output of a grid, which must end with exit code 0."""
    try:
        out, _ = process.communicate(timeout=500)
    finally:
        kill(process.pid)
    assert process.returncode == 0, out
    return out


@pytest.fixture(scope="session")
def local(tmp_path_factory) -> Callable[..., dict[str, str]]:
    """The results of the same grid, run by processes of this machine."""

    @cache
    def run_grid(*more: str, **settings: Any) -> dict[str, str]:
        results = tmp_path_factory.mktemp("local")
        output_of(start(grid(results, *more, **settings)))
        return digests(results)

    return run_grid


def processes(condition: Callable[[int], bool]) -> list[int]:
    """The living processes of this machine that meet a condition."""

    def meets(number: int) -> bool:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z" and condition(number)
        return False

    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if meets(int(path.name))]


def program(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_text().partition("\0")[0]


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def within(process: int, ancestor: int) -> bool:
    while process > 1 and process != ancestor:
        process = parent(process)
    return process == ancestor


def runs(results: Path) -> dict[int, Path]:
    """The runs that a process works on."""
    return {process: path for path in results.glob("s/*/*/s*") if (process := process_of(path))}


def unfinished_run(results: Path, condition: Callable[[int], bool] = lambda _: True) -> tuple[int, Path]:
    """Wait for a run that has a checkpoint and no result; return its process and its folder."""

    def found() -> tuple[int, Path] | None:
        for process, path in runs(results).items():
            begun = (path / "checkpoints" / "last.ckpt").exists() and not (path / "result.json").exists()
            with contextlib.suppress(OSError):  # it ended just now
                if begun and condition(process):
                    return process, path
        return None

    return wait_for(found, 300)


def kill(process: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def resumed(path: Path) -> bool:
    return "resuming after step" in (path / "train.log").read_text()


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster of two nodes with one CPU each, of which `lost` is the second."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", os.urandom(32).hex())
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 100_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    cluster.lost = cluster.add_node(**node)
    try:
        yield cluster
    finally:
        cluster.shutdown()


@needs_ray
@pytest.mark.filterwarnings("ignore")  # of Ray, which this process imports
def test_runs_on_a_ray_cluster_that_loses_a_node_equal_those_of_one_machine(nodes, local, tmp_path):
    words = grid(tmp_path, "--launcher", "ray")
    process = start(words, RAY_ADDRESS=nodes.address)
    try:
        raylet = nodes.lost.all_processes["raylet"][0].process.pid
        run, path = unfinished_run(tmp_path, lambda number: within(number, raylet))
        nodes.remove_node(nodes.lost, allow_graceful=False)
        wait_for(lambda: run not in runs(tmp_path), 30)
        out = output_of(process)
    finally:
        kill(process.pid)
    assert f"Ray at {nodes.address}, 2 runs in parallel" in out
    assert not re.search(r"/4\] .* will be retried", out), "a lost node is no failure of a run"
    assert resumed(path)
    assert digests(tmp_path) == local()
    wait_for(lambda: not runs(tmp_path), 30)


@needs_ray
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_run_outlives_a_stopped_grid_on_its_own_ray_and_the_next_grid_resumes(number, local, tmp_path):
    words = grid(tmp_path, "--launcher", "ray")
    process = start(words)
    _, path = unfinished_run(tmp_path)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)  # a terminal interrupts a whole group
    process.communicate(timeout=30)
    wait_for(lambda: not runs(tmp_path), 30)
    assert not (path / "result.json").exists()
    output_of(start(words))
    assert resumed(path)
    assert digests(tmp_path) == local()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """The folder of a running Slurm of two nodes."""
    pytest.importorskip("submitit", reason="submitit is not installed: make engines")
    if os.geteuid() or not shutil.which("apt-get"):
        pytest.skip("Slurm is set up by root, from Debian's packages")
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
        try:
            subprocess.run([SLURM, "up", folder], check=True)
            yield Path(folder)
        finally:
            subprocess.run([SLURM, "down", folder], check=True)
            Path(folder).mkdir(exist_ok=True)


def slurm_variable(process: int, key: str) -> str:
    """A variable that Slurm set for a process or for one of its parents; the run itself does not have it."""
    while process > 1:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/environ").read_text(errors="replace").split("\0"):
                if line.startswith(f"{key}="):
                    return line.partition("=")[2]
        process = parent(process)
    return ""


def number_of(process: int) -> str:
    return "_".join(slurm_variable(process, f"SLURM_ARRAY_{part}_ID") for part in ("JOB", "TASK"))


def lose(cluster: Path, node: str) -> None:
    """Kill everything on a node at once: its daemon, the daemons of its jobs, and the jobs."""
    kill(int((cluster / "run" / f"{node}.pid").read_text()))
    jobs = processes(lambda number: slurm_variable(number, "SLURMD_NODENAME") == node)
    parents = {parent(number) for number in jobs}
    daemons = processes(lambda number: number in parents and "slurmstepd" in program(number))
    for process in [*daemons, *jobs]:
        kill(process)


def ended() -> None:
    """Wait until all jobs have left the queue of Slurm."""
    wait_for(lambda: not subprocess.run(["squeue", "--noheader"], check=True, capture_output=True).stdout, 300)


def submitted(words: list[str]) -> str:
    """Submit a grid, whose command ends; return the number of its job."""
    out = output_of(start(words))
    [line] = [line for line in out.splitlines() if "submitted to Slurm" in line]
    return line.split("as job ")[1].split(",")[0]


def test_an_array_that_loses_a_node_and_requeues_a_job_ends_as_a_grid_of_one_machine(cluster, local, tmp_path):
    submitted(grid(tmp_path, "--launcher", "slurm"))
    run, requeued = unfinished_run(tmp_path)
    subprocess.run(["scontrol", "requeue", number_of(run)], check=True)
    wait_for(lambda: run not in runs(tmp_path), 30)
    run, lost = unfinished_run(tmp_path)
    lose(cluster, slurm_variable(run, "SLURMD_NODENAME"))
    ended()
    assert resumed(requeued)
    assert resumed(lost)
    assert digests(tmp_path) == local()
    wait_for(lambda: not runs(tmp_path), 30)
    assert not [path for path in find_runs(tmp_path) if open_run(path).failure], "neither is a failure of a run"


def test_a_second_submission_does_no_harm(cluster, local, tmp_path):
    words = grid(tmp_path, "--launcher", "slurm", "--slurm", "mem=500M", "--slurm", "comment=two words")
    words += ["--slurm", "array-parallelism=1", "--slurm", "setup=export FROM_SETUP='a b'"]
    assert submitted(words) != submitted(words)
    run, _ = unfinished_run(tmp_path)
    assert slurm_variable(run, "FROM_SETUP") == "a b"
    job = subprocess.run(["scontrol", "show", "job", number_of(run)], check=True, capture_output=True, text=True).stdout
    assert "Comment=two words" in job
    assert "MinMemoryNode=500M" in job
    ended()
    assert digests(tmp_path) == local()
    logs = [log.read_text() for log in tmp_path.glob("s/*/*/*/train.log")]
    assert all(text.count("parameters, seed") == 1 and "resumed" not in text for text in logs), "each was trained once"
    assert "all 4 runs already finished" in output_of(start(words))


def test_a_cancelled_run_resumes_with_the_next_job_and_after_its_time_limit(cluster, local, tmp_path):
    words = grid(tmp_path, "--launcher", "slurm", seeds="0")
    number = submitted(words)
    unfinished_run(tmp_path)
    subprocess.run(["scancel", number], check=True)
    wait_for(lambda: not runs(tmp_path), 30)
    ended()
    number = submitted(words)
    run, path = unfinished_run(tmp_path)
    wait_for(lambda: resumed(path))
    subprocess.run(["scancel", "--signal=USR2", number], check=True)  # what Slurm sends before the time limit
    wait_for(lambda: run not in runs(tmp_path), 30)
    ended()
    assert (path / "train.log").read_text().count("resuming after step") == 2
    assert digests(tmp_path) == local(seeds="0")
