"""What runs next and what is tried again, on an engine that does as it is told; then real processes of this machine."""

import fcntl
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tasks.errors import UserError
from tests.example_jobs import COPYING, numbers, planned, process_of
from tfstudy.launchers import End, Executor, ExecutorSettings, job_list, supervisor
from tfstudy.launchers.job import BUSY, DONE, FAILED, MEMORY, REFUSED, Job
from tfstudy.launchers.local import Local, local
from tfstudy.launchers.supervisor import supervise
from tfstudy.runs.files import held


class Told(Executor):
    """An engine of `room` slots on one device, whose jobs end at once with the codes that are told for their names."""

    def __init__(self, codes: dict[str, list[int]], slots: int = 2) -> None:
        self.codes, self.slots = codes, slots
        self.now: list[Job] = []
        self.log: list[tuple[str, bool, int]] = []  # name, alone, how many ran with it
        self.stopped = False

    @property
    def at_once(self):
        return self.slots

    def room(self, job, alone):
        return not self.now if alone else len(self.now) < self.slots

    def start(self, job, alone):
        self.log.append((Path(job.path).name, alone, len(self.now)))
        self.now.append(job)

    def wait(self, seconds):
        ended, self.now = self.now, []
        codes = [self.codes.get(Path(job.path).name, []) for job in ended]
        ends = [End(job, code.pop(0) if code else DONE) for job, code in zip(ended, codes, strict=True)]
        for end in ends:
            if end.code == DONE:
                Path(end.job.path, "result.json").write_text("{}")
        return ends

    def stop(self):
        self.stopped = True


@pytest.fixture
def some(tmp_path):
    for name in "abcd":
        (tmp_path / name).mkdir()
    return [Job(str(tmp_path / name), {}, "", "") for name in "abcd"]


def names(jobs):
    return [Path(job.path).name for job in jobs]


def test_all_jobs_are_made_in_order_and_the_engine_is_stopped(some):
    engine = Told({})
    summary = supervise(some, engine)
    assert names(summary.done) == list("abcd")
    assert [name for name, *_ in engine.log] == list("abcd")
    assert engine.stopped
    assert not summary.failed


@pytest.mark.parametrize("code", [FAILED, MEMORY, -9])
def test_what_fails_is_tried_once_more_alone_and_last(some, code):
    engine = Told({"a": [code]})
    summary = supervise(some, engine)
    assert sorted(names(summary.done)) == list("abcd")
    assert engine.log[-1] == ("a", True, 0)


def test_what_fails_twice_is_given_up_with_the_end_of_its_log(some):
    Path(some[1].path, "train.log").write_text("step 1\nTraceback\nValueError: no\n")
    summary = supervise(some, Told({"b": [FAILED, -11]}))
    assert names(summary.done) == list("acd")
    assert summary.failed == {some[1].path: "ended by signal 11"}
    note = json.loads(Path(some[1].path, "failed.json").read_text())
    assert note == {"reason": "ended by signal 11", "attempts": 2, "log": ["step 1", "Traceback", "ValueError: no"]}


def test_a_mistake_of_the_user_is_not_tried_again(some):
    engine = Told({"a": [REFUSED]})
    assert supervise(some, engine).failed == {some[0].path: "refused: see its log"}
    assert len(engine.log) == 4


def test_a_process_that_ends_well_without_a_result_has_failed(some):
    class Empty(Told):
        def wait(self, seconds):
            ended, self.now = self.now, []
            return [End(job, DONE) for job in ended]

    assert set(supervise(some, Empty({})).failed.values()) == {"it ended without a result"}


def test_fail_fast_leaves_the_rest(some):
    summary = supervise(some, Told({"a": [REFUSED]}, slots=1), fail_fast=True)
    assert summary.done == []
    assert names(summary.left) == list("bcd")


