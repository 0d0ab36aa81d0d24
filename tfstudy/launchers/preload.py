"""What the server does once, so that no process forked from it has to: imports, and reading what code it has."""

import contextlib
import gc

import lightning.pytorch.strategies
import torch._dynamo

import tasks
from tfstudy import models
from tfstudy.experiment import run
from tfstudy.runs.environment import code_digests, commit

__all__ = ["lightning", "run", "torch"]

for find, names in ((tasks.find, tasks.names()), (models.find, models.names())):
    for name in names:
        with contextlib.suppress(Exception):  # a broken file is told by the runs that need it, and stops no other
            find(name)
code_digests()
commit()
gc.collect()
gc.freeze()  # else the first collection of every process would copy the memory that it shares with the server
