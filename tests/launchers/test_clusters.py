"""A Ray of two nodes and a Slurm of two nodes, really running on this machine, that lose a node. `make engines`."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
SLURM = Path(__file__).parent / "slurm.sh"
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


def done(process: "subprocess.Popen[str]", seconds: float = 500) -> str:
    """What a grid said that ended well."""
    try:
        out, _ = process.communicate(timeout=seconds)
    finally:
        kill(process.pid)
    assert process.returncode == 0, out
    return out


def begin(words: list[str], **environment: str) -> "subprocess.Popen[str]":
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
    """The results of the same grid as processes of this machine."""
    made: dict[tuple[str, ...], Path] = {}

    def local(*more: str) -> Path:
        if more not in made:
            results = tmp_path_factory.mktemp("local")
            done(begin(grid(results, *more)))
            made[more] = results
        return made[more]

    return local


def assert_same(results: Path, other: Path) -> None:
    """Every run of the one is in the other too, with the same numbers, metrics and predictions."""
    runs = folders(other)
    assert runs == folders(results)
    for run in runs:
        one, two = (json.loads((root / run / "result.json").read_text()) for root in (results, other))
        assert one["splits"] == two["splits"]
        for file in [*(other / run).glob("predictions/*"), other / run / "metrics.csv"]:
            assert file.read_bytes() == (results / file.relative_to(other)).read_bytes(), file


def folders(results: Path) -> list[Path]:
    return sorted(path.parent.relative_to(results) for path in results.glob("s/*/*/*/result.json"))


def processes(told: Callable[[int], bool]) -> list[int]:
    """Those of this machine of which something is true."""

    def living(number: int) -> bool:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z" and told(number)
        return False

    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and living(int(path.name))]


def words_of(process: int) -> list[str]:
    return Path(f"/proc/{process}/cmdline").read_text().split("\0")


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def within(process: int, ancestor: int) -> bool:
    while process > 1 and process != ancestor:
        process = parent(process)
    return process == ancestor


def is_run(process: int, results: Path) -> bool:
    words = words_of(process)
    return "tfstudy.launchers" in words and str(results) in words[-2]


def midway(results: Path, told: Callable[[int], bool] = lambda _: True, seconds: float = 300) -> tuple[int, Path]:
    """Waits for a run that has a checkpoint and no result: its process, and its folder."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for process in processes(lambda number: is_run(number, results) and told(number)):
            with contextlib.suppress(OSError, IndexError, ValueError):
                path = Path(json.loads(words_of(process)[-2])["path"])
                if (path / "checkpoints" / "last.ckpt").exists() and not (path / "result.json").exists():
                    return process, path
        time.sleep(0.02)
    raise AssertionError("no run is midway")