def test_a_failure_that_can_not_be_noted_does_not_end_the_grid(some, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(supervisor, "note_failure", full)
    events = []
    summary = supervise(some, Told({"a": [FAILED, FAILED]}), events.append)
    assert names(summary.done) == list("bcd")
    assert any(event and "No space left on device" in event.reason for event in events)


def test_a_run_that_another_process_makes_is_waited_for(some, monkeypatch):
    monkeypatch.setattr(supervisor, "ELSEWHERE", 0.05)
    engine = Told({"a": [BUSY]})
    with Path(some[0].path, ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        threading.Timer(0.3, Path(some[0].path, "result.json").write_text, ["{}"]).start()
        assert sorted(names(supervise(some, engine).done)) == list("abcd")
    assert len(engine.log) == 4, "it was not made again"


def test_a_run_whose_other_process_died_is_made_here(some, monkeypatch):
    monkeypatch.setattr(supervisor, "ELSEWHERE", 0.05)
    engine = Told({"a": [BUSY, BUSY, BUSY]})
    assert sorted(names(supervise(some, engine).done)) == list("abcd")
    assert [name for name, *_ in engine.log].count("a") == 4, "busy is no failure"


def test_shards_are_all_jobs_each_once(some):
    assert names(job_list.sharded(some, "1/3")) == ["a", "d"]
    assert sorted(names(job for i in (1, 2, 3) for job in job_list.sharded(some, f"{i}/3"))) == list("abcd")
    for wrong in ("0/3", "4/3", "1", "a/b", "1/0"):
        with pytest.raises(UserError, match="--shard must be I/N"):
            job_list.sharded(some, wrong)


def test_the_longest_are_made_first_and_the_unknown_before_them(some):
    seconds = {some[0].path: 1.0, some[1].path: 9.0, some[3].path: 3.0}
    assert names(job_list.longest_first(some, seconds)) == ["c", "b", "d", "a"]


@pytest.mark.parametrize("text", ["0", "-1", "two", "65", "1.5"])
def test_runs_at_once_must_be_a_number(text):
    with pytest.raises(UserError, match=f"--per-device must be auto or a number from 1 to 64, but is '{text}'"):
        local(ExecutorSettings(text, accelerator="cpu"))


def test_a_run_that_another_study_has_finished_is_taken_over(tmp_path):
    there, here = tmp_path / "first/t-s/lstm/s0-11111111", tmp_path / "second/t-s/lstm/s0-11111111"
    (there / "checkpoints").mkdir(parents=True)
    for name in ("result.json", "checkpoints/last.ckpt", "metrics.csv", ".lock"):
        (there / name).write_text(name)
    jobs = [Job(str(here), {}, str(tmp_path), "second"), Job(str(here)[:-1] + "2", {}, str(tmp_path), "second")]
    assert job_list.take_over(jobs) == jobs[:1]
    assert (here / "metrics.csv").read_text() == "metrics.csv"
    assert not (here / ".lock").exists()
    assert os.path.samefile(here / "checkpoints/last.ckpt", there / "checkpoints/last.ckpt")
    assert "taken over from" in (here / "train.log").read_text()
    assert job_list.divide(jobs) == (jobs[:1], jobs[1:])
    assert job_list.take_over(jobs) == []
    assert [path.name for path in here.parent.iterdir()] == [here.name]


# Real processes


def seen(root: Path, wanted: int, then) -> threading.Thread:
    """Calls `then` with the process of the first run that has validated `wanted` times, once there is one."""

    def look():
        for _ in range(6000):
            for path in root.glob("*/*/*/s*"):
                log = path / "train.log"
                if log.exists() and log.read_text().count("validation_loss") >= wanted and process_of(path):
                    then(process_of(path))
                    return
            time.sleep(0.005)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    return thread


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    root = tmp_path_factory.mktemp("undisturbed")
    jobs = planned(root, {**COPYING, "seeds": "0-2"})
    summary = supervise(jobs, Local(["cpu"], 2))
    assert len(summary.done) == 3
    return numbers(root)


def test_a_killed_run_is_resumed_to_the_same_result(tmp_path, undisturbed):
    jobs = planned(tmp_path, {**COPYING, "seeds": "0-2"})
    killer = seen(tmp_path, 2, lambda process: os.kill(process, signal.SIGKILL))
    events = []
    summary = supervise(jobs, Local(["cpu"], 2), events.append)
    killer.join()
    assert len(summary.done) == 3
    assert [event.reason for event in events if event and event.state == "retrying"] == ["ended by signal 9"]
    assert numbers(tmp_path) == undisturbed
    assert any("resuming after step" in path.read_text() for path in tmp_path.glob("*/*/*/*/train.log"))


def test_a_run_that_hangs_is_ended_and_resumed(tmp_path, undisturbed):
    jobs = planned(tmp_path, {**COPYING, "seeds": "0-2"})
    stopper = seen(tmp_path, 2, lambda process: os.kill(process, signal.SIGSTOP))
    events = []
    began = time.monotonic()
    summary = supervise(jobs, Local(["cpu"], 2, timeout=20.0), events.append)
    stopper.join()
    assert len(summary.done) == 3
    assert [e.reason for e in events if e and e.state == "retrying"] == ["took longer than the timeout of 20 s"]
    assert time.monotonic() - began > 20
    assert numbers(tmp_path) == undisturbed


def test_nothing_is_left_when_the_launcher_is_interrupted(tmp_path):
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
    assert not any(held(Path(job.path)) for job in jobs)
    assert not any(Path(job.path, "failed.json").exists() for job in jobs), "an interrupted run has not failed"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_is_ended_though_the_interruption_comes_while_it_starts(number, tmp_path, monkeypatch):
    [job] = planned(tmp_path, {**COPYING, "base": {**COPYING["base"], "train": {"steps": 100_000}}})
    real, started = Local._fork, []

    def interrupted(self, *args):
        started.append(real(self, *args))
        os.kill(os.getpid(), number)
        return started[0]

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Local, "_fork", interrupted)
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            supervise([job], Local(["cpu"], 1))
        assert signal.getsignal(signal.SIGTERM) is stop
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [process.is_alive() for process in started] == [False]


def test_a_run_that_the_data_or_the_code_left_behind_is_refused(tmp_path):
    [job] = planned(tmp_path)
    [wrong] = [job._replace(path=job.path[:-8] + "0" * 8)]
    summary = supervise([wrong], Local(["cpu"], 1))
    assert summary.failed == {wrong.path: "refused: see its log"}
    assert "the data or the code changed after the run was planned" in Path(wrong.path, "train.log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["transformer", "lstm", "cnn"])
def test_a_run_on_two_devices_of_a_grid_is_the_run_on_one(tmp_path, arch):
    """In batches of 7, of which one process has 4 rows and the other 3; gloo adds up their gradients."""
    train = {**COPYING["base"]["train"], "batch_size": 7, "steps": 30}
    told = {
        "base": {**COPYING["base"], "train": train, "model": {"dropout": 0.0}},
        "axes": {"arch": [arch]},
    }
    found = {}
    for devices in (1, 2):
        jobs = planned(tmp_path / str(devices), told, devices=devices)
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
