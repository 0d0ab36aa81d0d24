"""CUDA graphs of training steps: the result first, then randomness, resuming, precision, failures."""

import shutil

import pytest
import torch
from torch import Tensor

from tests.gpu.gpu_training import LONG, Trained, trained
from tests.training.replayed import ReplayedExecution
from tests.training.small_training import ARCHITECTURES, same
from tests.training.test_resuming import Interrupt, InterruptionError
from tfstudy.models.dropout import Dropout
from tfstudy.training.callbacks import Checkpoints
from tfstudy.training.graphs import CaptureError, Graphs

KEPT = 0.75
SHAPE = (512, 1024)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_graphed_steps_train_as_eager_steps_do(arch):
    eager, graphed = Trained("eager", arch, **LONG), Trained("graphed", arch, **LONG)
    assert (eager.recorded, graphed.recorded) == (["eager"], ["graphed"])
    assert graphed.logged("train_loss") == pytest.approx(eager.logged("train_loss"), rel=1e-3)
    assert graphed.logged("gradient_norm") == pytest.approx(eager.logged("gradient_norm"), rel=1e-2)
    assert same(eager.module, graphed.module, atol=1e-3)


def captured_masks(compiled: bool, seeds) -> list[Tensor]:
    """Two dropout masks of one captured step, after each seed: the booleans (2, *SHAPE)."""
    layer = Dropout(1 - KEPT).cuda()

    def two(x: Tensor) -> Tensor:
        return torch.stack([layer(x), layer(x * 2)])

    function = torch.compile(two) if compiled else two
    ones, out = torch.ones(SHAPE, device="cuda"), torch.zeros(2, *SHAPE, device="cuda")
    graphs = Graphs()

    def work() -> None:
        out.copy_(function(ones))

    graphs.warm_up(work)
    graphs.warm_up(work)
    replay, masks = graphs.capture(work), []
    for seed in seeds:
        torch.manual_seed(seed)
        replay()
        masks.append(out != 0)
    return masks


@pytest.mark.parametrize("compiled", [False, True], ids=["captured", "compiled"])
def test_dropout_masks_are_independent_over_steps_calls_and_rows(compiled):
    first, again, other = captured_masks(compiled, [1, 1, 2])
    chance = KEPT**2 + (1 - KEPT) ** 2
    assert torch.equal(first, again), "the seed of a step determines its masks"
    assert float(first.float().mean()) == pytest.approx(KEPT, abs=0.005)
    for one, two in [
        (first, other),
        (first[0], first[1]),
        (first[:, 1:], first[:, :-1]),
        (first[..., 4:], first[..., :-4]),
    ]:
        assert float((one == two).float().mean()) == pytest.approx(chance, abs=0.005)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_graphs_draw_the_dropout_of_the_same_steps_without_graphs(arch):
    """Both pad batches alike, so all random numbers are the same."""
    assert same(trained("graphed", arch, 0.2, **LONG), trained(ReplayedExecution(), arch, 0.2, **LONG), atol=1e-3)


@pytest.mark.parametrize(("first", "second"), [("eager", "graphed"), ("graphed", "eager"), ("graphed", "graphed")])
def test_a_run_resumes_with_either_way_of_computing_steps(first, second, tmp_path):
    settings = {"steps": 6, "validation_interval": 2, "adam_epsilon": 1e-3}
    with pytest.raises(InterruptionError):
        trained(first, callbacks=[Checkpoints(tmp_path, "0"), Interrupt()], **settings)
    resumed = trained(second, callbacks=[Checkpoints(tmp_path, "0")], resume=tmp_path / "last.ckpt", **settings)
    assert same(resumed, trained("eager", **settings), atol=1e-3)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_loss_in_bf16_is_near_that_in_float32(arch):
    full = Trained("eager", arch, **LONG).logged("train_loss")
    mixed = Trained("graphed", arch, precision="bf16-mixed", **LONG).logged("train_loss")
    assert mixed == pytest.approx(full, rel=0.05)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_compiled_and_graphed_steps_train_as_eager_steps_do(arch):
    if not shutil.which("gcc"):
        pytest.skip("torch.compile needs a compiler")
    compiled = Trained("graphed", arch, compile=True, **LONG)
    assert compiled.recorded == ["compiled and graphed"]
    assert compiled.logged("train_loss") == pytest.approx(Trained("eager", arch, **LONG).logged("train_loss"), rel=1e-2)


def test_after_a_failed_capture_everything_works():
    x, stream = torch.ones(1000, device="cuda"), torch.cuda.current_stream()

    def work() -> None:
        torch.nn.functional.dropout(x, 0.5).sum().item()

    with pytest.raises(CaptureError):
        Graphs().capture(work)
    assert torch.cuda.current_stream() == stream
    torch.manual_seed(3)
    first = torch.nn.functional.dropout(x, 0.5)
    torch.manual_seed(3)
    assert torch.equal(first, torch.nn.functional.dropout(x, 0.5))
    assert same(trained("graphed", **LONG), trained("eager", **LONG), atol=1e-3)
