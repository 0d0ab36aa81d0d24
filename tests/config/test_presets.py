"""Defaults need a new version to change; presets resolve, and their networks are of one size."""

import json

from tests.config.golden_defaults import PATH, current, violations
from tfstudy import models, tasks
from tfstudy.config.presets import preset, presets
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import merge, short_key
from tfstudy.models.base import parameter_count

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
    for name, subwords in (("small", 2000), ("small", 8000), ("medium", 2000)):  # test_smoke.py has the default ones
        counts = {}
        for arch in presets("translation")[name]:
            run = resolve({"task": "translation", "arch": arch, **preset("translation", arch, name)})
            counts[arch] = parameter_count(models.find(arch)(run.model, subwords, subwords))
        assert max(counts.values()) <= 1.05 * min(counts.values()), counts


GOLDEN = json.loads(PATH.read_text())


def test_the_golden_file_has_all_defaults_and_none_changed_without_raising_its_version():
    assert violations(GOLDEN, current()) == []
    found = {owner: entry for owner, entry in current().items() if owner in GOLDEN or not owner.startswith("tasks/")}
    assert found == GOLDEN, "a key or a version is new: run `python -m tests.config.golden_defaults`"


def test_a_short_key_names_one_setting_only():
    keys = {key for owner in current().values() for key in owner["defaults"]}
    short = [short_key(key) for key in keys]
    assert sorted(short) == sorted(set(short)), "add the word that several sections have to AMBIGUOUS"
    assert {key for key in keys if "." in key} & set(short) == {"data.seed", "eval.batch_size", "train.batch_size"}