def assert_nothing_is_left(results: Path, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while left := processes(lambda number: is_run(number, results)):
        assert time.monotonic() < deadline, [words_of(process) for process in left]
        time.sleep(0.1)


def kill(process: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def resumed(path: Path) -> bool:
    return "resumed after step" in (path / "train.log").read_text()


# Ray


class Nodes:
    """A head and another node, each with one CPU. `environment` is what whoever joins them needs."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": os.urandom(32).hex(),
        }
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self.log = folder / "nodes.log"
        few = ["--block", "--num-cpus=1", "--num-gpus=0", "--object-store-memory=100000000"]
        head = ["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}"]
        self.processes = [self._start([*head, *few])]
        wait_for(lambda: answers("127.0.0.1", port))
        self.processes.append(self._start([f"--address={self.address}", *few]))
        wait_for(lambda: len(self.raylets()) == 2)

    def _start(self, words: list[str]) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", "--node-ip-address=127.0.0.1", *words],
                env=os.environ | self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def raylets(self) -> list[int]:
        ours = [process.pid for process in self.processes]
        found = processes(
            lambda number: words_of(number)[0].endswith("/raylet") and any(within(number, pid) for pid in ours)
        )
        return sorted(found, key=lambda number: [within(number, pid) for pid in ours].index(True))

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(host: str, port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection((host, port), 1).close()
        return True
    return False


def wait_for(told: Callable[[], Any], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not told():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    if not installed("ray"):
        pytest.skip("Ray is not installed: make engines")
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:  # sockets need short paths
        nodes = Nodes(Path(folder))
        try:
            yield nodes
        finally:
            nodes.stop()


def test_a_ray_that_loses_a_node_makes_every_run_as_one_machine_does(nodes, local, tmp_path):
    words = grid(tmp_path, "--launcher", "ray", "--ray.address", nodes.address)
    process = begin(words, **nodes.environment)
    try:
        lost = nodes.raylets()[1]
        run, path = midway(tmp_path, lambda number: within(number, lost))
        kill(nodes.processes[1].pid)
        kill(lost)
        wait_for(lambda: not processes(lambda number: number == run), 30)
        out = done(process)
    finally:
        kill(process.pid)
    assert f"Ray at {nodes.address}, 2 runs at once" in out
    assert "to be tried again" not in out, "a lost node is no failure of a run"
    assert resumed(path)
    assert_same(tmp_path, local())
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_run_outlives_a_grid_on_a_ray_of_its_own_and_the_next_goes_on(number, local, tmp_path):
    if not installed("ray"):
        pytest.skip("Ray is not installed: make engines")
    words = grid(tmp_path, "--launcher", "ray")
    process = begin(words)
    _, path = midway(tmp_path)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)  # a terminal interrupts a whole group
    process.communicate(timeout=30)
    assert_nothing_is_left(tmp_path)
    assert not (path / "result.json").exists()
    done(begin(words))
    assert resumed(path)
    assert_same(tmp_path, local())


# Slurm


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """The folder of a running Slurm of two nodes."""
    if not installed("submitit"):
        pytest.skip("submitit is not installed: make engines")
    if os.geteuid() or not shutil.which("apt-get"):
        pytest.skip("Slurm is set up by root, from Debian's packages")
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        try:
            subprocess.run([SLURM, "up", folder], check=True)
            yield Path(folder)
        finally:
            subprocess.run([SLURM, "down", folder], check=True)
            Path(folder).mkdir(exist_ok=True)


@pytest.fixture
def path(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cluster, with its commands on the path."""
    monkeypatch.setenv("PATH", f"{cluster}/bin:{os.environ['PATH']}")
    return cluster


def told_by_slurm(process: int, key: str) -> str:
    """What Slurm has put into the environment of a process or of what started it: a run's own is cleaned of it."""
    while process > 1:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/environ").read_text(errors="replace").split("\0"):
                if line.startswith(f"{key}="):
                    return line.partition("=")[2]
        process = parent(process)
    return ""


def number_of(process: int) -> str:
    return "_".join(told_by_slurm(process, f"SLURM_ARRAY_{part}_ID") for part in ("JOB", "TASK"))


def lose(cluster: Path, node: str) -> None:
    """Ends all of a node at once: its daemon, what looks after jobs there, and the jobs."""
    kill(int((cluster / "run" / f"{node}.pid").read_text()))
    on_it = processes(lambda number: told_by_slurm(number, "SLURMD_NODENAME") == node)
    keepers = processes(lambda number: "slurmstepd" in words_of(number)[0] and number in {parent(n) for n in on_it})
    for process in [*keepers, *on_it]:
        kill(process)


def queue() -> list[str]:
    """Every job that Slurm has at work or waiting."""
    return subprocess.run(["squeue", "--noheader"], check=True, capture_output=True, text=True).stdout.splitlines()


def test_a_slurm_that_loses_a_node_and_requeues_a_job_makes_every_run_as_one_machine_does(path, local, tmp_path):
    process = begin(grid(tmp_path, "--launcher", "slurm", "--slurm.at-once", "2"))
    try:
        run, taken = midway(tmp_path)
        subprocess.run(["scontrol", "requeue", number_of(run)], check=True)
        wait_for(lambda: not processes(lambda number: number == run), 30)
        run, lost = midway(tmp_path)
        lose(path, told_by_slurm(run, "SLURMD_NODENAME"))
        out = done(process)
    finally:
        kill(process.pid)
    assert "to be tried again" not in out, "neither is a failure of a run"
    assert resumed(taken)
    assert resumed(lost)
    assert_same(tmp_path, local())
    assert_nothing_is_left(tmp_path)
    wait_for(lambda: not queue())


def test_the_jobs_of_a_killed_launcher_go_on_and_the_next_one_waits_for_them(path, local, tmp_path):
    words = grid(tmp_path, "--launcher", "slurm", "--slurm.at-once", "2")
    process = begin(words)
    _, going = midway(tmp_path)
    kill(process.pid)
    process.communicate()
    done(begin(words))
    assert not resumed(going)
    assert_same(tmp_path, local())
    wait_for(lambda: not queue())
    assert_nothing_is_left(tmp_path)


def test_an_interrupt_cancels_the_jobs_and_the_next_launcher_goes_on(path, local, tmp_path):
    words = grid(tmp_path, "--launcher", "slurm", "--slurm.at-once", "2")
    process = begin(words)
    _, stopped = midway(tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert_nothing_is_left(tmp_path)
    wait_for(lambda: not queue())
    done(begin(words))
    assert resumed(stopped)
    assert_same(tmp_path, local())


def test_a_run_on_two_devices_trains_on_all_of_its_data_under_slurm(path, local, tmp_path):
    words = ("--devices", "2", "--seed", "0", "--set", "train.steps=50")
    done(begin(grid(tmp_path, "--launcher", "slurm", *words)))
    assert_same(tmp_path, local(*words))
