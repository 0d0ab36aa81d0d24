"""Cohorts: several runs that train in one process, each in its own thread.

Exactly one member runs at any time: the one that has the baton. It passes the baton on at its training step (`step`),
and when it ends. So all members meet at their steps: between two turns of a member, every other member has taken one
step, or has ended. On a CPU the steps are computed in turn. A `launch` may compute those of all members together.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import torch

from tfstudy.training.process_state import ProcessState

T = TypeVar("T")
Work = Callable[[], Any]  # a training step of one member, which may also have attributes for `launch`
Launch = Callable[[Sequence[Work]], Sequence[Any]]  # computes steps of several members; returns what each would return


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

    def __init__(self, launch: Launch | None = None, cuda: bool = False) -> None:
        self._clean = ProcessState.capture()
        self._shared: dict[str, Any] = {}
        self._lock = threading.Lock()  # of the ring
        self._ring: deque[_CohortMember] = deque()  # the living members; the first has the baton
        self._launch, self._cuda = launch, cuda

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
        """Compute the step of the member that has the baton, in turn or together with those of all other members."""
        if self._launch is None:
            result = work()
            self._pass_on(member)
            return result
        member.work = work
        self._pass_on(member)
        if member.work is not None:  # it was the first to come, and all others have come by now
            self._meet(self._launch)
        if member.error:
            raise member.error
        return member.result  # type: ignore[no-any-return]

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

    def _meet(self, launch: Launch) -> None:
        """Compute the waiting steps together; their members share the time since they met last equally."""
        with self._lock:
            members = [member for member in self._ring if member.work is not None]
        results: Sequence[Any] = [None] * len(members)
        error: Exception | None = None
        try:
            results = launch([member.work for member in members if member.work is not None])
        except Exception as failure:
            error = failure
        now = time.monotonic()
        members[0].active += now - members[0].since
        members[0].since = now
        share = sum(member.active - member.met for member in members) / len(members)
        for member, result in zip(members, results, strict=True):
            member.met += share
            member.active = member.met
            member.work, member.result, member.error = None, result, error


class _CohortMember(Member):
    """A member of a cohort, which waits for its turn."""

    def __init__(self, cohort: Cohort, size: int, shared: dict[str, Any]) -> None:
        super().__init__(size, shared)
        self._cohort = cohort
        self.turn = threading.Lock()  # another member releases it when this one gets the baton
        self.turn.acquire()
        self.since = self.active = self.met = 0.0  # start of its turn; seconds of earlier turns, and when it last met
        self.work: Work | None = None
        self.result: Any = None
        self.error: Exception | None = None

    def step(self, work: Callable[[], T]) -> T:
        return self._cohort.step(self, work)

    def seconds(self) -> float:
        return self.active + time.monotonic() - self.since
