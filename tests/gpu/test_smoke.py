"""Every architecture trains for 50 steps, eager and graphed, with the same result. The first test of `make gpu`."""

import pytest

from tests.gpu.gpu_training import LONG, Trained
from tests.training.small_training import ARCHITECTURES, same


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_graphed_steps_train_as_eager_steps_do(arch):
    eager, graphed = Trained("eager", arch, **LONG), Trained("graphed", arch, **LONG)
    assert (eager.recorded, graphed.recorded) == (["eager"], ["graphed"])
    assert graphed.logged("train_loss") == pytest.approx(eager.logged("train_loss"), rel=1e-3)
    assert graphed.logged("gradient_norm") == pytest.approx(eager.logged("gradient_norm"), rel=1e-2)
    assert same(eager.module, graphed.module, atol=1e-3)
