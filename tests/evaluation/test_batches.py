"""Batches stay within a budget of memory, and are halved where that runs out; the results stay the same."""

import resource
import subprocess
import sys

import pytest
import torch

from tests.evaluation.test_evaluate import CPU, Known, data, evaluated, half_trained, shares  # noqa: F401
from tfstudy import models
from tfstudy.evaluation import evaluate as batches
from tfstudy.evaluation.evaluate import MemoryUse, in_batches
from tfstudy.training.memory import OutOfMemoryError

ERROR = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 68719476736 bytes.")
LENGTHS = torch.tensor([2, 2, 3, 3, 4, 9, 9, 9])


def parts(budget, monkeypatch, most_rows=100, largest=100) -> list[list[int]]:
    """The rows of each batch, where a row costs the product of its lengths."""

    def compute(index):
        if len(index) > largest:
            raise ERROR
        return [int(i) for i in index]

    monkeypatch.setattr(batches, "BUDGET", budget)
    order = torch.arange(len(LENGTHS))
    found = list(in_batches(compute, order, LENGTHS, LENGTHS, torch.mul, most_rows))
    assert all(index.tolist() == results for index, results in found)
    return [results for _, results in found]


def test_batches_are_as_large_as_budget_and_maximum_allow(monkeypatch):
    assert parts(10**9, monkeypatch) == [[0, 1, 2, 3, 4, 5, 6, 7]]
    assert parts(10**9, monkeypatch, most_rows=3) == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert parts(40, monkeypatch) == [[0, 1, 2, 3], [4], [5], [6], [7]]
    assert parts(170, monkeypatch) == [[0, 1, 2, 3, 4], [5, 6], [7]]


def test_after_an_error_batches_have_half_as_many_rows(monkeypatch):
    assert parts(10**9, monkeypatch, largest=5) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert parts(10**9, monkeypatch, largest=1) == [[i] for i in range(8)]


def test_a_single_row_that_is_too_much_is_reported_with_its_lengths(monkeypatch):
    with pytest.raises(OutOfMemoryError, match="source has 1 tokens, and its output may have 2"):
        parts(10**9, monkeypatch, largest=0)


@pytest.mark.parametrize("arch", models.names())
@pytest.mark.parametrize("decode", [{}, {"method": "beam", "beam_size": 3}], ids=["greedy", "beam"])
def test_the_budget_changes_no_output(arch, decode, data, monkeypatch):  # noqa: F811
    model = half_trained(arch, data)
    whole = evaluated(model, data, decode=decode, max_examples=16)
    monkeypatch.setattr(batches, "BUDGET", 20_000)
    small = evaluated(model, data, decode=decode, max_examples=16)
    assert [row.prediction for row in small.rows] == [row.prediction for row in whole.rows]
    assert shares(small.summary) == pytest.approx(shares(whole.summary), abs=1e-6)


def test_an_evaluation_that_runs_out_of_memory_ends_with_the_same_result(data, monkeypatch):  # noqa: F811
    model = half_trained("lstm", data)
    whole = evaluated(model, data, max_examples=40)
    encode, sizes = model.encode, []

    def limited(source, mask):
        sizes.append(len(source))
        if len(source) > 3:
            raise ERROR
        return encode(source, mask)

    monkeypatch.setattr(model, "encode", limited)
    shown = []
    small = batches_shown(model, data, shown)
    assert sizes[:5] == [40, 20, 10, 5, 2]
    assert [row.prediction for row in small.rows] == [row.prediction for row in whole.rows]
    assert [done for done, _ in shown] == list(range(2, 41, 2))
    assert shown[-1] == (40, 1.0)


def batches_shown(model, data, shown):  # noqa: F811
    from tfstudy.config.schema import DecodeConfig, EvalConfig
    from tfstudy.evaluation.evaluate import evaluate

    return evaluate(model, data, "test", DecodeConfig(), EvalConfig(max_examples=40), CPU, lambda *s: shown.append(s))


def test_other_errors_of_a_model_are_raised(data, monkeypatch):  # noqa: F811
    model = Known(data)
    monkeypatch.setattr(model, "encode", lambda *_: torch.ones(2, 3) @ torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        evaluated(model, data)


@pytest.mark.parametrize("arch", models.names())
def test_the_estimates_grow_with_lengths_hypotheses_and_the_model(arch):
    cls = models.find(arch)
    widths = {name: 4 * value for name, value in cls.Config(**cls.small).model_dump().items() if name in cls.widths}
    small, large = (cls(cls.Config(**cls.small | changes), 12, 9) for changes in ({}, widths))
    greedy, beam = (MemoryUse.of(small, 9, hypotheses) for hypotheses in (1, 5))
    ten, hundred = torch.tensor([10]), torch.tensor([100])
    assert beam.decoding(ten, ten) == 5 * greedy.decoding(ten, ten)
    for estimate in ("decoding", "teacher_forcing"):
        bytes_of = getattr(greedy, estimate)
        assert 16 * 4 * 20 < bytes_of(ten, ten) < bytes_of(ten, hundred) < bytes_of(hundred, hundred)
        assert getattr(MemoryUse.of(large, 9, 1), estimate)(ten, ten) > bytes_of(ten, ten)
    assert MemoryUse.of(small, 9000, 1).teacher_forcing(ten, ten) > 4 * 9000 * 20
    more_sources = cls(cls.Config(**cls.small), 5000, 9)
    assert MemoryUse.of(more_sources, 9, 1) == greedy


LIMITED = """
import resource, sys, torch
from tfstudy.training.memory import attempt

torch.set_num_threads(1)
torch.ones(8, 8) @ torch.ones(8, 8)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))
assert attempt(lambda: torch.zeros(2**30, dtype=torch.uint8)) is None
assert attempt(lambda: torch.zeros(2**20, dtype=torch.uint8)).sum() == 0
assert attempt(lambda: bytearray(2**30)) is None
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and RLIMIT_AS")
def test_a_real_limit_of_the_system_is_recognised():
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert resource.RLIM_INFINITY in resource.getrlimit(resource.RLIMIT_AS), "this process has no limit"
