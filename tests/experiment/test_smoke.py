"""Every task with every architecture, by its preset, from the command line to the record."""

import json
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.tasks.corpora import pairs_folder
from tfstudy import models, tasks
from tfstudy.config.presets import preset, presets
from tfstudy.data.module import TaskData
from tfstudy.experiment.api import compose_config
from tfstudy.models.base import parameter_count
from tfstudy.tasks.generated import Generated

TASKS = tasks.names()
ARCHS = models.names()
FEW = {"translation": {"train_pairs": 200}} | {
    name: {"train_examples": 200, "eval_examples": 16} for name in TASKS if issubclass(tasks.find(name), Generated)
}
FEW["pairs"] = {"root": "files"}


@pytest.fixture(autouse=True)
def _here(empty_folder, tmp_path):
    pairs_folder(tmp_path / "files")


# each task with one architecture and each architecture with several tasks; all pairs in `make slow`
PAIRS = [
    pytest.param(task, arch, marks=() if number % len(ARCHS) == place else pytest.mark.slow)
    for number, task in enumerate(TASKS)
    for place, arch in enumerate(ARCHS)
]


@pytest.mark.parametrize(("task", "arch"), PAIRS)
def test_every_task_runs_with_every_architecture(task, arch, capsys):
    few = [f"data.{key}={n}" for key, n in FEW.get(task, {}).items()]
    settings = [word for text in few for word in ("--set", text)]
    assert tfstudy("run", task, "--arch", arch, "--smoke", "--accelerator", "cpu", *settings) == 0
    [path] = Path("results-smoke").glob("runs/*/*/*/result.json")
    result = json.loads(path.read_text())
    assert (result["status"], result["smoke"]) == ("finished", True)
    assert set(result["overlap"].values()) == {0}
    tests = [part for part in result["splits"].values() if part["role"] == "test"]
    assert tests
    for part in tests:
        assert part["n"] > 0
        assert all(0 <= value <= 1 for value in part["metrics"].values())
    assert [text.count("SMOKE RUN") for text in capsys.readouterr()] == [1, 1], "over the table and at the start"
    assert not Path("results").exists()


@pytest.mark.parametrize("task", TASKS)
def test_all_architectures_have_presets_and_parameters_within_five_per_cent_of_each_other(task):
    few = {"data": FEW.get(task, {}) if task != "translation" else {}}  # fewer pairs have fewer subwords
    sizes = []
    assert set(presets(task)["default"]) >= set(presets("scan")["default"]) >= {"transformer", "lstm", "cnn"}
    for arch in ARCHS:
        assert arch not in presets(task)["default"] or "train" in preset(task, arch)
        config = compose_config(task, arch, "default", few)
        data = TaskData(tasks.find(task)(config.data))
        sizes.append(parameter_count(models.find(arch)(config.model, len(data.source_vocab), len(data.target_vocab))))
    assert max(sizes) <= 1.05 * min(sizes)
