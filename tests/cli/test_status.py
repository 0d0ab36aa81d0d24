"""How a grid is watched: what stands in run folders is told as it is, quickly, and a user's slip in one line."""

import fcntl
import io
import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from tasks.errors import UserError
from tests.commands import tfstudy
from tfstudy.grids import expand
from tfstudy.launchers import Executor, job_list
from tfstudy.launchers.gpu_sharing import gpu
from tfstudy.launchers.job import Job
from tfstudy.launchers.retry import again, how_made
from tfstudy.launchers.supervisor import FINISHED, GIVEN_UP, RETRYING, RUNNING, Event
from tfstudy.report.grid_progress import Progress
from tfstudy.report.status import duration, status
from tfstudy.runs.files import held
from tfstudy.runs.progress import failure, plans, read_run, runs_of
from tfstudy.runs.reader import find_run, find_runs
from tfstudy.runs.train_log import followed
from tfstudy.runs.writer import BusyError, note_failure, open_record

CONFIG = {"task": "copying", "arch": "lstm", "data": {"examples": 60, "held_out": 10}, "train": {"steps": 400}}
PART = {"role": "test", "n": 10, "metrics": {"exact_match": 0.5}}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def planned(seeds: str = "0", study: str = "study", **more) -> list[Job]:
    """Jobs of real configs, whose folders are where a grid would put them."""
    cells = expand.expand({"base": {**CONFIG, **more}, "seeds": seeds})
    common = Job("", {}, "", "", accelerator="cpu")
    return job_list.jobs(expand.plan(cells, Path("results"), study), Path("results"), study, common)


def begun(job: Job, step: int = 0) -> Path:
    """A run's folder as it is when it was killed at this step."""
    import yaml

    path = Path(job.path)
    path.mkdir(parents=True)
    (path / "config.yaml").write_text(yaml.safe_dump(job.config, sort_keys=False))
    (path / ".lock").touch()
    if step:
        (path / "metrics.csv").write_text(f"step,metric,value\n{step},train_loss,1.0\n{step + 50},tra")
    return path


def ended(path: Path, status: str = "finished", **more) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.yaml").touch()
    made = {"format": 1, "run": path.name[-8:], "task": "copying", "split": "copy", "arch": "lstm", "seed": 0}
    made |= {"status": status, "splits": {"test": PART} if status == "finished" else {}}
    (path / "result.json").write_text(json.dumps(made | more, indent=1))
    return path


