"""What is counted, and does not depend on the load of the machine: FLOPs, and the peak memory of tensors.

FLOPs are those of torch's counter, with formulas for the fused operators that it does not know. Memory is counted
exactly on a CPU, and is what the allocator reports on CUDA.
"""

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from tfstudy.performance.record import Flops

aten = torch.ops.aten


def _recurrent(x: Sequence[int], weights: Any, *more: Any, out_shape: Any = None, **_: Any) -> int:
    """Return the FLOPs of a recurrent layer: each matrix is multiplied with a vector at every position.

    For an LSTM from `d` to `h` units these are 2 (4 h d + 4 h h) = 8 h (d + h) at a position. cuDNN gets all directions
    and layers as one list of weights, oneDNN the two matrices of one layer.
    """
    listed = isinstance(weights[0], Sequence)
    matrices = [shape for shape in weights if len(shape) == 2] if listed else [weights, more[0]]
    return 2 * math.prod(x[:-1]) * sum(map(math.prod, matrices))


def _recurrent_backward(*shapes: Any, **options: Any) -> int:
    return 2 * _recurrent(*shapes, **options)  # a product of matrices has two gradients, each of the same size


FORMULAS: Mapping[Any, Callable[..., int]] = {  # attention computes all pairs, with a causal mask too
    aten.mkldnn_rnn_layer: _recurrent,
    aten.mkldnn_rnn_layer_backward: _recurrent_backward,
    aten._cudnn_rnn: _recurrent,
    aten._cudnn_rnn_backward: _recurrent_backward,
    aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),  # type: ignore[no-untyped-call]
    aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        lambda gradient, q, k, v, *_, **__: sdpa_backward_flop_count(gradient, q, k, v)  # type: ignore[no-untyped-call]
    ),
}
PRODUCTS = ("bmm", "baddbmm", "scaled_dot_product")  # of two tensors of activations: scores, and weighted values


def count(work: Callable[[], object], model: nn.Module) -> Flops:
    """Return the FLOPs of what `work` does with a model: those of products of matrices, convolutions and attention."""
    with FlopCounterMode(display=False, custom_mapping=dict(FORMULAS)) as counter:
        # The counter names a module when its parent is called, which some parents are not.
        for name, module in model.named_modules():
            counter.mod_tracker._known_modules[module] = f"model.{name}"
        work()
    by_module = {name: sum(flops.values()) for name, flops in counter.get_flop_counts().items()}
    attention = sum(
        flops for op, flops in counter.get_flop_counts().get("Global", {}).items()
        if any(name in str(op) for name in PRODUCTS)
    )  # fmt: skip
    feedforward = sum(flops for name, flops in by_module.items() if name.endswith(".feedforward"))
    return Flops(by_module.get("Global", 0), attention, feedforward)


class LiveTensors(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Within this context, counts the bytes of all tensors that operators allocate, until they are released.

    `peak` is the largest number so far. What a kernel allocates and releases within one operator is not seen. The
    result depends only on what is computed, and not on the allocator or the load of the machine.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.current = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        before = {storage._cdata for storage in _storages((args, kwargs))}
        for storage in _storages(results):
            if (key := storage._cdata) not in self._known | before:
                self._known.add(key)
                self.current += storage.nbytes()
                weakref.finalize(storage, self._release, key, storage.nbytes())
        self.peak = max(self.peak, self.current)
        return results

    def _release(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.current -= size


def _storages(tree: Any) -> Iterator[torch.UntypedStorage]:
    yield from (leaf.untyped_storage() for leaf in tree_iter(tree) if isinstance(leaf, Tensor))


def peak_bytes(work: Callable[[], object], device: torch.device) -> int:
    """Return the most bytes that tensors have at a time during `work`, beyond those that exist before."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return torch.cuda.max_memory_allocated() - before
    with LiveTensors() as live:
        work()
    return int(live.peak)


def size_of(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of tensors, each storage once."""
    return sum({storage._cdata: storage.nbytes() for storage in _storages([*tensors])}.values())
