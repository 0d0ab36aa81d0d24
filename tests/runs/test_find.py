"""Runs are found by their folder, the start of their hash, or parts of their path in order; studies by name or path."""

from pathlib import Path

import pytest

from tests.example_study import finish_run
from tfstudy.errors import UserError
from tfstudy.runs.files import archive_name
from tfstudy.runs.find import find_run, find_runs, find_study, study_folder

pytestmark = pytest.mark.usefixtures("empty_folder")
RESULTS = Path("results")


def started(path: str) -> Path:
    run = RESULTS / path
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("{}")
    return run


def found(text: object) -> Path:
    return find_run(RESULTS, str(text))


def test_a_link_to_a_study_is_followed_but_none_within_a_study(tmp_path):
    run = started("../elsewhere/scan-length/lstm/s0-aaaa0000")
    (RESULTS / "own" / "scan-length").mkdir(parents=True)
    for link, target in {
        "linked": "elsewhere",
        "own/scan-length/lstm": "elsewhere/scan-length/lstm",
        "own/back": "results",
        "../elsewhere/scan-length/lstm/up": "",
        "missing": "nowhere",
        "self": "results/self",
    }.items():
        (RESULTS / link).symlink_to(tmp_path / target)
    assert list(find_runs(RESULTS)) == [RESULTS / "linked/scan-length/lstm" / run.name]


def test_a_run_is_found_by_its_folder_its_hash_or_parts_of_its_path_in_order(tmp_path):
    lstm, cnn = started("one/scan-length/lstm/s3-aaaa0000"), started("one/scan-length/cnn/s3-bbbb0000")
    simple = started("two/scan-simple/lstm/s3-cccc0000")
    names = "aaaa", "one/aaaa", "scan-length/lstm/s3-aaaa0000", "one/lstm/s3", "one/lstm/3", "one/scan-length/lstm"
    assert found(tmp_path / lstm) == tmp_path / lstm
    for text in (lstm, *names, "results/one/scan-length/lstm", "./results/one/scan-length/lstm/"):
        assert found(text) == lstm, text
    assert (found("cnn/s3"), found("two"), found(tmp_path / "results/two/scan-simple")) == (cnn, simple, simple)
    started("one/scan-length/lstm/s1-3bbb0000")
    assert found("one/lstm/3") == lstm, "the seed comes before a hash with the same digit"
    for text in ("lstm/s4", "two/cnn/s3", "lstm/one", "", "/"):
        with pytest.raises(UserError, match="no run"):
            found(text)


def test_copies_of_a_run_in_two_studies_are_one_run_and_the_finished_one_with_weights_is_found():
    first, second = started("a/scan-length/lstm/s0-aaaa0000"), started("b/scan-length/lstm/s0-aaaa0000")
    finish_run(second)
    assert found("aaaa") == found("scan-length/lstm/s0") == second
    assert found("a/aaaa") == first
    finish_run(first)
    assert found("aaaa") == first
    (second / "weights.safetensors").touch()
    assert found("aaaa") == second, "it has weights"
    (second / "result.json").write_text("{")
    assert found("aaaa") == first


def test_several_runs_are_listed_with_names_that_name_one_of_them():
    for run in ("scan-length/lstm/s0-abc12345", "scan-length/lstm/s0-abd12345", "scan-simple/lstm/s0-aaaa0000"):
        started(f"one/{run}")
    with pytest.raises(UserError, match=r"'one/lstm' matches 3 runs; name one of them") as error:
        found("one/lstm")
    names = [line.strip() for line in str(error.value).splitlines()[1:]]
    assert [found(name) for name in names] == [RESULTS / name for name in names]
    assert len(names) == 3
    with pytest.raises(UserError, match=r"no run 'one/lstn'.*did you mean 'one/lstm'"):
        found("one/lstn")
    with pytest.raises(UserError, match=r"no study or run 'onne' .*; did you mean 'one'"):
        find_run(RESULTS, "onne", ["one"])
    with pytest.raises(UserError, match="there is no folder of results at"):
        find_run(Path("nowhere"), "abc")


def test_a_study_is_found_by_its_name_or_path_but_not_a_folder_within_it(tmp_path):
    started("one/scan-length/lstm/s0-aaaa0000")
    for study in ("one", "one/", "results/one", "./results/one/", tmp_path / "results/one"):
        assert find_study(RESULTS, str(study)).samefile("results/one")
        assert study_folder(study, RESULTS).samefile("results/one")
    assert study_folder("", RESULTS) == study_folder("results", RESULTS) == RESULTS
    run = RESULTS / "one/scan-length/lstm/s0-aaaa0000"
    assert study_folder("", run) == run, "no study, and no traceback"
    started("two/scan-length/lstm/s0-aaaa0000")
    started("s0-abc12345")
    for text, message in {
        "": "name a study: one, two; or",
        "onn": "did you mean 'one'",
        "results/one/scan-length/": "results/one/scan-length/ is a folder of the study one",
        "s0-abc12345": "s0-abc12345 is a run, not a study",
    }.items():
        with pytest.raises(UserError, match=message):
            study_folder(text, RESULTS)


def test_archived_runs_are_not_listed():
    for number in (1, 2):
        run = started("study/scan-simple/lstm/s0-abc12345")
        assert list(find_runs(RESULTS)) == [run]
        assert run.rename(archive_name(run)).name == f"s0-abc12345.old-{number}"