@contextmanager
def holding(path: Path):
    """Another process holds the run."""
    code = (
        "import fcntl, sys\nlock = open(sys.argv[1], 'a')\nfcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\ninput()"
    )
    words = [sys.executable, "-c", code, str(path / ".lock")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout.readline() == "held\n"
        try:
            yield
        finally:
            process.kill()


def of_all_kinds() -> list[Job]:
    """Seven runs: done, diverged, failed, interrupted, and three of which nothing is there."""
    jobs = planned("0-6")
    ended(Path(jobs[0].path))
    ended(Path(jobs[1].path), "diverged", reason="the loss is nan")
    note_failure(begun(jobs[2]), "out of memory", 2)
    begun(jobs[3], 150)
    job_list.keep_plan(jobs)
    return jobs


# How far runs are


def test_every_state_is_told_apart():
    jobs = of_all_kinds()
    begun(jobs[4], 200)
    with holding(Path(jobs[4].path)):
        runs = {run.name: run for run in runs_of(Path("results/study"))}
    states = [runs[job.name].state for job in jobs]
    assert states == ["done", "diverged", "failed", "interrupted", "running", "waiting", "waiting"]
    assert runs[jobs[2].name].reason == "out of memory (tried 2 times)"
    assert (runs[jobs[3].name].step, runs[jobs[3].name].steps) == (150, 400)


def test_a_result_comes_before_a_lock_and_a_lock_before_a_failure():
    job, other = planned("0-1")
    note_failure(begun(job), "hung", 1)
    with holding(Path(job.path)):
        assert read_run(Path(job.path)).state == "running"
    assert read_run(Path(job.path)).state == "failed"
    begun(other)
    with holding(ended(Path(other.path))):  # such as one whose test split is scored again
        assert read_run(Path(other.path)).state == "done"


def test_time_left_is_told_by_the_pace_since_the_run_was_resumed():
    path = begun(planned()[0], 200)
    (path / "train.log").write_text("step 100\nresumed after step 100\nstep 200\n")
    (path / "env.json").write_text("[]")
    now = time.time()
    os.utime(path / "env.json", (now - 50, now - 50))
    os.utime(path / "metrics.csv", (now, now))
    with holding(path):
        assert read_run(path).left == pytest.approx(100, abs=5)  # 100 steps in 50 s; 200 are left
        lines = status(Path("results"), "study")
    assert "step 200 of 400, about 2 min of training left" in next(line for line in lines if "step 200" in line)


def test_a_status_far_into_a_result_is_found():
    path = ended(Path("results/study/copying-copy/lstm/s0-00000000"))
    made = json.loads((path / "result.json").read_text())
    made = {"data": {"note": "x" * 9000}} | made | {"status": "diverged"}
    (path / "result.json").write_text(json.dumps(made, indent=1))
    assert read_run(path).state == "diverged"


def test_a_run_that_failed_before_it_had_a_config_is_told_and_found(capsys):
    job = planned()[0]
    note_failure(Path(job.path), "refused: see its log", 1)
    assert "refused: see its log" in "\n".join(status(Path("results"), "study"))
    assert find_run(Path("results"), job.name) == Path(job.path)
    assert tfstudy("logs", job.name) == 0
    assert capsys.readouterr().out.endswith("given up: refused: see its log\n")
    assert tfstudy("retry", "study") == 1
    assert "it failed before it had a config.yaml" in capsys.readouterr().out


def test_a_study_is_told_by_experiment_and_architecture_with_what_to_do(capsys):
    of_all_kinds()
    assert tfstudy("status", "study") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[1:] == ["architecture", "done", "diverged", "running", "failed", "interrupted", "waiting"]
    assert lines[1].split() == ["copying-copy", "lstm", "1", "1", ".", "1", "1", "3"]
    assert lines[2].split() == ["all", "1", "1", ".", "1", "1", "3"]
    assert "`tfstudy retry study` makes the 2 failed and interrupted again" in lines
    assert any(line.startswith("2 of 7 runs have ended, 2 of them in the last hour; at that pace") for line in lines)


def test_without_a_name_each_study_has_a_line(capsys):
    of_all_kinds()
    ended(Path("results/other/copying-copy/lstm/s0-00000000"))
    assert tfstudy("status") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [["other", "1", *["."] * 5, "1"], ["study", "1", "1", ".", "1", "1", "3", "2"]]
    assert tfstudy("status", "--watch") == 0  # once, since this is no terminal


def test_the_plan_of_the_same_configs_is_written_over():
    jobs = planned("0-1")
    job_list.keep_plan(jobs)
    job_list.keep_plan([job._replace(path=job.path[:-8] + "ffffffff", preset="small") for job in jobs])
    assert set(plans(Path("results/study")).values()) == {"small"}
    assert [run.path.name for run in runs_of(Path("results/study"))] == ["s0-ffffffff", "s1-ffffffff"]
    next(Path("results/study/.plans").iterdir()).write_text("{")
    assert runs_of(Path("results/study")) == []


def test_status_of_a_thousand_runs_takes_less_than_a_second_and_no_torch():
    for number in range(1000):
        ended(Path(f"results/study/copying-copy/lstm/s{number}-{number:08x}"), padding="x" * 30_000)
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom tfstudy.report.status import status\n"
        "began = time.process_time()\nlines = status(Path('results'), 'study')\n"
        "print(time.process_time() - began, [name for name in ('torch', 'lightning') if name in sys.modules], lines[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, rest = done.stdout.split(maxsplit=1)
    assert float(seconds) < 1
    assert rest.split() == ["[]", "copying-copy", "lstm", "1000", *["."] * 5]


# Folders and locks


def test_what_lies_in_a_run_or_was_set_aside_is_no_run():
    path = ended(Path("results/study/copying-copy/lstm/s0-00000000"))
    ended(path / "logs/copying-copy/lstm/s0-11111111")
    ended(path.with_name("s0-00000000.old-1"))
    ended(Path("results/study/.hidden/copying-copy/lstm/s0-22222222"))
    assert list(find_runs(Path("results"))) == [path]


def test_looking_at_a_lock_neither_takes_nor_makes_it(tmp_path):
    assert not held(tmp_path)
    assert not (tmp_path / ".lock").exists()
    (tmp_path / ".lock").touch()
    with (tmp_path / ".lock").open("rb") as looker:
        fcntl.flock(looker, fcntl.LOCK_SH)
        assert not held(tmp_path), "another who looks is not one who works"


def test_a_run_can_begin_while_somebody_looks_at_its_lock(monkeypatch):
    from tfstudy.config.resolve import resolve
    from tfstudy.runs.identity import identify

    config = resolve(CONFIG)
    path = Path("run")
    path.mkdir()
    with (path / ".lock").open("w+") as looker:
        fcntl.flock(looker, fcntl.LOCK_SH)
        monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(looker, fcntl.LOCK_UN))
        with open_record(path, config, identify(config, "", {})):
            assert held(path)
            monkeypatch.setattr("time.sleep", lambda _: None)
            with pytest.raises(BusyError), open_record(path, config, identify(config, "", {})):
                pass


