"""Graphs without CUDA: a replay computes the captured work once more."""

from contextlib import nullcontext

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.training.small_training import trained
from tfstudy.training.graphs import CaptureError, Execution, Graphs
from tfstudy.training.module import Seq2Seq

WAITING = (  # operations whose result decides on the CPU what comes next, so that it waits for the device
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.masked_select.default,
    torch.ops.aten._unique2.default,
    torch.ops.aten.unique_dim.default,
    torch.ops.aten.repeat_interleave.Tensor,
    torch.ops.aten.equal.default,
    torch.ops.aten.is_nonzero.default,
)
INDEXING = (torch.ops.aten.index.Tensor, torch.ops.aten.index_put_.default, torch.ops.aten.index_put.default)


class NoWaiting(TorchDispatchMode):
    """Refuses what a graph can't hold: waiting for the device, shapes that depend on data, copies between devices."""

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        by_mask = operation in INDEXING and any(i is not None and i.dtype == torch.bool for i in arguments[1])
        if operation in WAITING or by_mask:
            raise AssertionError(f"{operation} waits for the device")
        result = operation(*arguments, **(keywords or {}))
        if operation in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default):
            given = [x.device for x in arguments if isinstance(x, torch.Tensor)]
            assert {result.device} == set(given), f"{operation} copies from {given} to {result.device}"
        return result


class Repeated(Graphs):
    """Replays by calling. With `refuse`, nothing can be captured; with `watch`, the first replay must not wait."""

    def __init__(self, refuse: bool = False, watch: bool = False) -> None:
        self.refuse, self.watch, self.captures, self.replays = refuse, watch, 0, 0

    def warm_up(self, work):
        work()

    def capture(self, work):
        if self.refuse:
            raise CaptureError("operation not permitted when stream is capturing")
        self.captures += 1
        first = self.watch

        def replay():
            nonlocal first
            self.replays += 1
            with NoWaiting() if first else nullcontext():
                work()
            first = False

        return replay


class ReplayedExecution(Execution):
    """Chooses graphs on a CPU."""

    def __init__(self, requested: str = "graphed", graphs: Repeated | None = None) -> None:
        self.recorded, self.reported = [], []
        super().__init__(requested, self.recorded.append, self.reported.append)
        self.given = graphs or Repeated()

    def obstacle(self, config, data, trainer):
        return ""

    def graphs(self):
        return self.given


def graphed(*args, execution: Execution | None = None, **settings) -> Seq2Seq:
    """A module after training with steps that are replayed."""
    return trained(*args, execution=execution or ReplayedExecution(), **settings)
