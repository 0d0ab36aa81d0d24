"""CUDA graphs: work that is captured once and replayed with a single launch. Everything that needs CUDA is here."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch

Work = Callable[[], None]  # reads and writes tensors that keep their place


class CaptureError(RuntimeError):
    """The work can't be captured in a graph. Nothing of it was computed, and it can be computed without one."""


class Graphs(ABC):
    """Captures work. All graphs of one object share their memory, so only one of them may run at a time."""

    @abstractmethod
    def warm_up(self, work: Work) -> None:
        """Compute the work as it will be captured, so that what torch sets up at the first call exists."""

    @abstractmethod
    def capture(self, work: Work) -> Work:
        """Return what replays the work; the capture computes nothing. `CaptureError` if it can't be captured."""


class CudaGraphs(Graphs):
    """CUDA graphs on the current device. Torch's global generator is part of each: a new seed counts in a replay."""

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()

    def warm_up(self, work: Work) -> None:
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            work()
        current.wait_stream(self._stream)

    def capture(self, work: Work) -> Work:
        graph, current = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                work()
        except RuntimeError as error:  # also what the CUDA driver raises
            torch.cuda.set_stream(current)  # `torch.cuda.graph` does not return to it after an error
            _renew_generator()
            cause = error.__context__ or error  # ending a failed capture raises another error
            raise CaptureError(str(cause).partition("\n")[0]) from error
        return graph.replay


def _renew_generator() -> None:
    """Give torch's global CUDA generator a state of its own: a failed capture leaves the old one in capture mode."""
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    fresh = torch.Generator(generator.device).manual_seed(generator.initial_seed())
    generator.graphsafe_set_state(fresh.graphsafe_get_state())
