"""Which records are believed: broken, partial, foreign, doubled and contradictory ones are named and left out."""

from pathlib import Path

import pytest

import tfstudy
from tests.example_records import edit_result, put, result, write
from tfstudy.analysis.frame import read_study
from tfstudy.errors import UserError


def reasons(study: Path) -> list[str]:
    return [reason for _, reason in read_study(study).left_out]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"metrics": {"exact_match": 1.5}}, "$.splits[...].metrics[...]"),
        ({"metrics": {"exact_match": -0.1}}, ">= 0.0"),
        ({"n": -1}, ">= 0"),
        ({"mean_over_lengths": {"token_accuracy": 55.0}}, "mean_over_lengths"),
    ],
)
def test_impossible_values_are_reported(tmp_path, part, message):
    study = write(tmp_path / "study", result(0))
    edit_result(next(study.glob("*/*/s*")), splits={"test": result(0)["splits"]["test"] | part})
    [reason] = reasons(study)
    assert message in reason


@pytest.mark.parametrize("config", ["- a\n", "task: [\n", "task: 1\nscan\n"])
def test_a_run_without_a_config_is_left_out_and_the_others_are_read(tmp_path, config):
    study = write(tmp_path / "study", result(0), result(0, experiment="other", run="ab"))
    put(next(study.glob("*/*/s0-ab")), "config.yaml", config)
    assert reasons(study) == ["config.yaml is unreadable"]
    assert len(read_study(study).runs) == 1


def test_copies_count_once_and_contradictory_records_not_at_all(tmp_path):
    write(tmp_path / "a", result(0, 0.5), result(1, 0.6))
    write(tmp_path / "b", result(0, 0.7), result(1, 0.6))
    found = read_study(tmp_path)
    assert [(run.result.seed, run.path.parts[-4]) for run in found.runs] == [(1, "a")]
    contradictory = "several records of this run, with different results"
    assert sorted(reasons(tmp_path)) == ["copy of another run", contradictory, contradictory]


def test_the_frame_has_a_row_for_each_test_set_names_what_is_left_out_and_has_validation_on_request(tmp_path):
    test = result(0, 0.25)["splits"]["test"]
    validation = result(0, 1.0)["splits"]["test"] | {"role": "validation"}
    splits = {"validation": validation, "test": test}
    study = write(tmp_path / "study", result(0, splits=splits), result(1, smoke=True))
    frame = tfstudy.results(study)
    [row] = frame.to_dict("records")
    assert (row["exact_match"], row["scored_on"], row["role"], row["model.dim"]) == (0.25, "test", "test", "e")
    assert row["study"] == "study"
    assert list(frame.attrs["left_out"].values()) == ["smoke run"]
    both = tfstudy.results(study, roles=("test", "validation"))
    assert both.set_index("role").exact_match.to_dict() == {"validation": 1.0, "test": 0.25}
    with pytest.raises(UserError, match=r"'tests'.*did you mean 'test'"):
        tfstudy.results(study, roles=("tests",))
    with pytest.raises(UserError, match="unknown study"):
        tfstudy.results(tmp_path / "nowhere")
