"""Rounds over all settings, each with its number of steps; variants compute the same; FLOPs against closed forms, and
peak memory, counted exactly."""

from functools import partial

import pytest
import torch
from torch import nn

from tfstudy import models
from tfstudy.models.tokens import Tokens
from tfstudy.performance import measure as module
from tfstudy.performance.measure import count, explicit_attention, measure, peak_bytes, size_of, workload
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


# FLOPs and memory

FLOAT = 4  # bytes
BATCH, DIM, INNER, LAYERS, VOCAB = 3, 16, 24, 2, 11
TRANSFORMER = models.find("transformer")


@pytest.fixture
def transformer():
    config = TRANSFORMER.Config(
        dim=DIM, heads=2, feedforward=INNER, encoder_layers=LAYERS, decoder_layers=LAYERS, dropout=0.0
    )
    return TRANSFORMER(config, VOCAB, VOCAB)


def tokens(length: int) -> Tokens:
    return Tokens.of(torch.randint(4, VOCAB, (BATCH, length)))


def products(queries: int, keys: int) -> int:
    """FLOPs of the scores and of the weighted values of one sequence."""
    return 4 * queries * keys * DIM


@pytest.mark.parametrize("explicit", [False, True])
def test_a_transformer_has_the_flops_of_its_formula(transformer, explicit):
    source, target = 7, 5
    feedforward = LAYERS * (source + target) * 2 * 2 * DIM * INNER
    encoder = LAYERS * (source * 2 * 4 * DIM**2 + products(source, source))
    own = target * 2 * 4 * DIM**2 + products(target, target)
    cross = (target + source) * 2 * 2 * DIM**2 + products(target, source)
    attention = LAYERS * (products(source, source) + products(target, target) + products(target, source))
    total = encoder + LAYERS * (own + cross) + feedforward + 2 * target * DIM * VOCAB
    work = partial(transformer, tokens(source), tokens(target))
    with explicit_attention(transformer) if explicit else torch.enable_grad():
        found = count(work, transformer)
    assert (found.total, found.attention, found.feedforward) == (BATCH * total, BATCH * attention, BATCH * feedforward)


def test_a_gradient_has_twice_the_flops_and_the_fused_kernel_computes_the_scores_again(transformer):
    x = tokens(6)

    def step():
        transformer(x, x).sum().backward()

    forward = count(partial(transformer, x, x), transformer)
    fused = count(step, transformer)
    with explicit_attention(transformer):
        explicit = count(step, transformer)
    assert explicit.total == 3 * forward.total
    assert explicit.feedforward == 3 * forward.feedforward
    assert fused.total - explicit.total == forward.attention / 2


def test_an_lstm_has_8_h_times_d_plus_h_flops_for_each_token():
    dim, hidden, length = 5, 7, 4
    lstm, x = nn.LSTM(dim, hidden, batch_first=True), torch.randn(BATCH, length, dim)
    forward = 8 * hidden * (dim + hidden) * BATCH * length
    assert count(partial(lstm, x), lstm).total == forward
    cell = nn.LSTMCell(dim, hidden)  # the same arithmetic as separate products of matrices
    assert count(lambda: [cell(step) for step in x.unbind(1)], cell).total == forward
    x.requires_grad_()
    assert count(lambda: lstm(x)[0].sum().backward(), lstm).total == 3 * forward


def test_the_peak_is_that_of_the_tensors_that_exist_at_the_same_time():
    def work():
        a = torch.zeros(1000)
        b = a + 1  # two
        del a
        c = b.view(10, 100).mul_(2)  # no memory of its own
        d = c @ c.new_ones(100, 5)  # 1000 + 500 + 50
        return d.sum()

    assert peak_bytes(work, CPU) == 2000 * FLOAT
    x = torch.zeros(100)
    assert size_of(iter([x, x[:50], x.view(10, 10)])) == 100 * FLOAT, "a tensor and its views are one"


@pytest.mark.parametrize(("explicit", "growth"), [(True, 4), (False, 2)])
def test_memory_grows_with_the_square_of_the_length_only_if_attention_is_explicit(explicit, growth):
    model = TRANSFORMER(TRANSFORMER.Config(dim=8, heads=4, feedforward=8, dropout=0.0), 9, 9)

    def peak(length: int) -> int:
        x = Tokens.of(torch.full((1, length), 5))
        with explicit_attention(model) if explicit else torch.enable_grad():
            return peak_bytes(lambda: model(x, x).sum().backward(), CPU)

    assert peak(512) / peak(256) == pytest.approx(growth, rel=0.1)
