"""Runs are found by folder, hash, or study, architecture and seed."""

from pathlib import Path

import pytest
import torch

from tests.commands import tfstudy
from tests.example_study import finish_run
from tests.example_task import TASK, added
from tests.interrupted_runs import command, folder
from tfstudy import tasks
from tfstudy.errors import UserError
from tfstudy.runs.files import utc_now
from tfstudy.runs.find import find_run, find_runs, find_study, study_folder
from tfstudy.runs.store import read_environments, read_result
from tfstudy.runs.writer import archive


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def started(path: Path, finished: bool = False) -> Path:
    path.mkdir(parents=True)
    (path / "config.yaml").write_text("{}")
    return finish_run(path) if finished else path


def test_a_link_to_a_study_is_followed_but_none_within_a_study(tmp_path):
    run = started(tmp_path / "elsewhere/scan-length/lstm/s0-aaaa0000")
    results = tmp_path / "results"
    (results / "own" / "scan-length").mkdir(parents=True)
    (results / "linked").symlink_to(tmp_path / "elsewhere")
    (results / "own" / "scan-length" / "lstm").symlink_to(run.parent)
    (results / "own" / "back").symlink_to(results)
    (run.parent / "up").symlink_to(tmp_path)
    (results / "missing").symlink_to(tmp_path / "nowhere")
    (results / "self").symlink_to(results / "self")
    found = [path.relative_to(results) for path in find_runs(results)]
    assert found == [Path("linked/scan-length/lstm", run.name)]


def test_a_run_is_found_by_its_folder_or_the_start_of_its_hash(tmp_path):
    one = started(tmp_path / "r/study/scan-simple/lstm/s0-abc12345")
    two = started(tmp_path / "r/study/scan-simple/lstm/s1-abd12345")
    assert find_run(tmp_path / "r", str(one)) == one
    assert find_run(tmp_path / "r", "abc") == one
    assert find_run(tmp_path / "r", "abd12345") == two
    assert find_run(tmp_path / "r", "study/abd") == two
    assert find_run(tmp_path / "r", "scan-simple/lstm/s1-abd12345") == two


def test_a_run_is_found_by_study_architecture_and_seed(tmp_path):
    lstm = started(tmp_path / "one/scan-length/lstm/s3-aaaa0000")
    cnn = started(tmp_path / "one/scan-length/cnn/s3-bbbb0000")
    simple = started(tmp_path / "two/scan-simple/lstm/s3-cccc0000")
    for text in ("one/lstm/s3", "one/lstm/3", "scan-length/lstm/3", "one/scan-length/lstm/s3", "one/lstm"):
        assert find_run(tmp_path, text) == lstm
    assert find_run(tmp_path, "cnn/s3") == cnn
    assert find_run(tmp_path, "two/lstm/3") == simple
    started(tmp_path / "one/scan-length/lstm/s1-3bbb0000")
    assert find_run(tmp_path, "one/lstm/3") == lstm, "the seed comes before a hash with the same digit"
    for text in ("lstm/s4", "two/cnn/s3", "one/scan-simple/lstm/s3", "", "/"):
        with pytest.raises(UserError, match="no run"):
            find_run(tmp_path, text)


def test_a_study_is_found_by_its_name_or_its_path(tmp_path):
    started(tmp_path / "results/one/scan-length/lstm/s0-aaaa0000")
    for study in ("one", tmp_path / "results/one", "results/one"):
        assert study_folder(study, tmp_path / "results").samefile(tmp_path / "results/one")
    assert (
        study_folder("", tmp_path / "results") == study_folder("results", tmp_path / "results") == tmp_path / "results"
    )
    with pytest.raises(UserError, match="did you mean 'one'"):
        study_folder("onn", tmp_path / "results")


def test_several_studies_are_listed_to_choose_one(tmp_path):
    for study in ("one", "two"):
        assert study_folder("", tmp_path) == tmp_path
        started(tmp_path / study / "scan-length/lstm/s0-aaaa0000")
        assert study_folder(study, tmp_path) == tmp_path / study
    assert study_folder(tmp_path, tmp_path) == tmp_path
    with pytest.raises(UserError, match="name a study: one, two; or"):
        study_folder("", tmp_path)


def test_copies_of_a_run_in_two_studies_are_one_run_and_the_finished_one_is_found(tmp_path):
    first = started(tmp_path / "a/scan-length/lstm/s0-aaaa0000")
    second = started(tmp_path / "b/scan-length/lstm/s0-aaaa0000", finished=True)
    assert find_run(tmp_path, "aaaa") == second
    assert find_run(tmp_path, "scan-length/lstm/s0") == second
    assert find_run(tmp_path, "a/aaaa") == first
    finish_run(first)
    assert find_run(tmp_path, "aaaa") == first
    (second / "weights.safetensors").touch()
    assert find_run(tmp_path, "aaaa") == second, "it has weights"
    (second / "result.json").write_text("{")
    assert find_run(tmp_path, "aaaa") == first


