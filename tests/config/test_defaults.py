"""A default can't change without raising a version, and a new key with a default changes no hash."""

import copy

from pydantic import Field

from tests.config.golden_defaults import current, read, violations
from tfstudy import models
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig, TrainConfig
from tfstudy.config.trees import short_key
from tfstudy.runs.identity import identify

TRAINING, LSTM = "tfstudy/training/version.py", "tfstudy/models/lstm.py"
TREE = {"task": "scan", "arch": "lstm", "model": {"hidden": 7}, "train": {"steps": 100}}
VERSIONS = {"task": 1, "model": 1, "training": 1, "evaluation": 1}


def test_no_default_changed_without_raising_its_version():
    assert violations(read(), current()) == []


def test_the_golden_file_lists_all_defaults_and_versions():
    found = {owner: entry for owner, entry in current().items() if owner in read() or not owner.startswith("tasks/")}
    assert read() == found, "a key or a version is new: run `python -m tests.config.golden_defaults`"


def test_a_new_key_with_a_default_needs_no_new_version_and_changes_no_hash():
    class WiderTrain(TrainConfig):
        patience: int = Field(0, description="new")

    class WiderModel(models.find("lstm").Config):
        gates: str = Field("all", description="new")

    class WiderRun(RunConfig):
        train: WiderTrain = Field(default_factory=WiderTrain, description="new")
        profile: bool = Field(False, description="new")

    old = resolve(TREE)
    sections = {name: getattr(old, name) for name in ("task", "data", "arch", "decode", "eval", "seed", "smoke")}

    def wider(**train: int) -> RunConfig:
        return WiderRun(**sections, model=WiderModel(**TREE["model"]), train=WiderTrain(**TREE["train"], **train))

    before = identify(old, "data", VERSIONS).hash
    assert identify(wider(), "data", VERSIONS).hash == before
    assert identify(wider(), "data", VERSIONS | {"instruments": 1}).hash == before
    assert identify(wider(patience=1), "data", VERSIONS).hash != before
    golden = copy.deepcopy(read())
    del golden[TRAINING]["defaults"]["train.beta2"]
    assert violations(golden, read()) == []


def test_a_short_key_names_one_setting_only():
    keys = {key for owner in current().values() for key in owner["defaults"]}
    short = [short_key(key) for key in keys]
    assert sorted(short) == sorted(set(short)), "add the word that several sections have to AMBIGUOUS"
    assert {key for key in keys if "." in key} & set(short) == {"data.seed", "eval.batch_size", "train.batch_size"}
