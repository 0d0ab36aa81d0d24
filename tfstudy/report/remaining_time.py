"""How long a batch of jobs will still take: its estimates, corrected by the jobs that have finished."""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import mean

from tfstudy.launchers import Job

MAX_SINGLE = 1000  # up to this number of jobs, the remaining time is computed job by job


class RemainingTime:
    """The remaining time of jobs with estimated `seconds` by path; some jobs may have no estimate."""

    def __init__(self, jobs: Sequence[Job], seconds: Mapping[str, float], max_parallel: Callable[[], int]) -> None:
        self._seconds, self._max_parallel = dict(seconds), max_parallel
        self._open = {job.path for job in jobs}
        estimates = [seconds[path] for path in self._open if path in seconds]
        self._known, self._unknown = sum(estimates), len(jobs) - len(estimates)  # seconds; jobs without an estimate
        self._mean_estimate = mean(estimates) if estimates else None
        self._finished, self._elapsed = 0, 0.0  # jobs that finished, and their seconds
        self._estimated = self._elapsed_of_estimated = 0.0  # of the finished jobs with an estimate

    def ended(self, path: str) -> None:
        """Record that a job finished or failed."""
        self._open.discard(path)
        self._known -= self._seconds.get(path, 0.0)
        self._unknown -= path not in self._seconds

    def finished(self, path: str, seconds: float) -> None:
        """Record the seconds of a finished job; 0 if another process ran it."""
        self._finished += seconds > 0
        self._elapsed += seconds
        if seconds and path in self._seconds:
            self._estimated += self._seconds[path]
            self._elapsed_of_estimated += seconds

    def seconds_left(self, running: Mapping[str, float]) -> float | None:
        """Return the seconds until all jobs have ended; None if nothing is known. `running`: path to start time."""
        correction = self._elapsed_of_estimated / self._estimated if self._estimated else 1.0
        average = self._elapsed / self._finished if self._finished else self._mean_estimate
        if average is None:
            return None
        now, parallel = time.monotonic(), max(1, self._max_parallel())
        if len(self._open) > max(MAX_SINGLE, 4 * parallel):  # too many jobs for a single one to matter
            return (self._known * correction + self._unknown * average) / parallel

        def job_seconds(path: str) -> float:
            cost = self._seconds[path] * correction if path in self._seconds else average
            return max(0.0, cost - (now - running[path] if path in running else 0.0))

        times = [job_seconds(path) for path in self._open]
        return max(max(times), sum(times) / parallel) if times else 0.0
