"""A config is checked against its data and built: positions, copies, digits; sizes of models are matched."""

import pytest
import torch

import tfstudy
from tests.commands import tfstudy as command
from tests.example_task import ARCHITECTURE, added
from tfstudy import models, tasks
from tfstudy.config.resolve import overrides, resolve
from tfstudy.config.trees import merge
from tfstudy.data.encoding import Vocab
from tfstudy.errors import UserError
from tfstudy.experiment.api import RunOptions, compose_config
from tfstudy.experiment.parameter_matching import match_sizes
from tfstudy.experiment.prepare import DataShape, check, prepare
from tfstudy.models.base import parameter_count

SMALL = ["data.train_examples=20", "data.eval_examples=5", "train.steps=10"]


@pytest.mark.parametrize(
    ("task", "assignments", "facts"),
    [
        ("scan", "model.share_embeddings=true", ["model.share_embeddings", "scan"]),
        ("copying", "model.randomised_positions=20 model.max_positions=20", ["model.randomised_positions", "37", "20"]),
        ("arithmetic", "model.digit_positions=30", ["model.digit_positions", "data.format=reversed"]),
        ("arithmetic", "model.digit_positions=10 data.format=reversed", ["at least 11", "longest source", "10"]),
        ("scan", "model.copy_output=true", ["model.copy_output", "share", "scan"]),
        ("chomsky", "data.split=stack_manipulation data.train_examples=2000 train.target_eos=false", ["empty targets"]),
        ("scan", "eval.checkpoint=best data.validation_fraction=0", ["eval.checkpoint", "validation split"]),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_both_values(task, assignments, facts):
    small = [] if task == "scan" else SMALL
    config = resolve(merge({"task": task, "arch": "transformer"}, overrides([*small, *assignments.split()])))
    with pytest.raises(UserError) as error:
        check(config, DataShape.of(tasks.find(task)(config.data)))
    assert all(fact in str(error.value) for fact in facts), error.value


def prepared(*assignments: str, task: str = "copying", arch: str = "cnn"):
    tree = merge({"task": task, "arch": arch, "model": {"dim": 16, "channels": 16}}, overrides([*SMALL, *assignments]))
    return prepare(resolve(tree))


def test_a_table_of_positions_is_as_large_as_the_data_need():
    assert prepared().model.max_positions == 512
    assert prepared("model.max_positions=9").model.max_positions == 37
    long = prepared("model.max_positions=9", "data.test_length=600-600")
    assert long.model.max_positions == 617
    assert long.config.model.max_positions == long.identity.settings["model"]["max_positions"] == 9
    for decode in ("decode.limit=source", "decode.method=beam", "decode.max_length=30"):
        assert prepared("model.max_positions=9", decode).model.max_positions == 37, "it depends on the data only"


def test_a_model_knows_which_tokens_it_copies_and_which_are_digits():
    settings = {"model": {"digit_positions": 20, "copy_output": True, "dim": 16}, "data": {"format": "reversed"}}
    prepared = prepare(compose_config("arithmetic", "transformer", "default", settings))
    source, target = prepared.data.source_vocab.tokens, prepared.data.target_vocab.tokens
    ids = prepared.model.copy.target_ids.tolist()
    copied = {token: target[index] for token, index in zip(source, ids, strict=True)}
    assert copied == {token: token if token in target else "<unk>" for token in source}
    assert "<unk>" in {copied[token] for token in source[4:]}
    for tokens, table in (
        (source, prepared.model.digits.source_digits),
        (target, prepared.model.digits.target_digits),
    ):
        assert {token for token, digit in zip(tokens, table.tolist(), strict=True) if digit} == set("0123456789")


@pytest.mark.usefixtures("reverse")
def test_a_run_that_copies_can_be_loaded_from_a_checkpoint_and_from_safetensors():
    settings = {"model.copy_output": True, "model.dim": 16, "model.hidden": 16, "eval.max_examples": 4}
    outcome = tfstudy.run("reverse", arch="lstm", smoke=True, options=RunOptions(accelerator="cpu"), **settings)
    run = tfstudy.load(outcome.path)
    assert command("export", outcome.path) == 0
    run.weights.unlink()
    shared = tfstudy.load(outcome.path)
    assert (run.weights.suffix, shared.weights.name) == (".ckpt", "weights.safetensors")
    for loaded in (run, shared):
        found = {one.source: one.prediction for one in loaded.predictions()}
        assert {source: loaded.predict(source) for source in found} == found


def size(config) -> int:
    source, target = tasks.find(config.task)(config.data).vocabulary()
    with torch.device("meta"):
        return parameter_count(models.find(config.arch)(config.model, len(Vocab(source)), len(Vocab(target))))


@pytest.mark.usefixtures("reverse")
def test_a_width_that_is_given_is_kept_and_so_are_the_others_and_other_settings(tmp_path):
    cls = models.find("mingru")
    for given in ({width: 40} for width in cls.widths):
        assert compose_config("reverse", "mingru", "default", {"model": given}).model == cls.Config(**given)
    config = compose_config("reverse", "mingru", "default", {"model": {"layers": 2, "dropout": 0.3}})
    assert (config.model.layers, config.model.dropout) == (2, 0.3)
    reference = size(compose_config("reverse", "transformer", "default", {}))
    assert size(config) == pytest.approx(reference, rel=0.05)
    with added(models, "bag", ARCHITECTURE, tmp_path / "models"):
        assert size(compose_config("reverse", "bag", "default", {})) == pytest.approx(reference, rel=0.05)
    bounded = ARCHITECTURE.replace("depth: int", "dim: int = Field(32, ge=1, le=900)\n        depth: int")
    with added(models, "bounded", bounded, tmp_path / "models"):
        assert size(compose_config("reverse", "bounded", "default", {})) == pytest.approx(reference, rel=0.05)
    words = {"data": {"tokens": "words", "train_pairs": 50}}  # two vocabularies, which the Transformer's preset shares
    parted = merge(words, {"model": {"share_embeddings": False}})
    reference = size(compose_config("translation", "transformer", "default", parted))
    assert size(compose_config("translation", "mingru", "default", words)) == pytest.approx(reference, rel=0.05)


def test_positions_that_long_data_need_count_and_a_size_that_no_width_gives_is_refused():
    with pytest.raises(UserError, match=r"lstm give 10 parameters within 5 %; the nearest give \d"):
        match_sizes(resolve({"task": "scan", "arch": "lstm"}), (12, 9), 10)
    data = {"test_length": "400-400", "train_examples": 50, "eval_examples": 5}
    tree = {"task": "copying", "arch": "cnn", "data": data, "model": {"max_positions": 8}}
    prepared = prepare(resolve(tree))
    vocabularies = len(prepared.data.source_vocab), len(prepared.data.target_vocab)
    widths = match_sizes(prepared.config, vocabularies, 400_000)
    matched = prepare(resolve({**tree, "model": {"max_positions": 8, **widths}}))
    assert matched.model.max_positions == 417
    assert parameter_count(matched.model) == pytest.approx(400_000, rel=0.05)


def test_initial_weights_do_not_depend_on_the_number_of_threads():
    found, config = [], resolve(merge({"task": "copying", "arch": "lstm"}, overrides(SMALL)))
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(prepare(config).model.state_dict())
        assert torch.get_num_threads() == threads
    torch.set_num_threads(1)  # as in all tests
    assert all(torch.equal(found[0][name], weight) for name, weight in found[1].items())