# Mistakes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["status", "stduy"], "unknown study 'stduy'; expected one of: study; did you mean 'study'?"),
        (["retry", "stduy"], "did you mean 'study'?"),
        (["status", "study", "--results", "nowhere"], "there is no study in nowhere"),
        (["logs", "s0-00000001"], "did you mean 's0-00000000'?"),
        (["why", "zzz"], "no run 'zzz'"),
        (["diff", "00000000", "zzz"], "no run 'zzz'"),
    ],
)
def test_a_mistake_is_one_line_with_exit_code_2(words, message, capsys):
    ended(Path("results/study/copying-copy/lstm/s0-00000000"))
    assert tfstudy(*words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


# logs


def test_logs_tell_the_end_and_the_reason(capsys):
    path = begun(planned()[0])
    (path / "train.log").write_text("".join(f"line {i}\n" for i in range(50)))
    note_failure(path, "out of memory", 1)
    assert tfstudy("logs", path, "--lines", "2", "--follow") == 0
    assert capsys.readouterr().out == "line 48\nline 49\ngiven up: out of memory\n"


def test_following_a_log_ends_with_the_process_that_makes_the_run():
    path = begun(planned()[0])
    (path / "train.log").write_text("old\n")
    with holding(path):
        words = followed(path, 4, every=0.01)
        with (path / "train.log").open("a") as log:
            log.write("new\n")
        assert next(words) == "new\n"
    (path / "train.log").open("a").close()
    assert list(words) == []


# retry


def test_retry_tells_what_it_makes_and_leaves_the_rest(capsys):
    jobs = of_all_kinds()
    assert tfstudy("retry", "study", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"again:   {jobs[2].name}: out of memory (tried 2 times)",
        f"again:   {jobs[3].name}: interrupted after step 150 of 400",
    ]
    ended(Path("results/done/copying-copy/lstm/s0-00000000"))
    capsys.readouterr()
    assert tfstudy("retry", "done") == 0
    assert "no run has failed or was interrupted" in capsys.readouterr().out


def test_a_run_goes_on_with_its_preset_and_a_changed_one_is_skipped():
    jobs = [job._replace(preset="paper") for job in planned("0-3")]
    job_list.keep_plan(jobs[:1])
    for job in jobs:
        begun(job)
    text = (Path(jobs[1].path) / "config.yaml").read_text()
    (Path(jobs[1].path) / "config.yaml").write_text(text.replace("steps: 400", "steps: 500"))
    (Path(jobs[2].path) / "env.json").write_text(json.dumps([{"arguments": ["tune", "copying"]}]))
    (Path(jobs[3].path) / "config.yaml").write_text(text.replace("steps: 400", "stesp: 400"))
    made, skipped = again(runs_of(Path("results/study")), Path("results"), "study", jobs[0])
    assert made == [jobs[0]]
    assert "would be another run" in skipped[jobs[1].name]
    assert "trial of tuning" in skipped[jobs[2].name]
    assert "did you mean 'train.steps'?" in skipped[jobs[3].name]


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["run", "scan", "--preset", "lake-2018"], {"preset": "lake-2018", "tuning": False}),
        (["run", "scan", "--preset=lake-2018"], {"preset": "lake-2018", "tuning": False}),
        (["grid", "scan", "--preset", "a,b"], {"tuning": False}),
        ([json.dumps({"path": "x", "preset": "p", "tuning": True})], {"preset": "p", "tuning": True}),
        ([], {"tuning": False}),
    ],
)
def test_the_preset_is_read_off_the_command_that_began_the_run(words, made, tmp_path):
    (tmp_path / "env.json").write_text(json.dumps([{"arguments": ["run", "--preset", "old"]}, {"arguments": words}]))
    assert how_made(tmp_path) == made


