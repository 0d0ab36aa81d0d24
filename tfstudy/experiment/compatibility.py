"""Check that the sections of a config fit each other and the data. Imports no Lightning."""

import torch

from tasks.base import Task
from tasks.errors import UserError
from tfstudy import models
from tfstudy.config.schema import RunConfig
from tfstudy.data.vocabulary import Vocab
from tfstudy.evaluation.limits import longest_target, needed_positions
from tfstudy.models.config import ModelConfig


def check(config: RunConfig, task: Task) -> None:
    """Raise `UserError` if a value is allowed in its section but does not fit the data or another section."""
    source, target = task.vocabulary()
    if config.model.needs_one_vocabulary and source != target:
        raise UserError(f"model.share_embeddings needs one vocabulary, but {config.task} has two")
    longest = longest_target(task)
    if 0 < config.decode.max_length < longest:
        raise UserError(
            f"decode.max_length must be 0 or at least {longest}, the length of the longest target, "
            f"but is {config.decode.max_length}"
        )
    available = position_table(config.arch, sized_model(config, task), (len(Vocab(source)), len(Vocab(target))))
    needed = 1 + config.decode.max_length
    if available is not None and needed > available:
        raise UserError(
            f"model.max_positions must be at least {needed} for decode.max_length={config.decode.max_length}, "
            f"but is {available}"
        )
    train, validation = config.train, task.splits().validation
    if config.eval.checkpoint == "best" and (not validation or train.steps % train.validation_interval):
        raise UserError(
            "eval.checkpoint 'best' needs a validation split, and train.steps must be a multiple of validation_interval"
        )


def sized_model(config: RunConfig, task: Task) -> ModelConfig:
    """Return the section `model` with a table of positions that is large enough for the data.

    This depends on the data only, so that runs that differ in decoding can have the same weights.
    """
    return with_positions(config.model, needed_positions(task))


def with_positions(model: ModelConfig, needed: int) -> ModelConfig:
    """Return the section `model` with `max_positions`, where an architecture has this key, at least as large."""
    size = model.model_dump().get("max_positions")
    return model if size is None or size >= needed else model.model_copy(update={"max_positions": needed})


def position_table(arch: str, model: ModelConfig, vocabularies: tuple[int, int]) -> int | None:
    """Return the size of the table of learned positions; None without one."""
    with torch.device("meta"):  # without memory for the weights
        return models.find(arch)(model, *vocabularies).max_positions
