"""What Python, numpy and torch keep once for the whole process and a run may change: captured and restored.

What a thread keeps for itself (gradient mode, autocast, context variables) needs no care, since every member of a
cohort has its own thread.
"""

import copy
import os
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import torch
from numpy.random import mtrand

STREAMS = (1, 2)  # file descriptors: standard output, standard error


class ProcessState(NamedTuple):
    """The state of a process; `close` it when it is no longer needed."""

    settings: tuple[Any, ...]  # of `SETTINGS`, in their order
    streams: tuple[int, ...]  # duplicates of `STREAMS`

    @classmethod
    def capture(cls) -> Self:
        """Return the state of this process; what was printed so far is written to where it belongs."""
        sys.stdout.flush()
        sys.stderr.flush()
        return cls(tuple(read() for read, _ in SETTINGS), tuple(map(os.dup, STREAMS)))

    def restore(self) -> None:
        """Give this process the state again. The number of threads is that of the calling thread."""
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, kept in zip(STREAMS, self.streams, strict=True):
            os.dup2(kept, stream)
        for (_, write), value in zip(SETTINGS, self.settings, strict=True):
            write(value)

    def restore_copy(self) -> None:
        """The same, such that this state can be restored again whatever happens to the process."""
        self.restore()
        mtrand.set_bit_generator(copy.deepcopy(mtrand.get_bit_generator()))
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            _set_cuda_generator(torch.Generator("cuda").graphsafe_get_state())
        warnings.filters = list(warnings.filters)

    def close(self) -> None:
        """Close the duplicates of the streams."""
        for stream in self.streams:
            os.close(stream)


def _cuda_generator() -> torch.Generator | None:
    """The state of the current device's generator, which graphs that draw from it refer to; None without CUDA."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return None
    return torch.cuda.default_generators[torch.cuda.current_device()].graphsafe_get_state()


def _set_cuda_generator(state: torch.Generator | None) -> None:
    if state is not None:
        torch.cuda.default_generators[torch.cuda.current_device()].graphsafe_set_state(state)


def _deterministic() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _set_deterministic(state: tuple[bool, bool]) -> None:
    if state != _deterministic():
        torch.use_deterministic_algorithms(state[0], warn_only=state[1])


def _cudnn() -> tuple[bool, bool, bool]:
    return torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32


def _set_cudnn(state: tuple[bool, bool, bool]) -> None:
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32 = state


def _set_filters(filters: list[Any]) -> None:
    if filters is not warnings.filters:
        with warnings.catch_warnings():  # it drops what Python remembers of the filters
            pass
        warnings.filters = filters


def _set_python_streams(streams: tuple[Any, Any]) -> None:
    sys.stdout, sys.stderr = streams


SETTINGS: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (torch.get_rng_state, torch.set_rng_state),
    (_cuda_generator, _set_cuda_generator),
    (random.getstate, random.setstate),
    (mtrand.get_bit_generator, mtrand.set_bit_generator),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (_deterministic, _set_deterministic),
    (_cudnn, _set_cudnn),
    (lambda: warnings.filters, _set_filters),
    (lambda: (sys.stdout, sys.stderr), _set_python_streams),
)
