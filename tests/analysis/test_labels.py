"""What varies between runs."""

import json
from pathlib import Path

from tests.example_records import set_environments
from tfstudy.analysis.labels import MAX_LISTED as MAX_SHOWN
from tfstudy.analysis.labels import of_configs as varying_settings
from tfstudy.analysis.labels import of_runs as varying_runs


def config(seed=0, arch="lstm", **train) -> dict:
    return {"task": "scan", "arch": arch, "seed": seed, "data": {"split": "length"}, "train": train}


def test_only_what_varies_is_named_by_its_last_word():
    configs = [config(steps=5, learning_rate=rate) for rate in (0.1, 0.2)]
    assert varying_settings(configs) == ["learning_rate=0.1", "learning_rate=0.2"]


def test_seeds_and_other_architectures_do_not_vary():
    assert varying_settings([config(0), config(1), config(0, "cnn", steps=3)]) == ["", "", ""]


def test_words_of_several_keys_stay_long_and_missing_keys_have_their_default():
    configs = [config(batch_size=8, steps=1), config(steps=2), config(steps=1)]
    expected = ["train.batch_size=8, steps=1", "train.batch_size=default, steps=2", "train.batch_size=default, steps=1"]
    assert varying_settings(configs) == expected


def test_many_settings_are_cut():
    count = MAX_SHOWN + 3
    configs = [config(**{f"key{n}": int(n == varied) for n in range(count)}) for varied in range(count + 1)]
    assert varying_settings(configs)[0].endswith("key3=0, and 3 more")


def test_settings_that_follow_from_others_are_left_out():
    runs = [(64, 128, 5, 1), (64, 128, 6, 2), (16, 32, 5, 1), (32, 64, 5, 3)]
    configs = [config(dim=dim, feedforward=wide, steps=steps, patience=patience) for dim, wide, steps, patience in runs]
    assert varying_settings(configs)[1:3] == ["dim=64, patience=2", "dim=16, patience=1"]


def test_of_settings_that_vary_together_the_one_with_names_is_shown():
    configs = [config(feedforward=wide, positions=name) for wide, name in ((192, "relative"), (256, "none"))]
    assert varying_settings(configs) == ["positions=relative", "positions=none"]


def study_run(folder: Path, settings: dict, **train) -> Path:
    """A run with its config and, in its record, the settings that differ from their default."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(json.dumps(config(**train)))
    set_environments(folder, {"settings": settings})
    return folder


def test_runs_are_compared_within_a_study_and_a_key_that_older_runs_lack_has_its_default(tmp_path):
    paths = [
        study_run(tmp_path / "study/scan-length/lstm/s0-1", {"train": {"steps": 5}}, steps=5),
        study_run(tmp_path / "study/scan-length/lstm/s0-2", {"train": {"steps": 6}}, steps=6, key=0),
        study_run(tmp_path / "other/scan-length/lstm/s0-3", {"train": {"steps": 7}}, steps=7, key=0),
    ]
    assert varying_runs(paths) == ["steps=5", "steps=6", ""]


def test_configs_that_can_not_be_read_are_left_out(tmp_path):
    (tmp_path / "config.yaml").write_text("[")
    assert varying_runs([tmp_path, Path("none")]) == ["", ""]
