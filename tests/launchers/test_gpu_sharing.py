"""How many runs share a CUDA device: a simulated device, and programs that answer as NVIDIA's do."""

import os
import stat
from pathlib import Path

import pytest

from tfstudy.launchers import gpu_sharing
from tfstudy.launchers.gpu_sharing import MOST, Memory, Packer, Service, Sharing, memory
from tfstudy.launchers.job import MEMORY, Job
from tfstudy.launchers.local import Local


def packed(total: float, each: float, pace) -> int:
    """How many runs a packer ends with, on a device of `total` MiB, where n runs do `pace(n)` a second."""
    packer = Packer(total, idle=500.0)
    for _ in range(50):
        packer.look(packer.limit, 500.0 + packer.limit * each, pace(packer.limit))
    return packer.limit


@pytest.mark.parametrize("best", [1, 2, 5, 9])
def test_runs_are_added_until_one_more_gains_nothing(best):
    assert packed(80_000, 900, lambda n: min(n, best)) == best


def test_runs_are_added_until_the_memory_is_full():
    assert packed(10_000, 2_000, lambda n: n) == 4  # 4 x 2,000 and a tenth more, beside the 500 that others have


def test_there_is_a_bound():
    assert packed(1e9, 1, lambda n: n) == MOST


def test_a_device_that_is_not_full_says_nothing_of_its_limit():
    packer = Packer(80_000)
    packer.look(1, 900, 1.0)
    assert packer.limit == 2
    packer.look(1, 900, 1.0)  # the queue is empty: only one runs
    packer.look(0, 0, 0.0)
    assert packer.limit == 2


def test_a_run_out_of_memory_lowers_the_limit_for_good():
    packer = Packer(80_000)
    for n in (1, 2, 3):
        packer.look(n, 900 * n, n)
    packer.overfull()
    assert packer.limit == 3
    packer.look(3, 2700, 9.0)
    assert packer.limit == 3
    for _ in range(9):
        packer.overfull()
    assert packer.limit == 1


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


def test_memory_is_read_as_the_driver_tells_it(program):
    program("nvidia-smi", "echo '0, 512, 81559'\necho '1, 1024, 81559'")
    assert memory() == {"0": Memory(512.0, 81559.0), "1": Memory(1024.0, 81559.0)}


@pytest.mark.parametrize("text", ["exit 9", "echo 'No devices were found'", "echo '0, [N/A], [N/A]'"])
def test_a_driver_that_can_not_tell_leaves_one_run_a_device(program, text):
    program("nvidia-smi", text)
    assert memory() == {}
    assert Sharing(["0"]).limit("0") == 1


def test_the_service_is_started_told_to_runs_and_ended(program, tmp_path):
    log = tmp_path / "log"
    program("nvidia-cuda-mps-control", f'echo "$@:$(test "$1" = -d || cat):$CUDA_MPS_PIPE_DIRECTORY" >> {log}')
    service = Service()
    assert not log.exists(), "nothing runs before the first run does"
    service.start()
    service.start()
    folder = service.environment["CUDA_MPS_PIPE_DIRECTORY"]
    assert Path(folder).is_dir()
    service.stop()
    assert log.read_text().splitlines() == [f"-d::{folder}", f":quit:{folder}"]
    assert not Path(folder).exists()


def test_a_service_that_does_not_start_is_done_without(program):
    program("nvidia-cuda-mps-control", "exit 1")
    service = Service()
    service.start()
    assert (service.environment, service.there) == ({}, False)


def job(path: Path, step: int) -> Job:
    path.mkdir()
    (path / "metrics.csv").write_text(f"step,metric,value\n{step},train_loss,1.0\n")
    return Job(str(path), {"train": {"steps": 100}}, "", "")


def test_an_engine_lets_as_many_runs_on_a_device_as_pay(program, tmp_path, monkeypatch):
    program("nvidia-smi", "echo '0, 500, 80000'\necho '1, 500, 80000'")
    monkeypatch.setattr(gpu_sharing, "LOOK", 0.0)
    engine = Local(["0", "1"], MOST, sharing=True)
    monkeypatch.setattr(engine, "_fork", lambda *_: Alive())
    jobs = [job(tmp_path / str(i), 10) for i in range(5)]
    for some in jobs[:2]:
        assert engine.room(some, False)
        engine.start(some, False)
    assert not engine.room(jobs[2], False), "one on each"
    for step in (10, 20, 30):
        for some in jobs[:2]:
            Path(some.path, "metrics.csv").write_text(f"step,metric,value\n{step},train_loss,1.0\n")
        engine.wait(0)
    assert engine.room(jobs[2], False)
    assert not engine.room(jobs[2], True), "no device is idle"
    engine._processes[0].handle.exitcode = MEMORY
    [end] = engine.wait(0)
    assert end.code == MEMORY
    assert engine._sharing.limit("0") == 1
    engine._processes.clear()
    engine.stop()


@pytest.mark.parametrize(
    ("devices", "per_device", "width", "at_once"),
    [(["cpu"], 2, 1, 2), (["cpu"], 4, 2, 4), (list("0123"), 2, 1, 8), (list("01234567"), 1, 4, 2)],
)
def test_as_many_run_at_once_as_are_told(tmp_path, monkeypatch, devices, per_device, width, at_once):
    engine = Local(devices, per_device, width=width)
    monkeypatch.setattr(engine, "_fork", lambda *_: Alive())
    monkeypatch.setattr(engine, "_spawn", lambda *_: Alive())
    for i in range(20):
        some = job(tmp_path / str(i), 0)._replace(devices=width)
        if not engine.room(some, False):
            break
        engine.start(some, False)
    assert len(engine._processes) == engine.at_once == at_once
    engine._processes.clear()
    engine.stop()


class Alive:
    """A process that goes on."""

    exitcode: int | None = None
    pid = 2**22 + 1  # above any that there is

    def __init__(self) -> None:
        self.sentinel = os.pipe()[0]
