"""What a config describes is built: a model that copies knows which tokens are the same."""

from pathlib import Path

import tfstudy
from tests.example_task import TASK, added
from tfstudy import tasks
from tfstudy.config.resolve import resolve
from tfstudy.experiment.api import compose_config
from tfstudy.experiment.options import RunOptions
from tfstudy.experiment.prepare import describe, prepare

COPYING = {"copy_output": True, "dim": 16, "hidden": 16}


def test_a_model_copies_to_tokens_of_the_same_text_and_to_unknown_if_there_is_none():
    prepared = prepare(compose_config("arithmetic", "lstm", "default", {"model": COPYING}))
    source, target = prepared.data.source_vocab.tokens, prepared.data.target_vocab.tokens
    assert source != target
    copied = {
        token: target[index] for token, index in zip(source, prepared.model.copy.target_ids.tolist(), strict=True)
    }
    assert copied == {token: token if token in target else "<unk>" for token in source}
    assert "<unk>" in {copied[token] for token in source[4:]}


def test_a_run_that_copies_can_be_loaded_from_a_checkpoint_and_from_safetensors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        settings = {f"model.{key}": value for key, value in COPYING.items()} | {"eval.max_examples": 4}
        outcome = tfstudy.run("reverse", arch="lstm", smoke=True, options=RunOptions(accelerator="cpu"), **settings)
        run = tfstudy.load(outcome.path)
        run.save_weights()
        run.weights.unlink()
        shared = tfstudy.load(outcome.path)
        assert (run.weights.suffix, shared.weights.name) == (".ckpt", "weights.safetensors")
        for loaded in (run, shared):
            found = {one.source: one.prediction for one in loaded.predictions()}
            assert {source: loaded.predict(source) for source in found} == found


def test_a_model_with_positions_of_digits_knows_the_digits_of_its_task():
    settings = {"model": {"digit_positions": 20}, "data": {"format": "reversed"}}
    prepared = prepare(compose_config("arithmetic", "transformer", "default", settings))
    for vocab, table in (
        (prepared.data.source_vocab, prepared.model.digits.source_digits),
        (prepared.data.target_vocab, prepared.model.digits.target_digits),
    ):
        marked = {token for token, digit in zip(vocab.tokens, table.tolist(), strict=True) if digit}
        assert marked == set("0123456789")


def test_the_positions_of_a_run_are_named_if_they_are_more_than_configured():
    def line(largest):
        model = {"positions": "learned", "max_positions": largest, "dim": 16, "feedforward": 16}
        data = {"train_examples": 20, "eval_examples": 5}
        return describe(
            prepare(resolve({"task": "copying", "arch": "transformer", "model": model, "data": data})), Path()
        )

    assert " parameters and 37 positions, seed 0" in line(4)
    assert " parameters, seed 0" in line(37)


def test_the_target_tokens_of_the_train_split_are_counted():
    data = {"train_examples": 20, "eval_examples": 5}
    prepared = prepare(resolve({"task": "copying", "arch": "lstm", "data": data}))
    tokens = len(" ".join(" ".join(row.target) for row in prepared.task.examples("train")).split())
    assert f" examples; {tokens} target tokens in train\n" in describe(prepared, Path())
