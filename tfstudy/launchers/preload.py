"""What the server of processes imports once, so that the processes forked from it start with everything loaded."""

import contextlib
import gc
import signal
from importlib import import_module

import lightning.pytorch.strategies
import torch._dynamo

from tfstudy import models, tasks
from tfstudy.experiment import run
from tfstudy.launchers.processes import is_server
from tfstudy.runs.identity import commit

__all__ = ["lightning", "run", "torch"]

for package in (tasks, models):
    for name in package.built_in():  # a plug-in is imported by the runs that need it
        with contextlib.suppress(Exception):  # a broken file is reported by the runs that need it
            import_module(f"{package.__name__}.{name}")
commit()
if is_server:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # of the runs; the server itself goes on to ignore it
gc.collect()
gc.freeze()  # otherwise the first collection of every process would copy the memory that it shares with the server
