"""A Ray cluster of two nodes, running on this machine, that loses a node. `make engines`."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launchers.cluster_grids import (
    assert_no_process_is_left,
    assert_same,
    command_line,
    grid,
    installed,
    kill,
    local,
    output_of,
    processes,
    resumed,
    start,
    unfinished_run,
    wait_for,
    within,
)

__all__ = ["local"]  # a fixture

pytestmark = pytest.mark.slow


class Nodes:
    """A cluster of two nodes with one CPU each; `environment` is required to join it."""

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
        options = ["--block", "--num-cpus=1", "--num-gpus=0", "--object-store-memory=100000000"]
        head = ["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}"]
        self.processes = [self._start([*head, *options])]
        wait_for(lambda: answers("127.0.0.1", port))
        self.processes.append(self._start([f"--address={self.address}", *options]))
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
        pids = [process.pid for process in self.processes]
        raylets = processes(
            lambda number: command_line(number)[0].endswith("/raylet") and any(within(number, pid) for pid in pids)
        )
        return sorted(raylets, key=lambda number: [within(number, pid) for pid in pids].index(True))

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


def test_runs_on_a_ray_cluster_that_loses_a_node_equal_those_of_one_machine(nodes, local, tmp_path):
    words = grid(tmp_path, "--launcher", "ray", "--ray.address", nodes.address)
    process = start(words, **nodes.environment)
    try:
        lost = nodes.raylets()[1]
        run, path = unfinished_run(tmp_path, lambda number: within(number, lost))
        kill(nodes.processes[1].pid)
        kill(lost)
        wait_for(lambda: not processes(lambda number: number == run), 30)
        out = output_of(process)
    finally:
        kill(process.pid)
    assert f"Ray at {nodes.address}, 2 runs in parallel" in out
    assert "will be retried" not in out, "a lost node is no failure of a run"
    assert resumed(path)
    assert_same(tmp_path, local())
    assert_no_process_is_left(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_run_outlives_a_stopped_grid_on_its_own_ray_and_the_next_grid_resumes(number, local, tmp_path):
    if not installed("ray"):
        pytest.skip("Ray is not installed: make engines")
    words = grid(tmp_path, "--launcher", "ray")
    process = start(words)
    _, path = unfinished_run(tmp_path)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)  # a terminal interrupts a whole group
    process.communicate(timeout=30)
    assert_no_process_is_left(tmp_path)
    assert not (path / "result.json").exists()
    output_of(start(words))
    assert resumed(path)
    assert_same(tmp_path, local())
