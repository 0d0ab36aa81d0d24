"""What was studied, as a report opens with it: the grid's words only where the grid made the study, and the facts."""

import json

import pytest

from tests.example_records import ENVIRONMENT, result, rival, write
from tfstudy.analysis.collection import read_finished_runs
from tfstudy.analysis.conditions import conditions
from tfstudy.report.study_summary import grid_about, summarize_study


def summary(study):
    found = read_finished_runs(study)
    return summarize_study(found, conditions(found.runs))


def commands(study, *words):
    for run in study.glob("*/*/s*"):
        (run / "env.json").write_text(json.dumps([ENVIRONMENT | {"arguments": list(words)}]))
    return study


def test_the_facts_are_those_of_the_records(tmp_path):
    dates = {"started": "2026-01-30T23:00:00Z", "finished": "2026-02-01T01:00:00Z", "step": 3000}
    made = [result(seed, 0.5, train_examples=16140, **dates) for seed in range(3)] + [rival(0, 0.2)]
    assert summary(write(tmp_path / "study", *made)) == [
        "4 runs of scan; split scheme length; 2 architectures (cnn and lstm) of 1k parameters; 1 to 3 seeds per "
        "condition; 3,000 training steps; 16,140 training examples; run from 2026-01-30 to 2026-02-01. Results are "
        "exact match on test sets, from 0 to 100."
    ]


def test_what_older_records_lack_is_left_out(tmp_path):
    [text] = summary(write(tmp_path / "study", result(0, parameters=0)))
    assert text == (
        "1 run of scan; split scheme length; architecture lstm; 1 seed per condition. Results are exact match on test "
        "sets, from 0 to 100."
    )


def test_a_study_of_a_grid_has_its_words(tmp_path):
    study = commands(write(tmp_path / "mine", result(0)), "grid", "scan", "--tier", "quick")
    assert summary(study)[0] == "Grid scan: Four SCAN splits on which architectures differ, with presets of equal size."


@pytest.mark.parametrize("words", [("grid", "no-such"), ("grid", "--task", "scan"), ("run", "scan"), ("grid",), ()])
def test_a_study_of_no_known_grid_has_no_words(tmp_path, words):
    assert grid_about(read_finished_runs(commands(write(tmp_path / "mine", result(0)), *words))) == ""


def test_a_folder_with_the_name_of_a_grid_counts_only_with_its_split_schemes_and_architectures(tmp_path):
    study = write(tmp_path / "scan", result(0))
    assert grid_about(read_finished_runs(study)) == ""
    splits = ("length", "addprim_jump", "addprim_turn_left", "template_around_right")
    made = [(split, arch) for split in splits for arch in ("lstm", "cnn", "transformer")]
    names = [f"{split}{arch}" for split, arch in made]
    records = [
        result(0, split=split, arch=arch, experiment=name, run=name)
        for (split, arch), name in zip(made, names, strict=True)
    ]
    whole = write(tmp_path / "whole" / "scan", *records)
    assert grid_about(read_finished_runs(whole)).startswith("Grid scan: Four SCAN splits")
