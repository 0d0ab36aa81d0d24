"""Where a task has no preset, all architectures get the size of the Transformer; a size can also be asked for."""

import pytest
import torch

from tests.example_task import ARCHITECTURE, TASK, added
from tfstudy import models, tasks
from tfstudy.config.resolve import resolve
from tfstudy.data.encoding import Vocab
from tfstudy.errors import UserError
from tfstudy.experiment.api import compose_config
from tfstudy.experiment.parameter_matching import match_sizes
from tfstudy.experiment.prepare import prepare
from tfstudy.grids.expand import expand
from tfstudy.models.base import parameter_count

OTHERS = [name for name in models.names() if name != "transformer"]


@pytest.fixture(autouse=True)
def _additions(tmp_path):
    with added(tasks, "reverse", TASK, tmp_path / "tasks"), added(models, "bag", ARCHITECTURE, tmp_path / "models"):
        yield


def size(config) -> int:
    source, target = tasks.find(config.task)(config.data).vocabulary()
    with torch.device("meta"):
        return parameter_count(models.find(config.arch)(config.model, len(Vocab(source)), len(Vocab(target))))


@pytest.mark.parametrize("arch", [*OTHERS, "bag"])
def test_without_a_preset_an_architecture_has_the_parameters_of_the_default_transformer(arch):
    reference = resolve({"task": "reverse", "arch": "transformer"})
    assert compose_config("reverse", "transformer", "default", {}) == reference
    assert size(compose_config("reverse", arch, "default", {})) == pytest.approx(size(reference), rel=0.05)


def test_without_a_preset_for_it_an_architecture_has_the_parameters_of_the_transformers_preset():
    assert size(compose_config("scan", "bag", "default", {}, split="simple")) == pytest.approx(
        size(compose_config("scan", "transformer", "default", {}, split="simple")), rel=0.05
    )


@pytest.mark.parametrize("arch", OTHERS)
def test_a_width_that_is_given_is_kept_and_so_are_the_others(arch):
    for width in models.find(arch).widths:
        given = {"model": {width: 40}}
        assert compose_config("reverse", arch, "default", given).model == models.find(arch).Config(**{width: 40})


def test_other_settings_are_kept():
    config = compose_config("reverse", "lstm", "default", {"model": {"layers": 2, "dropout": 0.3}})
    assert (config.model.layers, config.model.dropout) == (2, 0.3)
    reference = size(compose_config("reverse", "transformer", "default", {}))
    assert size(config) == pytest.approx(reference, rel=0.05)


def test_a_preset_is_not_changed():
    from tfstudy.config.presets import preset

    assert compose_config("scan", "lstm", "default", {}) == resolve(
        {"task": "scan", "arch": "lstm", **preset("scan", "lstm")}
    )


def test_a_grid_has_the_same_sizes():
    grid = {"base": {"task": "reverse"}, "axes": {"arch": ["transformer", *OTHERS]}}
    runs = expand(grid)
    assert [run.config.model for run in runs] == [
        compose_config("reverse", arch, "default", {}).model for arch in ("transformer", *OTHERS)
    ]


def test_a_size_that_no_width_gives_is_refused_with_the_nearest():
    config = resolve({"task": "scan", "arch": "lstm"})
    with pytest.raises(UserError, match=r"lstm give 10 parameters within 5 %; the nearest give \d"):
        match_sizes(config, (12, 9), 10)


def test_positions_that_long_data_need_count():
    data = {"test_length": "400-400", "train_examples": 50, "eval_examples": 5}
    tree = {"task": "copying", "arch": "cnn", "data": data, "model": {"max_positions": 8}}
    prepared = prepare(resolve(tree))
    vocabularies = len(prepared.data.source_vocab), len(prepared.data.target_vocab)
    widths = match_sizes(prepared.config, vocabularies, 400_000)
    matched = prepare(resolve({**tree, "model": {"max_positions": 8, **widths}}))
    assert matched.model.max_positions == 417
    assert parameter_count(matched.model) == pytest.approx(400_000, rel=0.05)
