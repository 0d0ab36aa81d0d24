"""Jobs as processes of this machine: killed, interrupted, refused, sharing a GPU; and a job as a
program of its own, as on the node of a cluster."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.example_jobs import COPYING, digests, executable, planned, process_of, seen, wait_for
from tfstudy.errors import UserError
from tfstudy.experiment.api import RunOptions
from tfstudy.launchers import ExecutorSettings
from tfstudy.launchers.job import FAILED, SUCCEEDED, Job
from tfstudy.launchers.local import Local, MultiProcessService, local
from tfstudy.launchers.processes import execute, without_cluster
from tfstudy.launchers.supervisor import RETRYING, supervise
from tfstudy.runs.files import is_locked
from tfstudy.runs.store import open_run

JOB = Job("results/s/copying-copy/lstm/s0-12345678", {})
TWO = {**COPYING, "seeds": "0-1"}


def test_runs_per_device_must_be_a_number():
    for text in ("0", "two", "65"):
        with pytest.raises(UserError, match=f"--per-device must be auto or a number from 1 to 64, but is '{text}'"):
            local(ExecutorSettings(text, options=RunOptions(accelerator="cpu")))


def test_a_run_has_the_cores_of_its_share_but_no_more_threads_than_omp_num_threads(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8))
    monkeypatch.setattr("tfstudy.launchers.local.start_server", lambda: None)
    monkeypatch.setattr("torch.get_num_threads", lambda: 3)  # what torch makes of OMP_NUM_THREADS
    settings = ExecutorSettings("2", options=RunOptions(accelerator="cpu"))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert local(settings).threads == 4
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert local(settings).threads == 3


def test_a_killed_run_is_resumed_to_the_same_result(tmp_path):
    supervise(planned(tmp_path / "undisturbed", TWO), Local(["cpu"], 2))
    jobs, found, events = planned(tmp_path / "killed", TWO), [], []

    def kill(process):
        found.extend([os.getpgid(process) == process, os.getsid(process) == os.getsid(0)])
        os.kill(process, signal.SIGKILL)

    killer = seen(tmp_path / "killed", 2, kill)
    assert supervise(jobs, Local(["cpu"], 2), events.append) == {}
    killer.join()
    assert found == [True, True], "a run has a group of its own, and the session of its launcher"
    assert all(job.finished for job in jobs)
    assert [event.reason for event in events if event and event.state == RETRYING] == ["ended by signal 9"]
    assert digests(tmp_path / "killed") == digests(tmp_path / "undisturbed")
    assert any("resuming after step" in path.read_text() for path in tmp_path.glob("killed/*/*/*/*/train.log"))


def test_no_process_is_left_when_the_launcher_is_interrupted(tmp_path):
    jobs = planned(tmp_path, {**COPYING, "base": {**COPYING["base"], "train": {"steps": 100_000}}, "seeds": "0-1"})
    processes = []

    def interrupt(process):
        processes.extend(process_of(Path(job.path)) for job in jobs)
        time.sleep(1)  # until the other run trains, too
        os.kill(os.getpid(), signal.SIGINT)

    stopper = seen(tmp_path, 0, interrupt)
    with pytest.raises(KeyboardInterrupt):
        supervise(jobs, Local(["cpu"], 2))
    stopper.join()
    assert any(processes)
    assert not any(is_locked(Path(job.path)) for job in jobs)
    assert not any(open_run(Path(job.path)).failure for job in jobs), "an interrupted run has not failed"
    logs = [(Path(job.path) / "train.log").read_text() for job in jobs]
    assert any(log.endswith("interrupted; the command of the grid resumes it\n") for log in logs)
    assert not any("Traceback" in log for log in logs)


def test_a_run_whose_data_or_code_changed_since_its_plan_is_refused(tmp_path):
    [job] = planned(tmp_path)
    reasons = supervise([job._replace(path=job.path[:-8] + "0" * 8)], Local(["cpu"], 1))
    [reason] = reasons.values()
    assert reason.startswith("refused: ")
    assert "data or code changed since the run was planned" in reason


# The server of processes

SERVER = "import os, signal, time\nfrom tfstudy.launchers.processes import start_server\n"


def python(program: str) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-c", SERVER + program]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, start_new_session=True, check=True)


@pytest.mark.parametrize("seconds", [0.02, 0.3])
def test_ctrl_c_while_the_server_imports_prints_no_traceback(seconds):
    done = python(
        "start_server(['tfstudy.launchers.processes', 'pandas'])\n"
        f"signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep({seconds}); os.killpg(0, signal.SIGINT)"
    )
    assert done.stderr == ""


def test_the_folder_in_which_the_server_started_may_be_removed(tmp_path):
    done = python(
        f"os.mkdir({str(tmp_path / 'folder')!r}); os.chdir({str(tmp_path / 'folder')!r})\n"
        "context = start_server(['tfstudy.launchers.processes']); os.chdir('..'); os.rmdir('folder')\n"
        "process = context.Process(target=exec, args=('import os; print(os.getcwd())',))\n"
        "process.start(); process.join()"
    )
    assert (done.stdout, done.stderr) == (f"{tmp_path}\n", "")


# Devices


@pytest.mark.parametrize(
    ("devices", "per_device", "max_parallel"), [(["cpu"], 2, 2), (list("0123"), 2, 8), (list("01"), 1, 2)]
)
def test_the_maximum_number_of_runs_starts_and_a_retry_needs_an_idle_device(
    monkeypatch, devices, per_device, max_parallel
):
    executor = Local(devices, per_device)
    process = SimpleNamespace(exitcode=None, pid=2**22 + 1)  # no process has this number
    monkeypatch.setattr(executor, "_fork", lambda *_: process)
    exclusive = []
    while executor.has_room(False):
        exclusive.append(executor.has_room(True))
        executor.start(JOB, False)
    assert len(exclusive) == executor.max_parallel == max_parallel
    assert exclusive.count(True) == len(devices)
    executor._processes.clear()
    executor.stop()


def test_the_multi_process_service_is_started_once_and_stopped(tmp_path, monkeypatch):
    log = tmp_path / "log"
    script = f'echo "$@:$(test "$1" = -d || cat):$CUDA_MPS_PIPE_DIRECTORY" >> {log}'
    executable(tmp_path / "bin" / "nvidia-cuda-mps-control", script)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    service = MultiProcessService()
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


# A program of its own


def test_what_slurm_and_other_launchers_leave_is_kept_from_a_run():
    kept = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "1"}
    foreign = {"SLURM_NTASKS": "1", "SLURM_JOB_ID": "7", "MASTER_PORT": "1", "LOCAL_RANK": "1", "PMI_RANK": "0"}
    assert without_cluster(kept | foreign) == kept


def test_a_program_has_a_group_of_its_own_that_ends_with_it_and_says_how_it_ended(tmp_path, monkeypatch):
    def ended(text, folder=tmp_path):
        monkeypatch.setattr(sys, "executable", str(executable(tmp_path / "python", text)))
        return execute(JOB, str(folder))

    assert ended("echo one; echo two >&2; exit 3") == (3, "two")
    assert ended("echo one; exit 0") == (SUCCEEDED, "")
    code, reason = ended("", "/nowhere")
    assert (code, "/nowhere" in reason) == (FAILED, True)
    _, numbers = ended("sleep 60 & echo $! > child; cut -d ' ' -f 1,5,6 /proc/$$/stat; exit 1")
    process, group, session = map(int, numbers.split())
    assert (group, session) == (process, os.getsid(0))
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "stat"
    wait_for(lambda: not child.exists() or child.read_text().split()[2] == "Z", 5)
