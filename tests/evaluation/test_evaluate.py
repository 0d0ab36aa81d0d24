"""Evaluation: slices add up to the whole, and neither batches nor a bound on memory change anything."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from tfstudy import models, tasks
from tfstudy.config.schema import DecodeConfig, EvalConfig, TrainConfig
from tfstudy.data.encoding import EOS, PAD
from tfstudy.data.module import TaskData
from tfstudy.evaluation import evaluate as evaluation
from tfstudy.evaluation.decoding import EXTRA_TOKENS
from tfstudy.evaluation.evaluate import MemoryUse, Output, evaluate, in_batches, sample, summarise_outputs
from tfstudy.models.base import PaddedModel
from tfstudy.tasks.base import Example
from tfstudy.training.fit import fit
from tfstudy.training.memory import OutOfMemoryError
from tfstudy.training.module import Seq2Seq

CPU = torch.device("cpu")


@pytest.fixture
def data(reverse):
    task = tasks.find("reverse")
    return TaskData(task(task.Config(split="short")))


class KnownState(NamedTuple):
    answers: Tensor  # (batch, target), after BOS
    step: Tensor  # (batch,)


class Known(PaddedModel):
    """Knows every answer by heart, and may end too late."""

    def __init__(self, data: TaskData, late: int = 0) -> None:
        super().__init__(PaddedModel.Config(), len(data.source_vocab), len(data.target_vocab))
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.vocab = len(data.target_vocab)
        self.answers = {}
        for split in data.task.splits().all:
            for example in data.task.examples(split):
                ids = data.target_vocab.encode(example.target)
                self.answers[tuple(data.source_vocab.encode(example.source))] = [*ids, *[4] * late, EOS]

    def encode_padded(self, source, mask):
        rows = [self.answers[tuple(t for t in row if t not in (PAD, EOS))] for row in source.tolist()]
        answers = torch.full((len(rows), 99), EOS)
        for row, ids in zip(answers, rows, strict=True):
            row[: len(ids)] = torch.tensor(ids)
        return KnownState(answers, torch.zeros(len(rows), dtype=torch.long))

    def decode_padded(self, tokens, state):
        positions = state.step[:, None] + torch.arange(tokens.shape[1])
        right = state.answers.gather(1, positions)
        logits = 9.0 * torch.nn.functional.one_hot(right, self.vocab).float()
        return logits, state._replace(step=state.step + tokens.shape[1])


def evaluated(model, data, split="test", decode=None, **config):
    return evaluate(model, data, split, DecodeConfig(**decode or {}), EvalConfig(**config), CPU)


def shares(summary) -> tuple[float, ...]:
    names = ("exact_match", "token_accuracy", "oracle_length_exact_match", "teacher_forced_accuracy")
    return tuple(round(summary["metrics"][name], 6) for name in names)


@pytest.mark.parametrize("decode", [{}, {"method": "beam", "beam_size": 3}], ids=["greedy", "beam"])
@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_model_that_knows_the_answers_has_all_of_them(data, split, decode):
    summary, rows = evaluated(Known(data), data, split, decode)
    assert shares(summary) == (1, 1, 1, 1)
    assert all(row.prediction == row.oracle_length == row.target for row in rows)
    assert summary["exact_match_interval"][1] == 1
    assert summary["limit_hits"] == 0
    assert summary["exact_match_interval"][0] < 1


def test_a_model_that_only_ends_too_late_is_right_at_the_oracle_length(data):
    summary, rows = evaluated(Known(data, late=3), data)
    exact, token, oracle, forced = shares(summary)
    assert (exact, oracle) == (0, 1)
    assert token < 1
    assert forced == pytest.approx(5 / 6), "EOS is one of the six target tokens, and it is missed"
    assert all(row.prediction.startswith(row.target + " ") for row in rows)


def test_a_model_that_never_ends_is_stopped_beyond_the_longest_target(data):
    summary, rows = evaluated(Known(data, late=60), data)
    assert {len(row.prediction.split()) for row in rows} == {5 + EXTRA_TOKENS}
    assert summary["metrics"]["exact_match"] == 0
    assert summary["limit_hits"] == summary["n"]
    _, rows = evaluated(Known(data, late=60), data, decode={"max_length": 7})
    assert {len(row.prediction.split()) for row in rows} == {7}


WEIGHTS = {}


def half_trained(arch, data):
    """A model whose predictions depend on the source and are often wrong."""
    torch.manual_seed(0)
    cls = models.find(arch)
    model = cls(cls.Config(**cls.small), len(data.source_vocab), len(data.target_vocab))
    if arch not in WEIGHTS:
        config = TrainConfig(
            steps=60, warmup_steps=0, learning_rate=0.01, validation_interval=60, log_interval=60, batch_size=32
        )
        fit(Seq2Seq(model, len(data.target_vocab), config), data, accelerator="cpu")
        WEIGHTS[arch] = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(WEIGHTS[arch])
    return model


BEAM = {"method": "beam", "beam_size": 3, "length_penalty": 0.6}


@pytest.mark.parametrize(
    ("arch", "decode"), [*((arch, {}) for arch in models.names()), ("transformer", BEAM), ("lstm", BEAM)]
)
def test_neither_the_batch_size_nor_the_budget_of_memory_changes_anything(arch, decode, data, monkeypatch):
    model = half_trained(arch, data)
    one, seven = (evaluated(model, data, decode=decode, batch_size=size, max_examples=20) for size in (1, 7))
    monkeypatch.setattr(evaluation, "BUDGET", 20_000)
    small = evaluated(model, data, decode=decode, max_examples=20)
    outputs = [(row.source, row.prediction, row.oracle_length) for row in one.rows]
    assert len({prediction for _, prediction, _ in outputs}) > 3, "the predictions depend on the source"
    for other in (seven, small):
        assert [(row.source, row.prediction, row.oracle_length) for row in other.rows] == outputs
        assert shares(other.summary) == pytest.approx(shares(one.summary), abs=1e-6)


def test_values_of_a_tag_that_are_written_alike_are_one_slice(data):
    examples = [Example(("a",), ("a",), {"k": value}) for value in (1, "1", 10, 2, "b")]
    found = summarise_outputs(data.task, examples, [Output(("a",), ("a",), 1.0)] * 5)["slices"]["k"]
    assert {name: part["n"] for name, part in found.items()} == {"2": 1, "10": 1, "1": 2, "b": 1}


def test_slices_add_up_to_the_whole(data):
    summary, rows = evaluated(half_trained("lstm", data).train(), data, "validation")
    assert [row.source for row in rows] == [" ".join(e.source) for e in data.task.examples("validation")]
    assert list(summary["slices"]["length"]) == sorted(summary["slices"]["length"], key=int)
    assert summary["n"] == len(rows) == len(data.task.examples("validation"))
    assert summary["slices"].keys() == {"length", "first"}
    for tag, slices in summary["slices"].items():
        assert sum(part["n"] for part in slices.values()) == summary["n"]
        assert slices.keys() == {str(row.tags[tag]) for row in rows}
        for name, whole in summary["metrics"].items():
            mean = sum(part["n"] * part["metrics"][name] for part in slices.values()) / summary["n"]
            assert mean == pytest.approx(whole), (tag, name)
    exact = sum(row.prediction == row.target for row in rows) / len(rows)
    assert summary["metrics"]["exact_match"] == pytest.approx(exact)
    forced = sum(row.teacher_forced_accuracy for row in rows) / len(rows)
    assert summary["metrics"]["teacher_forced_accuracy"] == pytest.approx(forced, abs=1e-5)
    assert len({shares(part) for part in summary["slices"]["length"].values()}) > 1, "the slices differ"


def test_a_limit_draws_the_same_examples_whatever_their_order(data):
    examples = data.task.examples("test")
    drawn = sample(examples, 20)
    assert len(drawn) == 20
    assert drawn == sorted(drawn), "their order is kept"
    last = len(examples) - 1
    assert {last - i for i in sample(examples[::-1], 20)} == {*drawn}
    assert {*sample(examples, 10)} < {*drawn}, "a smaller sample is part of a larger one"
    assert drawn != [*range(20)]
    for limit in (0, len(examples), 10**6):
        assert [*sample(examples, limit)] == [*range(len(examples))]


ERROR = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 68719476736 bytes.")
LENGTHS = torch.tensor([2, 2, 3, 3, 4, 9, 9, 9])


def parts(budget, monkeypatch, most_rows=100, largest=100) -> list[list[int]]:
    """The rows of each batch, where a row costs the product of its lengths."""

    def compute(index):
        if len(index) > largest:
            raise ERROR
        return [int(i) for i in index]

    monkeypatch.setattr(evaluation, "BUDGET", budget)
    order = torch.arange(len(LENGTHS))
    found = list(in_batches(compute, order, LENGTHS, LENGTHS, torch.mul, most_rows))
    assert all(index.tolist() == results for index, results in found)
    return [results for _, results in found]


def test_batches_are_as_large_as_budget_and_maximum_allow(monkeypatch):
    assert parts(10**9, monkeypatch) == [[0, 1, 2, 3, 4, 5, 6, 7]]
    assert parts(10**9, monkeypatch, most_rows=3) == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert parts(40, monkeypatch) == [[0, 1, 2, 3], [4], [5], [6], [7]]
    assert parts(170, monkeypatch) == [[0, 1, 2, 3, 4], [5, 6], [7]]


def test_after_an_error_batches_have_half_as_many_rows_down_to_one(monkeypatch):
    assert parts(10**9, monkeypatch, largest=5) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(OutOfMemoryError, match="source has 1 tokens, and its output may have 2"):
        parts(10**9, monkeypatch, largest=0)


def test_an_evaluation_that_runs_out_of_memory_ends_with_the_same_result(data, monkeypatch):
    model = half_trained("lstm", data)
    whole = evaluated(model, data, max_examples=40)
    encode, sizes = model.encode, []

    def limited(source):
        [(rows, _)] = source.shapes
        sizes.append(rows)
        if rows > 3:
            raise ERROR
        return encode(source)

    monkeypatch.setattr(model, "encode", limited)
    shown = []
    settings = DecodeConfig(), EvalConfig(max_examples=40), CPU
    small = evaluate(model, data, "test", *settings, lambda *done: shown.append(done))
    assert sizes[:5] == [40, 20, 10, 5, 2]
    assert [row.prediction for row in small.rows] == [row.prediction for row in whole.rows]
    assert [done for done, _ in shown] == list(range(2, 41, 2))
    assert shown[-1] == (40, 1.0)


@pytest.mark.parametrize("arch", models.names())
def test_the_estimates_grow_with_lengths_hypotheses_and_vocabulary(arch):
    cls = models.find(arch)
    model = cls(cls.Config(**cls.small), 12, 9)
    greedy, beam = (MemoryUse.of(model, 9, hypotheses) for hypotheses in (1, 5))
    ten, hundred = torch.tensor([10]), torch.tensor([100])
    assert beam.decoding(ten, ten) == 5 * greedy.decoding(ten, ten)
    for bytes_of in (greedy.decoding, greedy.teacher_forcing):
        assert 16 * 4 * 20 < bytes_of(ten, ten) < bytes_of(ten, hundred) < bytes_of(hundred, hundred)
    assert MemoryUse.of(model, 9000, 1).teacher_forcing(ten, ten) > 4 * 9000 * 20
    assert MemoryUse.of(cls(cls.Config(**cls.small), 5000, 9), 9, 1) == greedy
