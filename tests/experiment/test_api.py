"""Experiments from Python, `tfstudy.run` and `tfstudy.load`, and what a run records of its test sets."""

import logging
import random
import warnings
from pathlib import Path

import pytest
import torch

import tfstudy
from tests.commands import tfstudy as command
from tests.example_task import TASK, added
from tests.interrupted_runs import SETTINGS
from tests.tasks.corpora import root
from tfstudy import tasks
from tfstudy.errors import UserError
from tfstudy.evaluation.breakdown import summarize_errors
from tfstudy.experiment.api import RunOptions, compose_config
from tfstudy.experiment.finished import FinishedRun
from tfstudy.experiment.prepare import prepare
from tfstudy.runs.store import open_run

__all__ = ["root"]  # a fixture
SMALL = {f"train.{key}": value for key, value in SETTINGS.items()}
SMALL |= {"model.dim": 16, "model.hidden": 16, "eval.max_examples": 24}
CPU = RunOptions(accelerator="cpu")
BASELINES = """
    def baselines(self, split):
        return {"copy": [e.source for e in self.examples(split)], "answers": [e.target for e in self.examples(split)]}
"""


@pytest.fixture(autouse=True)
def _reverse(empty_folder, tmp_path):
    with added(tasks, "reverse", TASK + BASELINES, tmp_path / "more"):
        yield


def test_a_run_is_trained_loaded_and_used():
    outcome = tfstudy.run("reverse", arch="lstm", seed=3, options=CPU, **SMALL)
    assert outcome.worked
    assert outcome.path.name.startswith("s3-")
    assert (outcome.result.seed, outcome.result.step) == (3, SETTINGS["steps"])
    assert [one.how for one in open_run(outcome.path).events if one.event == "steps computed"] == ["eager"]
    assert not tfstudy.run("reverse", arch="lstm", seed=3, options=CPU, **SMALL).worked
    run = tfstudy.load("runs/lstm/s3")
    assert run.path == outcome.path
    predictions = run.predictions()
    assert len(predictions) == 24
    assert not run.model.training
    for one in predictions[:5]:
        assert run.predict(one.source) == one.prediction
    again = run.evaluate(["test"])
    assert again.decode == run.result.decode
    assert again.splits.keys() == {"test"}
    assert (again.test_reads, again.lengths) == ({"test": 2}, run.result.lengths)
    assert not run.evaluate(["validation"]).lengths
    assert again.splits["test"].metrics == run.result.splits["test"].metrics
    with pytest.raises(UserError, match="did you mean 'test'"):
        run.predictions("tets")
    with pytest.raises(UserError, match="whole characters in UTF-8, but is"):
        run.predict("a\ud800")
    for sources, place in ((5, ""), ([run.predictions()[0].source, 5], "source 1: ")):
        with pytest.raises(UserError, match=f"^{place}a source must be text.*, but is '5'$"):
            run.predict(sources)


def test_a_run_and_its_use_leave_the_random_state_warnings_and_logs_of_the_caller():
    logging.getLogger("lightning.pytorch").setLevel(logging.INFO)
    torch.manual_seed(1)
    random.seed(1)

    def state() -> list[object]:
        logs = {name: getattr(log, "level", 0) for name, log in logging.root.manager.loggerDict.items()}
        kept = {name: level for name, level in logs.items() if name.startswith("lightning") and level}
        return [torch.get_rng_state().tolist(), random.getstate(), [*warnings.filters], kept]

    before = state()
    outcome = tfstudy.run("reverse", arch="lstm", options=CPU, **SMALL)
    assert state() == before
    tfstudy.load(outcome.path).predict("a b")
    assert state() == before


def test_options_that_do_not_fit_and_weights_of_older_code_are_refused(monkeypatch):
    outcome = tfstudy.run("reverse", arch="lstm", options=CPU, **SMALL)
    for options, fact in (
        (CPU._replace(accelerator="gpu"), "unknown accelerator 'gpu'.*auto, cpu, cuda"),
        (CPU._replace(loggers=("wandb",)), "wandb"),
    ):
        with pytest.raises(UserError, match=fact):
            tfstudy.run("reverse", arch="lstm", options=options, **SMALL)
    monkeypatch.setattr("tfstudy.experiment.code_versions._named_versions", lambda *names: (1, 3))
    with pytest.raises(UserError, match="--changes"):
        tfstudy.load(outcome.path)


def test_a_run_records_its_limit_its_kinds_of_errors_and_trivial_systems(capsys):
    settings = SMALL | {"decode.limit": "source", "decode.method": "beam"}
    outcome = tfstudy.run("reverse", arch="lstm", options=CPU, **settings)
    result = outcome.result
    assert (result.generation_limit.per_source_token, result.generation_limit.constant) == (1.0, 16)
    for split, scores in result.splits.items():
        assert scores.errors == summarize_errors(tfstudy.load(outcome.path).predictions(split))
        assert sum(kind.n for kind in scores.errors.values()) == scores.n > 0
        assert 0 <= scores.limit_hits <= scores.n
    baselines = result.splits["test"].baselines
    assert baselines["answers"] == {"exact_match": 1.0, "token_accuracy": 1.0}
    assert 0 <= baselines["copy"]["exact_match"] < 0.5
    assert round(24 * baselines["copy"]["exact_match"], 6) % 1 == 0, "a share of the 24 examples of the sample"
    assert command("result", outcome.path) == 0
    out = capsys.readouterr().out
    assert "outputs of at most 1 x source length + 16 tokens" in out
    assert "oracle length is decoded greedily, all else by beam search of size 4" in out


def test_attention_names_subwords_as_people_read_them(root):
    data = {"split": "corpus", "root": root, "subword_vocab_size": 300}
    prepared = prepare(compose_config("translation", "transformer", "default", {"data": data, "model": {"dim": 16}}))
    found = FinishedRun(Path(), None, prepared, Path()).attention("a red dog 犬", "dog")
    assert "".join(found.source) == "\u2581a\u2581red\u2581dog\u2581\ufffd\ufffd\ufffd<eos>"
    assert "".join(found.output) == "\u2581dog<eos>"
    assert found.weights["cross"].shape[2:] == (len(found.output), len(found.source))
