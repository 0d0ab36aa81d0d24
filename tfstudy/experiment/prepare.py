"""A config made real: task, data, model and identity, checked against each other."""

from pathlib import Path
from typing import NamedTuple

import torch

import tasks
from tasks.base import Task, fingerprint
from tasks.errors import UserError
from tfstudy import models
from tfstudy.config.schema import RunConfig
from tfstudy.data.module import TaskData
from tfstudy.data.vocabulary import Vocab
from tfstudy.evaluation import evaluate
from tfstudy.experiment.versions import declared_versions
from tfstudy.models.base import Model, parameter_count
from tfstudy.runs.identity import Identity, identify


class Prepared(NamedTuple):
    """A config made real: everything that a run needs before it trains."""

    config: RunConfig
    task: Task
    data: TaskData
    model: Model
    identity: Identity


def prepare(config: RunConfig) -> Prepared:
    """Task, data, model with initial weights and identity of a config."""
    task = tasks.find(config.task)(config.data)
    check(config, task)
    train = config.train
    data = TaskData(
        task,
        train.batch_size,
        train.batch_tokens,
        train.batching,
        config.seed,
        1 if train.compile else train.micro_batches,
    )
    torch.manual_seed(config.seed)
    model = models.find(config.arch)(config.model, len(data.source_vocab), len(data.target_vocab))
    return Prepared(
        config, task, data, model, identify(config, fingerprint(task), declared_versions(config.task, config.arch))
    )


def check(config: RunConfig, task: Task) -> None:
    """`UserError` for what each section allows but this model with these data does not."""
    source, target = task.vocabulary()
    if getattr(config.model, "share_embeddings", False) and source != target:
        raise UserError(f"model.share_embeddings needs one vocabulary, but {config.task} has two")
    longest_gold = evaluate.longest_target(task)
    if 0 < config.decode.max_length < longest_gold:
        raise UserError(
            f"decode.max_length must be 0 or at least {longest_gold}, the longest gold target, "
            f"but is {config.decode.max_length}"
        )
    with torch.device("meta"):
        longest = models.find(config.arch)(config.model, len(Vocab(source)), len(Vocab(target))).max_positions
    longest_source = max(len(e.source) for split in task.splits().all for e in task.examples(split))
    most = max(longest_source + 1, evaluate.generation_limit(task, config.decode) + 1)
    if longest is not None and most > longest:
        raise UserError(f"model.max_positions must be at least {most} for these data, but is {longest}")
    unchecked = task.splits().validation is None or config.train.steps % config.train.validation_interval
    if config.eval.checkpoint == "best" and unchecked:
        raise UserError(
            "eval.checkpoint 'best' needs a validation split, and steps that are a multiple of validation_interval"
        )


def describe(prepared: Prepared, path: Path) -> str:
    """Two lines on what is about to run."""
    config, splits = prepared.config, prepared.task.splits()
    sizes = ", ".join(f"{len(prepared.task.examples(name)):,} {name}" for name in splits.all)
    smoke = "SMOKE RUN: its numbers mean nothing\n" if config.smoke else ""
    return (
        f"{smoke}{config.task} {config.data.split}, {config.arch} with {parameter_count(prepared.model):,} parameters, "
        f"seed {config.seed}: {sizes} examples\n{path}"
    )
