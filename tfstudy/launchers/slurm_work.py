"""What a Slurm job does on its node."""

import os
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

from tfstudy.launchers import JobExit
from tfstudy.launchers.job import BUSY, FAILED, REFUSED, SUCCEEDED, Job
from tfstudy.launchers.subprocess_job import execute
from tfstudy.launchers.supervisor import reason_of
from tfstudy.runs.writer import write_failure

STOP_SIGNALS = (-signal.SIGTERM, -signal.SIGUSR2)  # by which Slurm ends all processes of a job
SIGNAL_DELAY = 2.0  # seconds by which a signal may reach one process of a job after another
END_SECONDS = 600.0  # that Slurm may take to end a job after its signal


class Work(NamedTuple):
    """What submitit runs on a node, and runs again there when the time limit is reached."""

    job: Job
    folder: str
    timeout: float
    attempts: int = 1  # 2 if no launcher waits for the job, to retry it

    def __call__(self) -> tuple[int, str]:
        signals: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
        attempts, code, reason = 0, FAILED, ""
        while attempts < self.attempts and code not in (SUCCEEDED, BUSY, REFUSED):
            attempts += 1
            code, reason = execute(self.job, self.folder, self.timeout)
            if code != SUCCEEDED:
                time.sleep(SIGNAL_DELAY)  # when the time limit is reached, submitit takes over here
            if signals or code in STOP_SIGNALS:
                time.sleep(END_SECONDS)  # Slurm may requeue the job; a returned result would count as a failure
                os._exit(128 + signal.SIGTERM)
        if self.attempts > 1 and code not in (SUCCEEDED, BUSY):
            write_failure(Path(self.job.path), reason_of(JobExit(self.job, code, reason)), attempts)
        return code, reason

    def checkpoint(self) -> Any:
        """Submit the same work again, which resumes from the run's folder."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)
