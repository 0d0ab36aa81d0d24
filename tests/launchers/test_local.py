"""Jobs as processes of this machine: killed, hanging, interrupted, on several devices, and sharing a GPU."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.example_jobs import COPYING, executable, numbers, planned, process_of, seen
from tfstudy.errors import UserError
from tfstudy.experiment.api import RunOptions
from tfstudy.launchers import ExecutorSettings
from tfstudy.launchers.job import Job
from tfstudy.launchers.local import Local, MultiProcessService, local
from tfstudy.launchers.supervisor import RETRYING, supervise
from tfstudy.runs.files import is_locked
from tfstudy.runs.store import failure_of, open_run


def test_runs_per_device_must_be_a_number():
    for text in ("0", "-1", "two", "65", "1.5"):
        with pytest.raises(UserError, match=f"--per-device must be auto or a number from 1 to 64, but is '{text}'"):
            local(ExecutorSettings(text, options=RunOptions(accelerator="cpu")))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    root = tmp_path_factory.mktemp("undisturbed")
    jobs = planned(root, {**COPYING, "seeds": "0-2"})
    summary = supervise(jobs, Local(["cpu"], 2))
    assert len(summary.finished) == 3
    return numbers(root)


def test_a_killed_run_is_resumed_to_the_same_result(tmp_path, undisturbed):
    jobs, found, events = planned(tmp_path, {**COPYING, "seeds": "0-2"}), [], []

    def kill(process):
        found.extend([os.getpgid(process) == process, os.getsid(process) == os.getsid(0)])
        os.kill(process, signal.SIGKILL)

    killer = seen(tmp_path, 2, kill)
    summary = supervise(jobs, Local(["cpu"], 2), events.append)
    killer.join()
    assert found == [True, True], "a run has a group of its own, and the session of its launcher"
    assert len(summary.finished) == 3
    assert [event.reason for event in events if event and event.state == RETRYING] == ["ended by signal 9"]
    assert numbers(tmp_path) == undisturbed
    assert any("resuming after step" in path.read_text() for path in tmp_path.glob("*/*/*/*/train.log"))


@pytest.mark.slow
def test_a_run_that_hangs_is_killed_and_resumed(tmp_path, undisturbed):
    jobs = planned(tmp_path, {**COPYING, "seeds": "0-2"})
    stopper = seen(tmp_path, 2, lambda process: os.kill(process, signal.SIGSTOP))
    events = []
    began = time.monotonic()
    summary = supervise(jobs, Local(["cpu"], 2, timeout=20.0), events.append)
    stopper.join()
    assert len(summary.finished) == 3
    assert [e.reason for e in events if e and e.state == RETRYING] == ["took longer than the timeout of 20 s"]
    assert time.monotonic() - began > 20
    assert numbers(tmp_path) == undisturbed


def test_no_process_is_left_when_the_launcher_is_interrupted(tmp_path):
    jobs = planned(tmp_path, {**COPYING, "base": {**COPYING["base"], "train": {"steps": 100_000}}, "seeds": "0-1"})
    processes = []

    def interrupt(process):
        processes.extend(process_of(Path(job.path)) for job in jobs)
        os.kill(os.getpid(), signal.SIGINT)

    stopper = seen(tmp_path, 0, interrupt)
    with pytest.raises(KeyboardInterrupt):
        supervise(jobs, Local(["cpu"], 2))
    stopper.join()
    assert any(processes)
    assert not any(is_locked(Path(job.path)) for job in jobs)
    assert not any(failure_of(open_run(Path(job.path))) for job in jobs), "an interrupted run has not failed"


def test_a_run_whose_data_or_code_changed_since_its_plan_is_refused(tmp_path):
    [job] = planned(tmp_path)
    [wrong] = [job._replace(path=job.path[:-8] + "0" * 8)]
    summary = supervise([wrong], Local(["cpu"], 1))
    [reason] = summary.failed.values()
    assert reason.startswith("refused: ")
    assert "data or code changed since the run was planned" in reason


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["transformer", "lstm", "cnn"])
def test_a_run_on_two_devices_of_a_grid_is_the_run_on_one(tmp_path, arch):
    """In batches of 7, of which one process has 4 rows and the other 3; gloo adds up their gradients."""
    train = {**COPYING["base"]["train"], "batch_size": 7, "steps": 30}
    grid = {
        "base": {**COPYING["base"], "train": train, "model": {"dropout": 0.0}},
        "axes": {"arch": [arch]},
    }
    found = {}
    for devices in (1, 2):
        jobs = planned(tmp_path / str(devices), grid, devices=devices)
        assert supervise(jobs, Local(["cpu"], 1)).failed == {}
        found[devices] = Path(jobs[0].path)
    assert found[1].name == found[2].name, "devices are no part of the identity"
    one, two = ([row.split(",") for row in (path / "metrics.csv").read_text().split()[1:]] for path in found.values())
    assert [row[:2] for row in one] == [row[:2] for row in two]
    assert [float(row[2]) for row in two] == pytest.approx([float(row[2]) for row in one], rel=1e-4, abs=1e-5)
    one, two = (json.loads((path / "result.json").read_text()) for path in found.values())
    assert two["devices"] == 2
    assert two["train_tokens"] == one["train_tokens"], "no example twice or lost"
    assert two["splits"].keys() == one["splits"].keys()
    for name, split in one["splits"].items():
        assert two["splits"][name]["n"] == split["n"]
        assert two["splits"][name]["metrics"] == pytest.approx(split["metrics"], abs=0.05), "some ties are close"


SERVER = "from tfstudy.launchers.processes import start_server\n"


@pytest.mark.parametrize("seconds", [0.02, 0.3])
def test_ctrl_c_while_the_server_imports_prints_no_traceback(seconds):
    program = (
        f"import os, signal, time\n{SERVER}"
        "start_server(['tfstudy.launchers.processes', 'pandas'])\n"
        f"signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep({seconds}); os.killpg(0, signal.SIGINT)"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, start_new_session=True, check=True)
    assert done.stderr == ""


def test_the_folder_in_which_the_server_started_may_be_removed(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    program = (
        f"import os\n{SERVER}"
        f"os.chdir({str(folder)!r}); context = start_server(['tfstudy.launchers.processes'])\n"
        f"os.chdir('..'); os.rmdir({str(folder)!r})\n"
        "process = context.Process(target=exec, args=('import os; print(os.getcwd())',))\n"
        "process.start(); process.join()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout, done.stderr) == (f"{tmp_path}\n", "")


class Alive:
    """A process that runs."""

    exitcode: int | None = None
    pid = 2**22 + 1  # no process has this number


@pytest.mark.parametrize(
    ("devices", "per_device", "width", "max_parallel"),
    [(["cpu"], 2, 1, 2), (["cpu"], 4, 2, 4), (list("0123"), 2, 1, 8), (list("01234567"), 1, 4, 2)],
)
def test_the_maximum_number_of_runs_starts_and_a_retry_needs_an_idle_device(
    monkeypatch, devices, per_device, width, max_parallel
):
    executor = Local(devices, per_device, width=width)
    monkeypatch.setattr(executor, "_fork", lambda *_: Alive())
    job = Job("a/b/c/d/s0-12345678", {}, RunOptions(devices=width))
    exclusive = []
    while executor.has_room(job, False):
        exclusive.append(executor.has_room(job, True))
        executor.start(job, False)
    assert len(executor._processes) == executor.max_parallel == max_parallel
    assert exclusive.count(True) == (1 if devices == ["cpu"] else len(devices) // width)
    executor._processes.clear()
    executor.stop()


def test_the_multi_process_service_is_started_once_and_stopped(tmp_path, monkeypatch):
    log = tmp_path / "log"
    script = f'echo "$@:$(test "$1" = -d || cat):$CUDA_MPS_PIPE_DIRECTORY" >> {log}'
    executable(tmp_path / "bin" / "nvidia-cuda-mps-control", script)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    service = MultiProcessService()
    assert not log.exists(), "nothing runs before the first run does"
    service.start()
    service.start()
    folder = service.environment["CUDA_MPS_PIPE_DIRECTORY"]
    assert Path(folder).is_dir()
    service.stop()
    assert log.read_text().splitlines() == [f"-d::{folder}", f":quit:{folder}"]
    assert not Path(folder).exists()
    executable(tmp_path / "bin" / "nvidia-cuda-mps-control", "exit 1")
    service = MultiProcessService()
    service.start()
    assert service.environment == {}, "runs go on without it"
    service.stop()