# why and diff, on runs that were made


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The results of two runs that differ in their seed and dimension."""
    results = tmp_path_factory.mktemp("made") / "results"
    few = ["--set", "data.examples=60", "--set", "data.held_out=10", "--arch", "lstm", "--accelerator", "cpu"]
    for seed, dim in ((0, 8), (1, 16)):
        train = ["--set", "train.steps=2", "--set", "train.warmup_steps=1", "--set", f"model.dim={dim}"]
        assert tfstudy("run", "copying", *few, *train, "--seed", str(seed), "--results", results) == 0
    return results


def copied(made: Path) -> tuple[Path, Path]:
    import shutil

    shutil.copytree(made, "results")
    first, second = find_runs(Path("results"))
    return first, second


def edit(path: Path, change) -> None:
    environments = json.loads((path / "env.json").read_text())
    change(environments[-1])
    (path / "env.json").write_text(json.dumps(environments))


def why(path: Path, capsys) -> str:
    capsys.readouterr()
    assert tfstudy("why", path) == 0
    return capsys.readouterr().out


def test_a_run_just_made_is_up_to_date(made, capsys):
    path, _ = copied(made)
    assert why(path, capsys).splitlines() == [
        str(path),
        "  finished",
        "up to date: its config, its data and the code are those of now",
    ]


def test_why_names_what_has_changed(made, capsys):
    path, _ = copied(made)
    edit(path, lambda env: env["syntax_trees"].update({"tfstudy.models.lstm": "0", "tfstudy.models.cnn": "0"}))
    text = why(path, capsys)
    assert "up to date by its hash" in text
    assert "code: tfstudy.models.lstm has changed since, though no version was raised" in text
    assert "tfstudy.models.cnn" not in text, "another architecture does not decide its numbers"
    edit(path, lambda env: env["code_versions"].update(training=0) or env.update(data="0" * 64))
    text = why(path, capsys)
    assert "not up to date" in text
    assert "version of the training: 0 then, " in text
    assert re.search(r"data: their content was 00000000, but is \w{8}", text)


def test_why_tells_an_edited_config_and_a_key_that_there_is_not(made, capsys):
    path, _ = copied(made)
    text = (path / "config.yaml").read_text()
    (path / "config.yaml").write_text(text.replace("seed: 0\nsmoke", "seed: 5\nsmoke"))
    assert "config: seed was 0, but is 5" in why(path, capsys)
    (path / "config.yaml").write_text(text.replace("dim: 8", "dim: 9"))
    assert "config.yaml was edited after the run began" in why(path, capsys)
    (path / "config.yaml").write_text(text.replace("  dim: 8\n", ""))
    assert "keys that config.yaml does not have and that now take their default: model.dim" in why(path, capsys)
    (path / "config.yaml").write_text(text.replace("dim: 8", "dmi: 8"))
    assert "did you mean 'model.dim'?" in why(path, capsys)


def test_why_tells_what_is_unfinished_or_failed(made, capsys):
    path, _ = copied(made)
    (path / "result.json").unlink()
    assert "interrupted at step 2 of 2; `tfstudy retry`" in why(path, capsys)
    note_failure(path, "out of memory", 2)
    assert "failed at step 2 of 2: out of memory (tried 2 times)" in why(path, capsys)
    assert failure(path) == "out of memory (tried 2 times)"


def test_diff_tells_keys_environment_and_metrics_in_points(made, capsys):
    first, second = copied(made)
    edit(second, lambda env: env.update(threads=64))
    capsys.readouterr()
    assert tfstudy("diff", first, second) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["model.dim", "8", "16"] in lines
    assert ["seed", "0", "1"] in lines
    assert ["threads", lines[lines.index(["environment:"]) + 1][1], "64"] in lines
    assert ["data:", "the", "same"] in lines
    [row] = [line for line in lines if line[:3] == ["test", "exact", "match"]]
    assert float(row[5]) == pytest.approx(float(row[4]) - float(row[3]), abs=0.11)


def test_diff_of_an_unfinished_run_tells_all_but_metrics(made, capsys):
    first, second = copied(made)
    (second / "result.json").unlink()
    capsys.readouterr()
    assert tfstudy("diff", first, second) == 0
    out = capsys.readouterr().out
    assert "model.dim" in out
    assert f"metrics: not compared, since {second} is not a finished run" in out


# The table of a grid


class Idle(Executor):
    """Two slots, in which nothing runs."""

    at_once = 2

    def room(self, job, alone):
        return True

    def start(self, job, alone):
        raise AssertionError

    def wait(self, seconds):
        return []

    def stop(self):
        raise AssertionError


def test_a_line_for_every_run_that_ended_where_there_is_no_terminal():
    jobs, lines = planned("0-2"), []
    ended(Path(jobs[0].path))
    with Progress(jobs, dict.fromkeys((job.path for job in jobs), 100.0), Idle(), lines.append) as progress:
        for event in (Event(jobs[0], RUNNING), None, Event(jobs[0], FINISHED, 200.0)):
            progress(event)
        progress(Event(jobs[1], RETRYING, 3.0, "out of memory"))
        progress(Event(jobs[1], GIVEN_UP, 3.0, "out of memory"))
    assert lines == [
        f"[1/3] {jobs[0].name}: exact match 50.0 % in 3 min; about 3 min left",  # 2 of 200 s, 2 at once
        f"[1/3] {jobs[1].name} to be tried again: out of memory in 3 s",
        f"[2/3] {jobs[1].name} failed: out of memory in 3 s",
    ]


def test_time_left_is_that_of_the_longest_run_if_the_others_are_done_before():
    jobs = planned("0-2")
    seconds = dict(zip((job.path for job in jobs), (1000.0, 10.0, 10.0), strict=True))
    assert Progress(jobs, seconds, Idle()).seconds_left() == pytest.approx(1000)
    assert Progress(jobs, dict.fromkeys(seconds, 100.0), Idle()).seconds_left() == pytest.approx(150)
    assert Progress(jobs, {}, Idle()).seconds_left() is None


def test_time_left_of_many_runs_is_counted_as_that_of_few(monkeypatch):
    jobs, told = planned("0-19"), []
    ended(Path(jobs[0].path))
    for many in (1000, 1):
        monkeypatch.setattr("tfstudy.report.grid_progress.MANY", many)
        progress = Progress(jobs, dict.fromkeys((job.path for job in jobs[:10]), 100.0), Idle(), lambda _: None)
        progress(Event(jobs[0], FINISHED, 50.0))
        told.append(progress.seconds_left())
    assert told[0] == pytest.approx(told[1]) == (9 * 50 + 10 * 50) / 2


@pytest.mark.parametrize("how", [None, KeyboardInterrupt, RuntimeError])
def test_on_a_terminal_a_table_is_drawn_and_the_cursor_is_left_as_it_was(how):
    jobs, screen = planned("0-2"), io.StringIO()
    ended(Path(jobs[0].path))
    begun(jobs[1], 150)
    console = Console(file=screen, force_terminal=True, width=100, height=12, legacy_windows=False)
    try:
        with Progress(jobs, {}, Idle(), console=console) as progress:
            assert screen.getvalue().rfind("\x1b[?25h") > screen.getvalue().rfind("\x1b[?25l"), "also if killed"
            progress(Event(jobs[0], RUNNING))
            progress(Event(jobs[0], FINISHED, 2.0))
            progress._drawn = 0.0
            progress(Event(jobs[1], RUNNING))
            progress(Event(jobs[2], GIVEN_UP, 2.0, "hung"))
            if how:
                raise how
    except (KeyboardInterrupt, RuntimeError):
        pass
    text = screen.getvalue()
    assert "step 150 of 400" in text
    assert "cpu: load" in text
    assert f"[1/3] {jobs[0].name}: exact match 50.0 % in 2 s" in text
    assert f"{jobs[2].name} failed: hung" in text
    assert "1 done, 1 failed, 1 left of 3; about 2 s left; " in text
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")


def test_what_is_said_of_gpus_and_durations():
    assert gpu("0, 87, 1024, 81559") == "cuda 0: 87 % busy, 1.0 of 80 GiB"
    assert gpu("1, [N/A], [N/A], 81559") == "cuda 1: no figures"
    assert [duration(s) for s in (3, 720, 12000, 187200)] == ["3 s", "12 min", "3 h 20 min", "2 d 4 h"]


def test_two_runs_of_one_name_are_told():
    for study in ("a", "b"):
        ended(Path(f"results/{study}/copying-copy/lstm/s0-00000000"))
    with pytest.raises(UserError, match="is the start of 2 runs"):
        find_run(Path("results"), "copying-copy/lstm/s0-00000000")
    assert find_run(Path("results"), "b/copying-copy/lstm/s0-00000000").parts[1] == "b"