def test_several_runs_or_none_are_one_message_with_the_names(tmp_path):
    started(tmp_path / "one/scan-length/lstm/s0-abc12345")
    started(tmp_path / "one/scan-length/lstm/s1-abd12345")
    with pytest.raises(UserError, match=r"'ab' .*2 runs.*\n  one/lstm/s0\n  one/lstm/s1$"):
        find_run(tmp_path, "ab")
    with pytest.raises(UserError, match=r"no run 'one/lstn/s1'.*did you mean 'one/lstm/s1'"):
        find_run(tmp_path, "one/lstn/s1")
    with pytest.raises(UserError, match=r"no study or run 'onne' .*; did you mean 'one'"):
        find_run(tmp_path, "onne", ["one"])
    with pytest.raises(UserError, match="there is no folder of results at"):
        find_run(tmp_path / "nowhere", "abc")


def test_every_listed_name_of_several_matching_runs_names_one_of_them(tmp_path):
    for run in ("scan-length/lstm/s0-abc12345", "scan-length/lstm/s0-abd12345", "scan-simple/lstm/s0-aaaa0000"):
        started(tmp_path / "one" / run)
    with pytest.raises(UserError) as error:
        find_run(tmp_path, "one/lstm")
    names = [line.strip() for line in str(error.value).splitlines()[1:]]
    assert names == ["scan-length/lstm/s0-abc12345", "scan-length/lstm/s0-abd12345", "one/scan-simple/lstm"]
    assert len({find_run(tmp_path, name) for name in names}) == 3


@pytest.mark.parametrize("path", ["results/one/scan-length/lstm", "results/one/", "./results/one/scan-length/"])
def test_the_path_of_a_folder_names_the_runs_in_it(path, tmp_path):
    run = started(tmp_path / "results/one/scan-length/lstm/s0-abc12345")
    started(tmp_path / "results/two/scan-length/lstm/s1-abd12345")
    for text in (path, tmp_path / path):
        assert find_run(Path("results"), str(text)) == Path("results") / run.relative_to(tmp_path / "results")


def test_a_study_is_found_by_the_path_of_its_folder_but_not_of_one_within_it(tmp_path):
    started(tmp_path / "results/one/scan-length/lstm/s0-abc12345")
    for text in ("one/", "results/one", "./results/one/", f"{tmp_path}/results/one"):
        assert find_study(Path("results"), text) == Path("results/one")
    started(tmp_path / "results/s0-abc12345")
    with pytest.raises(UserError, match="s0-abc12345 is a run, not a study"):
        find_study(tmp_path / "results", "s0-abc12345")
    with pytest.raises(UserError, match="results/one/scan-length/ is a folder of the study one"):
        find_study(Path("results"), "results/one/scan-length/")


def test_archived_runs_are_not_listed(tmp_path):
    run = started(tmp_path / "study/scan-simple/lstm/s0-abc12345")
    archived = archive(run)
    assert archived.name == "s0-abc12345.old-1"
    assert (archived / "config.yaml").exists()
    assert list(find_runs(tmp_path)) == []
    (run / "config.yaml").write_text("{}")
    assert list(find_runs(tmp_path)) == [run]
    assert archive(run).name == "s0-abc12345.old-2"


def test_smoke_runs_are_kept_out_of_the_results(capsys):
    assert tfstudy(*command("lstm", "--smoke")) == 0
    assert [text.count("SMOKE RUN") for text in capsys.readouterr()] == [1, 1], "over the table and at the start"
    assert not Path("results").exists()
    [path] = find_runs(Path("results-smoke"))
    assert read_result(path).smoke
    assert tfstudy(*command("lstm", "--smoke")) == 0
    assert "SMOKE RUN" in capsys.readouterr().out


def test_a_finished_run_records_its_environment_and_when_it_ran():
    before = utc_now()
    assert tfstudy(*command()) == 0
    result = read_result(folder())
    [environment] = read_environments(folder())
    assert folder().name == f"s0-{result.run[:8]}"
    assert result.status == "finished"
    assert result.step == 40
    assert result.overlap == {"validation": 0, "test": 0}
    assert result.parameters > 0
    assert before <= result.started <= result.finished <= utc_now()
    assert environment.versions["torch"] == torch.__version__
    assert environment.code_versions.keys() == {"task", "model", "training", "evaluation"}
    assert "tfstudy.models.lstm" in environment.syntax_trees
