"""Defaults need a new version to change; presets resolve, and their networks are of one size."""

import copy
import json

from pydantic import Field

from tests.committed import ROOT
from tests.config.golden_defaults import PATH, current, violations
from tfstudy import models, tasks
from tfstudy.config.presets import preset, presets
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig, TrainConfig
from tfstudy.config.trees import merge, short_key
from tfstudy.models.base import parameter_count
from tfstudy.runs.find import find_runs
from tfstudy.runs.identity import identify
from tfstudy.runs.store import read_config

PRESETS = [(task, arch, name) for task in tasks.names() for name, archs in presets(task).items() for arch in archs]


def test_every_preset_resolves_and_says_what_it_is_about():
    for task, arch, name in PRESETS:
        tree = preset(task, arch, name)
        assert "about" not in tree
        assert presets(task)[name][arch]["about"]
        files = {"data": {"root": "x"}} if task == "pairs" else {}
        config = resolve(merge({"task": task, "arch": arch}, files, tree))
        train, validation_fraction = config.train, getattr(config.data, "validation_fraction", 1)
        assert train.warmup_steps <= train.steps, (task, arch, name)
        assert not validation_fraction or train.steps % train.validation_interval == 0, (task, arch, name)


def test_networks_of_a_preset_have_equal_parameters_within_five_per_cent():
    for task, name, vocabularies in (
        ("scan", "default", (17, 10)),
        ("translation", "default", (500, 500)),
        ("translation", "small", (2000, 2000)),
        ("translation", "small", (8000, 8000)),
        ("translation", "medium", (2000, 2000)),
    ):
        counts = {}
        for arch in presets(task)[name]:
            run = resolve({"task": task, "arch": arch, **preset(task, arch, name)})
            counts[arch] = parameter_count(models.find(arch)(run.model, *vocabularies))
        assert max(counts.values()) <= 1.05 * min(counts.values()), counts


def resolved(name, split="addprim_jump"):
    [arch] = presets("scan")[name]
    return resolve(merge(preset("scan", arch, name), {"task": "scan", "arch": arch, "data": {"split": split}}))


def test_the_committed_runs_on_jump_have_the_settings_of_the_preset():
    runs = list(find_runs(ROOT / "results/dessi-2019"))
    assert len(runs) == 10
    assert all(resolve(read_config(path)).model_copy(update={"seed": 0}) == resolved("dessi-2019") for path in runs)


GOLDEN = json.loads(PATH.read_text())
TREE = {"task": "scan", "arch": "lstm", "model": {"hidden": 7}, "train": {"steps": 100}}
VERSIONS = {"task": 1, "model": 1, "training": 1, "evaluation": 1}


def test_the_golden_file_has_all_defaults_and_none_changed_without_raising_its_version():
    assert violations(GOLDEN, current()) == []
    found = {owner: entry for owner, entry in current().items() if owner in GOLDEN or not owner.startswith("tasks/")}
    assert found == GOLDEN, "a key or a version is new: run `python -m tests.config.golden_defaults`"


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
    golden, changed = copy.deepcopy(GOLDEN), copy.deepcopy(GOLDEN)
    del golden["tfstudy/training/__init__.py"]["defaults"]["train.beta2"]
    assert violations(golden, GOLDEN) == []
    changed["tfstudy/training/__init__.py"]["defaults"]["train.beta2"] = 0.5
    assert "train.beta2: 0.98 -> 0.5: changing a default requires" in violations(GOLDEN, changed)[0]


def test_a_short_key_names_one_setting_only():
    keys = {key for owner in current().values() for key in owner["defaults"]}
    short = [short_key(key) for key in keys]
    assert sorted(short) == sorted(set(short)), "add the word that several sections have to AMBIGUOUS"
    assert {key for key in keys if "." in key} & set(short) == {"data.seed", "eval.batch_size", "train.batch_size"}
