"""The settings that distinguish conditions with the same names."""

import json

import yaml

from tests.example_claims import values
from tests.example_records import ENVIRONMENT
from tfstudy.analysis.collection import read_study
from tfstudy.analysis.conditions import conditions


def record(study, name, config, settings):
    """Give the runs of an experiment a config, and the settings in it that are not defaults."""
    for path in study.glob(f"*/*/s*-{name}*"):
        (path / "config.yaml").write_text(yaml.safe_dump({"train": config}))
        (path / "env.json").write_text(json.dumps([ENVIRONMENT | {"settings": {"train": settings}}]))


def test_a_setting_that_an_older_run_does_not_know_distinguishes_only_if_it_is_not_the_default(tmp_path):
    for name, share in (("old", 0.5), ("new", 0.6)):
        values(tmp_path, "lstm", share, share, name=name)
    record(tmp_path, "old", {"steps": 10}, {"steps": 10})
    record(tmp_path, "new", {"steps": 20, "epsilon": 1, "sample": 5}, {"steps": 20, "sample": 5})
    labels = {condition.settings for condition in conditions(read_study(tmp_path).runs)}
    assert labels == {"train.steps=10", "train.sample=5 train.steps=20"}
