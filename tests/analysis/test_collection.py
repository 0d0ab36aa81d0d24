"""Which records are believed: broken, partial, foreign, doubled and contradictory ones are named and left out."""

import json
from pathlib import Path

import pytest

import tfstudy
from tasks.errors import UserError
from tests.example_records import result, write
from tfstudy.analysis.collection import read
from tfstudy.report.tables import table


def only(study: Path) -> Path:
    """The folder of a study's only run."""
    [path] = study.glob("*/*/s*")
    return path


def reasons(study: Path) -> list[str]:
    found = read(study)
    return [reason for _, reason in found.left_out]


def changed(study: Path, **more: object) -> list[str]:
    path = only(study) / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
    return reasons(study)


@pytest.fixture
def study(tmp_path):
    return write(tmp_path / "study", result(0))


def test_a_whole_record_is_read(study):
    found = read(study)
    assert (len(found.runs), found.left_out, found.told()) == (1, [], [])


def test_a_partial_run_is_named(study):
    (only(study) / "result.json").unlink()
    assert reasons(study) == ["not finished"]
    assert read(study).told() == [f"left out, not finished: {only(study).relative_to(study)}"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": 1}', b'{"format": 1, "run": 3}'])
def test_a_record_that_can_not_be_read_is_named(study, content):
    (only(study) / "result.json").write_bytes(content)
    [reason] = reasons(study)
    assert "its result is broken" in reason


def test_a_record_of_another_format_is_named(study):
    assert changed(study, format=2) == ["its result has format 2, but this version reads 1"]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"metrics": {"exact_match": 1.5}}, "$.splits[...].metrics[...]"),
        ({"metrics": {"exact_match": -0.1}}, ">= 0.0"),
        ({"n": -1}, ">= 0"),
        ({"mean_over_lengths": {"token_accuracy": 55.0}}, "mean_over_lengths"),
        ({"metrics": {"exact_match": 0.9}}, "outside of its interval"),
        ({"n": 0}, "without an example"),
        ({"metrics": {}}, "nothing is measured"),
    ],
)
def test_figures_that_no_run_can_have_are_named(study, part, said):
    [reason] = changed(study, splits={"test": result(0)["splits"]["test"] | part})
    assert said in reason


@pytest.mark.parametrize("more", [{"seed": 1}, {"run": "ab"}])
def test_a_record_of_another_run_is_named(study, more):
    [reason] = changed(study, **more)
    assert "of another run" in reason


@pytest.mark.parametrize("config", ["- a\n", "task: [\n", "task: 1\nscan\n", "just words"])
def test_a_run_without_a_config_is_named_and_the_others_are_read(tmp_path, config):
    study = write(tmp_path / "study", result(0), result(0, experiment="other", run="ab"))
    next(study.glob("*/*/s0-ab/config.yaml")).write_text(config)
    assert reasons(study) == ["its config.yaml can't be read"]
    assert len(read(study).runs) == 1


def test_broken_slices_are_one_message(tmp_path):
    part = result(0)["splits"]["test"] | {"slices": {"length": {"2": {"n": "x"}}}}
    study = write(tmp_path / "study", result(0, splits={"test": part}))
    with pytest.raises(UserError, match="broken in its slices"):
        table(study, by="length")


def test_a_config_of_another_run_is_named(study):
    (only(study) / "config.yaml").write_text("# tfstudy run ab\nseed: 0\n")
    assert reasons(study) == ["its config.yaml is of another run than its result"]


def test_copies_count_once(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / name, result(0))
    found = read(tmp_path)
    assert [run.path.parts[-4] for run in found.runs] == ["a"]
    assert [reason for _, reason in found.left_out] == ["a copy of a run that is there already"]


def test_of_contradictory_records_none_counts(tmp_path):
    write(tmp_path / "a", result(0, 0.5))
    write(tmp_path / "b", result(0, 0.6), result(1, 0.6))
    found = read(tmp_path)
    assert [run.result.seed for run in found.runs] == [1]
    assert {reason for _, reason in found.left_out} == {
        "the same experiment and seed is there several times, with other figures"
    }
    assert len(found.left_out) == 2


def test_the_frame_has_a_row_for_each_split_and_names_what_is_left_out(tmp_path):
    study = write(tmp_path / "study", result(0, 0.25), result(1, smoke=True))
    frame = tfstudy.results(study)
    [row] = frame.to_dict("records")
    assert (row["exact_match"], row["scored_on"], row["role"], row["model.dim"]) == (0.25, "test", "test", "e")
    assert row["study"] == "study"
    assert list(frame.attrs["left_out"].values()) == ["a smoke run"]


def test_a_folder_that_is_not_there_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match="there is no study"):
        tfstudy.results(tmp_path / "nowhere")
