"""Measuring: in rounds over all settings, each with its number of steps; variants compute the same."""

import pytest
import torch

from tfstudy import models
from tfstudy.performance import measure as module
from tfstudy.performance.measure import measure
from tfstudy.performance.record import VARIANTS, WORKS
from tfstudy.performance.settings import Request, Setting, config_of, parse_axes
from tfstudy.performance.workloads import Workload, build

CPU = torch.device("cpu")
SIZES = {"length": (4, 8), "width": (16,), "batch": (2,)}


@pytest.fixture
def calls(monkeypatch):
    """The settings that were timed; each step takes a hundredth of a second."""
    calls = []

    def timed(workload, steps):
        calls.append((workload.setting, steps))
        return 0.01, 0.02

    monkeypatch.setattr(module, "timed", timed)
    return calls


def test_every_round_times_every_setting_once_in_an_order_of_its_own(calls):
    request = Request(("lstm",), SIZES, ("training",), ("default", "checkpointing"), {}, repeats=4)
    records, notes = measure(request, CPU, "processor")
    settings = set(request.settings())
    rounds = [[setting for setting, _ in calls[n : n + 4]] for n in range(4, 20, 4)]  # after one step of each
    assert all(set(one) == settings for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1
    assert [steps for _, steps in calls] == [1] * 4 + [5] * 16
    assert [one.seconds for one in records] == [(0.01,) * 4] * 4
    assert (records[0].cpu_seconds[0], records[0].memory, records[0].flops, notes) == (0.02, None, None, [])


def test_every_variant_is_measured_where_it_differs(calls):
    request = Request(
        ("transformer", "lstm"), {**SIZES, "length": (4,)}, (*WORKS, "memory", "flops"), tuple(VARIANTS), {}, 1
    )
    records, _ = measure(request, CPU, "processor")
    by_arch = {arch: [(one.work, one.variant) for one in records if one.arch == arch] for arch in request.archs}
    every = [(work, variant) for work in WORKS for variant, works in VARIANTS.items() if work in works]
    assert by_arch["transformer"] == every
    assert by_arch["lstm"] == [one for one in every if one[1] != "explicit"]
    assert all(one.memory > one.step_memory > 0 and one.flops.total > 0 for one in records)
    by_variant = {one.variant: one for one in records if (one.arch, one.work) == ("transformer", "training")}
    assert by_variant["checkpointing"].flops.total > by_variant["default"].flops.total
    assert by_variant["checkpointing"].flops.feedforward is None


def test_a_setting_without_enough_memory_is_left_out_with_a_note(calls, monkeypatch):
    def prepare(workload, *rest, original=module.prepare):
        if workload.setting.length == 8:
            raise MemoryError
        return original(workload, *rest)

    monkeypatch.setattr(module, "prepare", prepare)
    records, notes = measure(Request(("lstm",), SIZES, ("generation",), ("default",), {}, 1), CPU, "processor")
    assert [one.length for one in records] == [4]
    assert notes == ["not enough memory: generation lstm default 8 16 2"]


def workload(arch: str, variant: str = "default", work: str = "generation", length: int = 7) -> Workload:
    sizes = parse_axes([f"length={length}", "width=16", "batch=3"])
    request = Request((arch,), sizes, (work,), tuple(VARIANTS), {})
    setting = Setting(work, arch, variant, length, 16, 3)
    config = config_of(setting, request)
    return Workload(setting, config, build(config, CPU), CPU)


@pytest.mark.parametrize("arch", models.built_in())
def test_generation_with_and_without_a_cache_gives_the_same_tokens(arch):
    cached, uncached, explicit = (workload(arch, variant).generate() for variant in ("default", "uncached", "explicit"))
    assert cached == uncached == explicit
    assert [len(tokens) for tokens in cached] == [7, 7, 7]


@pytest.mark.parametrize("variant", ["explicit", "checkpointing"])
def test_a_step_has_the_same_gradient_in_every_variant(variant):
    gradients = []
    for name in ("default", variant):
        step = workload("transformer", name, "training")
        step()
        gradients.append([parameter.grad for parameter in step.trainee.model.parameters()])
    torch.testing.assert_close(*gradients)
