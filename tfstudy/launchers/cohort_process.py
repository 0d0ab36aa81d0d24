"""The process of a cohort: it trains the jobs that its launcher sends, each as a member in its own thread."""

import gc
import os
import signal
import sys
import traceback
from functools import partial
from multiprocessing.connection import Connection
from typing import NamedTuple

from tfstudy.launchers.job import FAILED, Job, perform
from tfstudy.launchers.local import enter
from tfstudy.training.cohort import Cohort, Member

CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"  # to a device, 8 by default: more streams would wait for each other


class Ended(NamedTuple):
    """How a member ended."""

    path: str  # of its run
    code: int  # an exit code of `job.perform`
    seconds: float  # its share of the time of the process


def serve(connection: Connection, environment: dict[str, str], cuda: bool) -> None:
    """Start a member for each (job, size of the cohort) that is received, and send how it ended, until None."""
    enter({CONNECTIONS: os.environ.get(CONNECTIONS, "32")} | environment)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # members can't catch it: Python raises it in this thread
    cohort, threads = Cohort(cuda=cuda), []
    while (received := connection.recv()) is not None:
        job, size = received
        threads.append(cohort.start(partial(train_member, job, connection), size))
    for thread in threads:
        thread.join()
    sys.exit(0)


def train_member(job: Job, connection: Connection, member: Member) -> None:
    """Execute the run of a member, which has the baton, so that no other member sends at the same time."""
    try:
        code = perform(job, member)
    except BaseException:
        traceback.print_exc()
        code = FAILED
    gc.collect()  # a Trainer and its module refer to each other
    connection.send(Ended(job.path, code, member.seconds()))
