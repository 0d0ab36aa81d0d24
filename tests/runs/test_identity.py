"""The hash of a run: what changes it, what does not, and that the committed runs still have theirs; its environment."""

from pathlib import Path

from tests.committed import STUDIES
from tfstudy.config.resolve import overrides, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import merge
from tfstudy.runs.find import find_runs
from tfstudy.runs.identity import Identity, environment, identify
from tfstudy.runs.store import open_run, read_bytes, read_config, read_result

TREES = {"task": "scan", "arch": "cnn"}, {"task": "copying", "arch": "lstm"}
VERSIONS = {"task": 1, "model": 1, "training": 1, "evaluation": 1}


def config(*assignments: str) -> RunConfig:
    return resolve(merge({"task": "scan", "arch": "lstm"}, overrides(assignments)))


def identity(*assignments: str, data: str = "d", **versions: int) -> Identity:
    return identify(config(*assignments), data, VERSIONS | versions)


def test_every_section_of_the_config_the_data_and_raised_versions_are_part_of_the_hash():
    changes = ("seed=1", "model.dim=64", "train.steps=1", "data.split=length", "decode.beam_size=5", "smoke=true")
    found = [identity(change) for change in ("seed=0", "eval.max_examples=3", *changes)]
    found += [identify(resolve(tree), "d", VERSIONS) for tree in TREES]
    found += [identity(data="other"), *(identity(**{name: 2}) for name in VERSIONS)]
    assert len({one.hash for one in found}) == len(found)
    assert len({one.experiment for one in found}) == len(found) - 1, "only a seed makes no other experiment"


def test_the_hash_is_a_fixed_function_of_settings_data_and_versions_however_they_are_written():
    found = identity("train.steps=7")
    assert found.settings == {"task": "scan", "arch": "lstm", "train": {"steps": 7}, "seed": 0}
    assert found.hash == "2c3cf88f10f5f0f787687bc9b776a3733bf2c5076365cac4db55ae6c48fa043f"
    assert identity("train.learning_rate=1e-2").hash == identity("train.learning_rate=0.01").hash
    assert identity("train.gradient_clip_norm=2").hash == identity("train.gradient_clip_norm=2.0").hash


def test_committed_runs_keep_their_hash_and_name():
    runs = [path for study in STUDIES for path in find_runs(study)]
    assert len(runs) > 1000
    for path in runs:
        result, [*_, entry] = read_result(path), open_run(path).environments
        found = identify(resolve(read_config(path)), entry.data, entry.code_versions)
        assert (result.run, result.experiment) == (found.hash, found.experiment), path
        assert path.name == f"s{result.seed}-{found.hash[:8]}"
        assert read_bytes(path / "config.yaml").startswith(f"# tfstudy run {found.hash}\n".encode()), path
        assert entry.settings == found.settings, path


def test_the_environment_records_settings_versions_and_code_but_no_home_folder(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "/opt/liba.so:/usr/lib/libm.so.6")
    monkeypatch.setattr("sys.argv", ["tfstudy", f"data.root={Path.home()}/corpus", "/Users/ann/x", "/data/root/x"])
    found = environment(identity("train.steps=7"), "a device", 3)
    assert found.arguments == ["data.root=~/corpus", "~/x", "/data/root/x"]
    assert found.preloaded == "liba.so libm.so.6"
    assert found.settings["train"] == {"steps": 7}
    assert (found.data, found.device, found.threads) == ("d", "a device", 3)
    assert found.code_versions == VERSIONS
