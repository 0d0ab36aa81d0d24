"""Cohorts: several runs that train in one process, each in its own thread.

Exactly one member runs at any time: the one that has the baton. It passes the baton on at its training step (`step`),
and when it ends. So all members meet at their steps: between two turns of a member, every other member has taken one
step, or has ended. A CPU computes the steps in turn. On CUDA they are only launched in turn, each on the stream of its
member, so the device computes them side by side.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

import torch

from tfstudy.training.process_state import ProcessState

T = TypeVar("T")


class Member:
    """What a run knows of its cohort. This class: a run that is alone in its process."""

    def __init__(self, size: int = 1, shared: dict[str, Any] | None = None) -> None:
        self.size = size  # how many runs the process may train together
        self.shared = shared  # data that the runs of a process share; None: nothing is kept after the run

    def step(self, work: Callable[[], T]) -> T:
        """Compute a training step and return its value, while the other members take theirs."""
        return work()

    def seconds(self) -> float:
        """Return a clock that stands still while other members run."""
        return time.monotonic()


ALONE = Member()


class Cohort:
    """Runs that share a process. Each gets the global state in which the cohort was made, and keeps its own from then
    on, so that on a CPU it computes what it would compute alone. With `cuda` each has its own stream, so that their
    kernels overlap, and its own state of the generator, to which its graphs refer."""

    def __init__(self, cuda: bool = False) -> None:
        self._clean = ProcessState.capture()
        self._shared: dict[str, Any] = {}
        self._lock = threading.Lock()  # of the ring
        self._ring: deque[_CohortMember] = deque()  # the living members; the first has the baton
        self._cuda = cuda

    def start(self, run: Callable[[Member], None], size: int = 1) -> threading.Thread:
        """Start a member of a cohort of this size in a new thread, which ends with `run`."""
        member = _CohortMember(self, size, self._shared)
        thread = threading.Thread(target=self._take_part, args=(member, run), daemon=True)
        with self._lock:
            self._ring.append(member)
            if len(self._ring) == 1:
                member.turn.release()
        thread.start()
        return thread

    def _take_part(self, member: "_CohortMember", run: Callable[[Member], None]) -> None:
        member.turn.acquire()
        self._clean.restore_copy()
        member.since = time.monotonic()
        try:
            with torch.cuda.stream(torch.cuda.Stream()) if self._cuda else nullcontext():  # type: ignore[no-untyped-call]
                run(member)
        finally:
            self._clean.restore()
            with self._lock:
                self._ring.popleft()
                if self._ring:
                    self._ring[0].turn.release()

    def step(self, member: "_CohortMember", work: Callable[[], T]) -> T:
        """Compute the step of the member that has the baton, and let every other member have its turn."""
        result = work()
        self._pass_on(member)
        return result

    def _pass_on(self, member: "_CohortMember") -> None:
        """Let every other member have its turn."""
        with self._lock:
            if len(self._ring) == 1:
                return
            self._ring.rotate(-1)
            following = self._ring[0]
        state = ProcessState.capture()
        member.active += time.monotonic() - member.since
        following.turn.release()
        member.turn.acquire()
        member.since = time.monotonic()
        state.restore()
        state.close()


class _CohortMember(Member):
    """A member of a cohort, which waits for its turn."""

    def __init__(self, cohort: Cohort, size: int, shared: dict[str, Any]) -> None:
        super().__init__(size, shared)
        self._cohort = cohort
        self.turn = threading.Lock()  # another member releases it when this one gets the baton
        self.turn.acquire()
        self.since = self.active = 0.0  # start of its turn; seconds of earlier turns

    def step(self, work: Callable[[], T]) -> T:
        return self._cohort.step(self, work)

    def seconds(self) -> float:
        return self.active + time.monotonic() - self.since
