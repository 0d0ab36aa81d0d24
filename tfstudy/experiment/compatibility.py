"""Check that the sections of a config fit each other and the data. Imports no Lightning."""

import torch

from tasks.base import Task
from tasks.errors import UserError
from tfstudy import models
from tfstudy.config.schema import RunConfig
from tfstudy.data.vocabulary import Vocab
from tfstudy.evaluation.evaluate import generation_limit, longest_target_length


def check(config: RunConfig, task: Task) -> None:
    """Raise `UserError` if a value is allowed in its section but does not fit the data or another section."""
    source, target = task.vocabulary()
    if config.model.needs_one_vocabulary and source != target:
        raise UserError(f"model.share_embeddings needs one vocabulary, but {config.task} has two")
    longest_target = longest_target_length(task)
    if 0 < config.decode.max_length < longest_target:
        raise UserError(
            f"decode.max_length must be 0 or at least {longest_target}, the length of the longest target, "
            f"but is {config.decode.max_length}"
        )
    _check_positions(config, task, len(Vocab(source)), len(Vocab(target)))
    train, validation = config.train, task.splits().validation
    if config.eval.checkpoint == "best" and (not validation or train.steps % train.validation_interval):
        raise UserError(
            "eval.checkpoint 'best' needs a validation split, and train.steps must be a multiple of validation_interval"
        )


def _check_positions(config: RunConfig, task: Task, source_vocab: int, target_vocab: int) -> None:
    with torch.device("meta"):  # without memory for the weights
        available = models.find(config.arch)(config.model, source_vocab, target_vocab).max_positions
    longest_source = max(len(example.source) for split in task.splits().all for example in task.examples(split))
    needed = 1 + max(longest_source, generation_limit(task, config.decode))
    if available is not None and needed > available:
        raise UserError(f"model.max_positions must be at least {needed} for these data, but is {available}")
