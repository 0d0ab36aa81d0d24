"""What is timed: variants compute the same."""

import pytest
import torch

from tfstudy import models
from tfstudy.performance.record import VARIANTS
from tfstudy.performance.settings import Request, Setting, config_of, parse_axes
from tfstudy.performance.workloads import Workload, build

CPU = torch.device("cpu")


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


def test_a_step_in_mixed_precision_has_nearly_the_same_gradient():
    gradients = []
    for name in ("default", "bf16"):
        step = workload("lstm", name, "training")
        step()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in step.trainee.model.parameters()]))
    assert 0.9 < torch.cosine_similarity(*gradients, dim=0) < 1 - 1e-7


def test_a_step_updates_the_parameters():
    step = workload("cnn", work="training")
    before = [parameter.clone() for parameter in step.trainee.model.parameters()]
    step()
    after = step.trainee.model.parameters()
    assert not any(torch.equal(old, new) for old, new in zip(before, after, strict=True) if new.grad.any())
