"""Peak memory of tensors: counted exactly on CPU, as the allocator reports it on CUDA."""

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


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
            if storage._cdata not in self._known | before:
                self._add(storage)
        self.peak = max(self.peak, self.current)
        return results

    def _add(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        self._known.add(key)
        self.current += size
        weakref.finalize(storage, self._release, key, size)

    def _release(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.current -= size


def _storages(tree: Any) -> Iterator[torch.UntypedStorage]:
    for leaf in tree_iter(tree):
        if isinstance(leaf, Tensor):
            yield leaf.untyped_storage()


def peak_bytes(work: Callable[[], object], device: torch.device) -> int:
    """Return the most bytes that tensors have at a time during `work`, beyond those that exist before."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with LiveTensors() as live:
        work()
    peak: int = live.peak
    return peak


def size_of(tensors: Iterator[Tensor]) -> int:
    """Return the bytes of tensors, each storage once."""
    return sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}.values())
