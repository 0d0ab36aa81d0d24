"""Measuring: the settings, in rounds over all of them, each with its number of steps; variants compute the same."""

import pytest
import torch

from tfstudy import models
from tfstudy.performance import measure as module
from tfstudy.performance.measure import measure, workload
from tfstudy.performance.record import AXES, VARIANTS, WORKS, Request, Setting, config_of, parse_request

CPU = torch.device("cpu")
SIZES = {"length": (4, 8), "width": (16,), "batch": (2,)}


@pytest.fixture
def calls(monkeypatch):
    """The settings that were timed; each step takes a hundredth of a second."""
    calls = []

    def timed(one, steps):
        calls.append((one.setting, steps))
        return 0.01, 0.02

    monkeypatch.setattr(module, "timed", timed)
    return calls


def test_every_round_times_every_setting_once_in_an_order_of_its_own(calls):
    request = Request(("lstm",), SIZES, ("training",), ("default", "checkpointing"), repeats=4)
    records, notes = measure(request, CPU, "processor")
    settings = set(request.settings())
    rounds = [[setting for setting, _ in calls[n : n + 4]] for n in range(4, 20, 4)]  # after one step of each
    assert all(set(one) == settings for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1
    assert [steps for _, steps in calls] == [1] * 4 + [5] * 16
    assert [one.seconds for one in records] == [(0.01,) * 4] * 4
    assert (records[0].cpu_seconds[0], records[0].memory, records[0].flops, notes) == (0.02, None, None, [])


def test_every_variant_is_measured_where_it_differs_and_a_setting_without_enough_memory_is_noted(calls, monkeypatch):
    def prepare(one, *rest, original=module.prepare):
        if one.setting.length == 8:
            raise MemoryError
        return original(one, *rest)

    monkeypatch.setattr(module, "prepare", prepare)
    records, notes = measure(Request(("transformer",), SIZES, (*WORKS, "memory", "flops"), tuple(VARIANTS)), CPU, "")
    every = [(work, variant) for work in WORKS for variant, works in VARIANTS.items() if work in works]
    assert [(one.work, one.variant) for one in records] == every
    assert notes == [f"not enough memory: {work} transformer {variant} 8 16 2" for work, variant in every]
    assert all(one.memory > one.step_memory > 0 and one.flops.total > 0 for one in records)
    by_variant = {one.variant: one for one in records if one.work == "training"}
    assert by_variant["checkpointing"].flops.total > by_variant["default"].flops.total
    assert by_variant["checkpointing"].flops.feedforward is None


def step(arch: str, variant: str, work: str):
    setting = Setting(work, arch, variant, 7, 16, 3)
    config = config_of(setting, Request((arch,), AXES, (work,), tuple(VARIANTS)))
    return workload(setting, config, CPU, {})


@pytest.mark.parametrize("arch", models.built_in())
def test_generation_with_and_without_a_cache_gives_the_same_tokens(arch):
    cached, uncached, explicit = (step(arch, one, "generation")() for one in ("default", "uncached", "explicit"))
    assert cached == uncached == explicit
    assert [len(tokens) for tokens in cached] == [7, 7, 7]


@pytest.mark.parametrize("variant", ["explicit", "checkpointing"])
def test_a_step_has_the_same_gradient_in_every_variant(variant):
    gradients = []
    for name in ("default", variant):
        one = step("transformer", name, "training")
        one()
        gradients.append([parameter.grad for parameter in one.model.parameters()])
    torch.testing.assert_close(*gradients)


def test_what_is_asked_for_becomes_the_configs_of_models():
    words = ["batch=2,4,2", "width=256", "length=8"]
    request = parse_request("lstm, transformer", words, "training", "bf16,default,checkpointing", ["model.heads=8"], 3)
    assert [*request.axes.items()] == [("batch", (2, 4)), ("width", (256,)), ("length", (8,))]
    configs = {setting[1:3]: config_of(setting, request) for setting in request.settings() if setting.batch == 2}
    assert [variant for arch, variant in configs if arch == "lstm"] == ["default", "checkpointing", "bf16"]
    model = configs["transformer", "default"].model
    assert (model.dim, model.feedforward, model.heads) == (256, 512, 8), "all widths are scaled together"
    steps = {variant: config.train for (arch, variant), config in configs.items() if arch == "lstm"}
    assert [one.gradient_checkpointing for one in steps.values()] == [False, True, False]
    assert steps["bf16"].precision == "bf16-mixed"
