"""What the server does once, so that no process forked from it has to: imports, and reading what code it has."""

import gc

import lightning.pytorch.strategies
import torch._dynamo

import tasks
from tfstudy import experiment, models
from tfstudy.environment import commit, syntax_trees
from tfstudy.report import summary

__all__ = ["experiment", "lightning", "summary", "torch"]

for name in tasks.names():
    tasks.find(name)
for name in models.names():
    models.find(name)
syntax_trees()
commit()
gc.collect()
gc.freeze()  # else the first collection of every process would copy the memory that it shares with the server
