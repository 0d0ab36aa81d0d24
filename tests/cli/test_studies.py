"""`tfstudy status`: the state of runs as their folders have it, quickly; `table` and `check` as JSON."""

import csv
import json
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_records import result, write
from tests.example_study import finish_run, planned, running_elsewhere, runs_in_every_state, start_run
from tests.example_tables import text_of
from tfstudy.launchers.batch import save_plan
from tfstudy.report.progress import seconds_left
from tfstudy.report.progress import status as listing
from tfstudy.runs.find import find_run, read_plan, run_status, study_runs
from tfstudy.runs.store import open_run, write_failure


def status(name: str) -> list[str]:
    """The lines of a study."""
    return text_of(listing(Path("results"), Path("results") / name)).splitlines()


def test_a_result_comes_before_a_lock_and_a_lock_before_a_failure():
    job, other = planned("0-1")
    write_failure(start_run(job), "hung", 1)
    with running_elsewhere(Path(job.path)):
        assert run_status(open_run(Path(job.path))).state == "running"
    start_run(other)
    with running_elsewhere(finish_run(Path(other.path))):  # such as one that is evaluated again
        assert run_status(open_run(Path(other.path))).state == "finished"


def test_a_run_that_failed_before_it_had_a_config_is_listed_and_found(capsys):
    job = planned()[0]
    write_failure(Path(job.path), "refused: see its log", 1)
    (Path(job.path) / "train.log").write_text("".join(f"line {i}\n" for i in range(50)))
    assert "refused: see its log" in "\n".join(status("study"))
    assert find_run(Path("results"), job.name) == Path(job.path)
    assert tfstudy("result", job.name, "--log") == 0
    *log, reason = capsys.readouterr().out.splitlines()
    assert log[-20:] == [f"line {number}" for number in range(30, 50)]
    assert "refused: see its log" in reason


def test_a_damaged_run_has_to_be_moved_away_and_one_of_a_plugin_its_file():
    damaged, left = planned("0-1")
    (finish_run(Path(damaged.path)) / "result.json").write_text("{")
    assert status("study")[-1] == "1 run damaged: move its folder away and repeat its command"
    start_run(left._replace(path="results/study/mine-only/lstm/s1-12345678"))
    assert status("study")[-2].endswith("to run what is left: tfstudy grid --resume study --plugin FILE")
    start_run(left)
    assert "--plugin" in status("study")[-2]


def test_a_study_is_counted_by_experiment_and_architecture_with_what_to_do_next(capsys):
    jobs = runs_in_every_state()
    start_run(jobs[4], 200)
    states = ["finished", "diverged", "running", "failed", "interrupted", "pending"]
    with running_elsewhere(Path(jobs[4].path)):
        assert status("study")[0].split()[1:] == ["architecture", *states]
        runs = {run.name: run for run in study_runs(Path("results/study"))}
    assert [runs[job.name].state for job in jobs[:6]] == [*states[:2], "failed", "interrupted", "running", "pending"]
    assert "out of memory" in runs[jobs[2].name].reason
    assert (runs[jobs[3].name].step, runs[jobs[3].name].steps) == (150, 400)
    assert tfstudy("status", "study") == 0
    lines = capsys.readouterr().out.splitlines()
    states.remove("running")  # no run is
    assert lines[0].split()[1:] == ["architecture", *states]
    assert lines[1].split() == ["copying-copy", "lstm", "1", "1", "1", "2", "2"]
    assert lines[2].split() == ["all", "1", "1", "1", "2", "2"]
    assert lines[-1] == "nothing is running; to run what is left: tfstudy grid --resume study"
    assert lines[-2] == "results/study: 2 of 7 runs finished"
    assert tfstudy("status", "--format", "json") == 0
    [study] = json.loads(capsys.readouterr().out)
    assert study["counts"] == {"finished": 1, "diverged": 1, "running": 0, "failed": 1, "interrupted": 2, "pending": 2}
    assert tfstudy("status", "results/study", "--format", "json") == 0
    [named] = json.loads(capsys.readouterr().out)
    assert {run["name"]: run["state"] for run in named.pop("runs")}[jobs[2].name] == "failed"
    assert named == study


def test_the_time_for_pending_runs_is_that_which_finished_runs_recorded():
    jobs = planned("0-3")
    save_plan(jobs)
    assert seconds_left(study_runs(Path("results/study"))) is None
    finish_run(Path(jobs[0].path), train_seconds=80.0, evaluate_seconds=20.0)
    assert seconds_left(study_runs(Path("results/study"))) == pytest.approx(300)
    start_run(jobs[2], 100)  # interrupted after a quarter of its steps
    assert seconds_left(study_runs(Path("results/study"))) == pytest.approx(275)
    start_run(jobs[1], 200, seconds_per_step=0.1)
    with running_elsewhere(Path(jobs[1].path)):
        assert seconds_left(study_runs(Path("results/study"))) == pytest.approx(195, abs=2)
        assert "results/study: 1 of 4 runs finished; about 3 min left, 1 in parallel" in status("study")


def test_the_plan_of_the_same_configs_is_replaced():
    jobs = planned("0-1")
    save_plan(jobs)
    save_plan([job._replace(path=job.path[:-8] + "ffffffff") for job in planned("0-1", preset="small")])
    assert set(read_plan(Path("results/study")).runs.values()) == {"small"}
    assert [run.path.name for run in study_runs(Path("results/study"))] == ["s0-ffffffff", "s1-ffffffff"]
    next(Path("results/study/.plans").iterdir()).write_text("{")
    assert study_runs(Path("results/study")) == []


def test_each_run_is_a_row_of_a_table_and_a_check_is_a_json_document(capsys):
    write(Path("results/study"), result(0, 0.2), result(1, 0.4))
    assert tfstudy("table", "study", "--runs", "--format", "json") == 0
    assert [(one["seed"], one["exact_match"]) for one in json.loads(capsys.readouterr().out)] == [(0, 0.2), (1, 0.4)]
    assert tfstudy("table", "study", "--runs") == 0
    assert list(csv.DictReader(capsys.readouterr().out.splitlines()))[1]["exact_match"] == "0.4"
    assert tfstudy("table", "results/study", "--format", "json") == 0  # a path names the study
    Path("baseline.json").write_text(capsys.readouterr().out)
    assert tfstudy("check", "study", "--against", "baseline.json", "--format", "json") == 0
    [row] = json.loads(capsys.readouterr().out)["conditions"]
    assert (row["state"], row["current"]) == ("unchanged", row["baseline"])
