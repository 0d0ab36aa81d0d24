"""How many runs share a CUDA device: a simulated device, and programs that answer as NVIDIA's do."""

import os
import stat
from pathlib import Path

import pytest

from tfstudy.experiment.options import RunOptions
from tfstudy.launchers import gpu_sharing
from tfstudy.launchers.gpu_sharing import MAX_RUNS, Gpu, Limit, MultiProcessService, Sharing, gpus, parse_gpus
from tfstudy.launchers.job import OUT_OF_MEMORY, Job
from tfstudy.launchers.local import Local
from tfstudy.runs.schema import Progress
from tfstudy.runs.writer import RunFolder


def final_limit(total: float, each: float, throughput) -> int:
    """The final limit of a device of `total` MiB, on which n runs have this throughput in runs per second."""
    limit = Limit(total, idle=500.0)
    for _ in range(50):
        limit.measure(limit.runs, 500.0 + limit.runs * each, throughput(limit.runs))
    return limit.runs


@pytest.mark.parametrize("best", [1, 2, 5, 9])
def test_runs_are_added_until_one_more_gains_nothing(best):
    assert final_limit(80_000, 900, lambda n: min(n, best)) == best


def test_runs_are_added_until_the_memory_is_full():
    assert final_limit(10_000, 2_000, lambda n: n) == 4  # 4 x 2,000 and a tenth more, beside the 500 that others have


def test_the_number_of_runs_is_bounded():
    assert final_limit(1e9, 1, lambda n: n) == MAX_RUNS


def test_a_measurement_with_fewer_runs_than_the_limit_does_not_raise_it():
    limit = Limit(80_000)
    limit.measure(1, 900, 1.0)
    assert limit.runs == 2
    limit.measure(1, 900, 1.0)  # the queue is empty: only one runs
    limit.measure(0, 0, 0.0)
    assert limit.runs == 2


def test_a_run_out_of_memory_lowers_the_limit_for_good():
    limit = Limit(80_000)
    for n in (1, 2, 3):
        limit.measure(n, 900 * n, n)
    limit.out_of_memory()
    assert limit.runs == 3
    limit.measure(3, 2700, 9.0)
    assert limit.runs == 3
    for _ in range(9):
        limit.out_of_memory()
    assert limit.runs == 1


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Puts a shell script first on the path."""

    def program(name: str, text: str) -> Path:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
        return path

    return program


def test_the_state_of_gpus_is_read_from_nvidia_smi(program):
    program("nvidia-smi", "echo '0, 87, 512, 81559'\necho '1, 0, 1024, 81559'")
    assert gpus() == [Gpu("0", 87.0, 512.0, 81559.0), Gpu("1", 0.0, 1024.0, 81559.0)]


@pytest.mark.parametrize("text", ["exit 9", "echo 'No devices were found'", "echo '0, 5, [N/A], [N/A]'"])
def test_without_a_measurement_a_device_runs_one_run(program, text):
    program("nvidia-smi", text)
    assert all(gpu.used is None for gpu in gpus())
    assert Sharing(["0"]).limit("0") == 1


def test_the_service_is_started_once_and_stopped(program, tmp_path):
    log = tmp_path / "log"
    program("nvidia-cuda-mps-control", f'echo "$@:$(test "$1" = -d || cat):$CUDA_MPS_PIPE_DIRECTORY" >> {log}')
    service = MultiProcessService()
    assert not log.exists(), "nothing runs before the first run does"
    service.start()
    service.start()
    folder = service.environment["CUDA_MPS_PIPE_DIRECTORY"]
    assert Path(folder).is_dir()
    service.stop()
    assert log.read_text().splitlines() == [f"-d::{folder}", f":quit:{folder}"]
    assert not Path(folder).exists()


def test_a_service_that_does_not_start_is_not_used(program):
    program("nvidia-cuda-mps-control", "exit 1")
    service = MultiProcessService()
    service.start()
    assert (service.environment, service.available) == ({}, False)


def report(path: Path, step: int) -> None:
    RunFolder(path, "").write_progress(Progress(100, step, updated=float(step)))


def job(path: Path, step: int) -> Job:
    path.mkdir()
    report(path, step)
    return Job(str(path), {"train": {"steps": 100}})


def test_runs_are_added_to_a_device_while_they_raise_its_throughput(program, tmp_path, monkeypatch):
    program("nvidia-smi", "echo '0, 50, 500, 80000'\necho '1, 50, 500, 80000'")
    monkeypatch.setattr(gpu_sharing, "MEASURE_SECONDS", 0.0)
    executor = Local(["0", "1"], MAX_RUNS, sharing=True)
    monkeypatch.setattr(executor, "_fork", lambda *_: Alive())
    jobs = [job(tmp_path / str(i), 10) for i in range(5)]
    for one in jobs[:2]:
        assert executor.has_room(one, False)
        executor.start(one, False)
    assert not executor.has_room(jobs[2], False), "one run on each"
    for step in (10, 20, 30):
        for one in jobs[:2]:
            report(Path(one.path), step)
        executor.wait(0)
    assert executor.has_room(jobs[2], False)
    assert not executor.has_room(jobs[2], True), "no device is idle"
    executor._processes[0].handle.exitcode = OUT_OF_MEMORY
    [ended] = executor.wait(0)
    assert ended.code == OUT_OF_MEMORY
    assert executor._sharing.limit("0") == 1
    executor._processes.clear()
    executor.stop()


@pytest.mark.parametrize(
    ("devices", "per_device", "width", "max_parallel"),
    [(["cpu"], 2, 1, 2), (["cpu"], 4, 2, 4), (list("0123"), 2, 1, 8), (list("01234567"), 1, 4, 2)],
)
def test_the_maximum_number_of_runs_starts(tmp_path, monkeypatch, devices, per_device, width, max_parallel):
    executor = Local(devices, per_device, width=width)
    monkeypatch.setattr(executor, "_fork", lambda *_: Alive())
    monkeypatch.setattr(executor, "_spawn", lambda *_: Alive())
    for i in range(20):
        one = job(tmp_path / str(i), 0)._replace(options=RunOptions(devices=width))
        if not executor.has_room(one, False):
            break
        executor.start(one, False)
    assert len(executor._processes) == executor.max_parallel == max_parallel
    executor._processes.clear()
    executor.stop()


class Alive:
    """A process that runs."""

    exitcode: int | None = None
    pid = 2**22 + 1  # no process has this number

    def __init__(self) -> None:
        self.sentinel = os.pipe()[0]


def test_the_load_of_a_gpu_is_one_line():
    busy, unknown = parse_gpus("0, 87, 1024, 81559\n1, [N/A], [N/A], 81559")
    assert str(busy) == "cuda 0: 87 % busy, 1.0 of 80 GiB"
    assert "no measurement" in str(unknown)
