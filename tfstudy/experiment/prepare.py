"""Build what a config describes: the task, its data, the model with its initial weights, and the identity."""

from pathlib import Path
from typing import NamedTuple

import torch

import tasks
from tasks.base import Task, fingerprint
from tfstudy import models
from tfstudy.config.schema import RunConfig
from tfstudy.data.encoding import TaskEncoder
from tfstudy.experiment.code_versions import declared_versions
from tfstudy.experiment.compatibility import check
from tfstudy.models.base import Model, parameter_count
from tfstudy.runs.identity import Identity, identify


class Prepared(NamedTuple):
    """Everything that a run needs before it trains."""

    config: RunConfig
    task: Task
    data: TaskEncoder
    model: Model
    identity: Identity


def prepare(config: RunConfig) -> Prepared:
    """Return the task, data, model and identity of a config; `UserError` if they do not fit each other."""
    task = tasks.find(config.task)(config.data)
    check(config, task)
    data = TaskEncoder(task)
    torch.manual_seed(config.seed)
    model = models.find(config.arch)(config.model, len(data.source_vocab), len(data.target_vocab))
    identity = identify(config, fingerprint(task), declared_versions(config.task, config.arch))
    return Prepared(config, task, data, model, identity)


def describe(prepared: Prepared, path: Path) -> str:
    """Return two lines on a run that is about to start: its model and data, and its folder."""
    config, splits = prepared.config, prepared.task.splits()
    sizes = ", ".join(f"{len(prepared.task.examples(name)):,} {name}" for name in splits.all)
    smoke = "SMOKE RUN: its numbers mean nothing\n" if config.smoke else ""
    return (
        f"{smoke}{config.task} {config.data.split}, {config.arch} with {parameter_count(prepared.model):,} parameters, "
        f"seed {config.seed}: {sizes} examples\n{path}"
    )
