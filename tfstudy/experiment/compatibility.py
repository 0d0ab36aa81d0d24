"""Check that the sections of a config fit each other and the data. Imports no Lightning."""

from functools import lru_cache
from typing import NamedTuple

import torch

from tfstudy import models
from tfstudy.config.schema import RunConfig
from tfstudy.data.vocabulary import Vocab
from tfstudy.evaluation.limits import longest_target, needed_positions
from tfstudy.models.config import ModelConfig
from tfstudy.tasks.base import Task
from tfstudy.tasks.errors import UserError


class DataShape(NamedTuple):
    """What a model has to fit: facts of a task's data, which take long to collect."""

    one_vocabulary: bool  # of source and target
    vocabularies: tuple[int, int]  # sizes, with the special tokens
    longest_target: int
    positions: int  # that any source and any output can have
    validation: str | None  # the name of the validation split

    @classmethod
    def of(cls, task: Task) -> "DataShape":
        """Return the facts of a task's data."""
        source, target = task.vocabulary()
        sizes = len(Vocab(source)), len(Vocab(target))
        return cls(source == target, sizes, longest_target(task), needed_positions(task), task.splits().validation)


def check(config: RunConfig, data: DataShape) -> None:
    """Raise `UserError` if a value is allowed in its section but does not fit the data or another section."""
    if config.model.needs_one_vocabulary and not data.one_vocabulary:
        raise UserError(f"model.share_embeddings needs one vocabulary, but {config.task} has two")
    if 0 < config.decode.max_length < data.longest_target:
        raise UserError(
            f"decode.max_length must be 0 or at least {data.longest_target}, the length of the longest target, "
            f"but is {config.decode.max_length}"
        )
    available = checked_table(config.arch, _shape(with_positions(config.model, data.positions)), data.vocabularies)
    needed = 1 + config.decode.max_length
    if available is not None and needed > available:
        raise UserError(
            f"model.max_positions must be at least {needed} for decode.max_length={config.decode.max_length}, "
            f"but is {available}"
        )
    train = config.train
    if config.eval.checkpoint == "best" and (not data.validation or train.steps % train.validation_interval):
        raise UserError(
            "eval.checkpoint 'best' needs a validation split, and train.steps must be a multiple of validation_interval"
        )


def _shape(model: ModelConfig) -> str:
    """Return the section `model` as JSON, the same for any dropout."""
    return model.model_copy(update={"dropout": 0.0}).model_dump_json()


@lru_cache(maxsize=1 << 14)
def checked_table(arch: str, model: str, vocabularies: tuple[int, int]) -> int | None:
    """Return the size of the table of learned positions; the model is built once for each shape."""
    return position_table(arch, models.find(arch).Config.model_validate_json(model), vocabularies)


def sized_model(config: RunConfig, data: DataShape) -> ModelConfig:
    """Return the section `model` with a table of positions that is large enough for the data.

    This depends on the data only, so that runs that differ in decoding can have the same weights.
    """
    return with_positions(config.model, data.positions)


def with_positions(model: ModelConfig, needed: int) -> ModelConfig:
    """Return the section `model` with `max_positions`, where an architecture has this key, at least as large."""
    size = model.model_dump().get("max_positions")
    return model if size is None or size >= needed else model.model_copy(update={"max_positions": needed})


def position_table(arch: str, model: ModelConfig, vocabularies: tuple[int, int]) -> int | None:
    """Return the size of the table of learned positions; None without one."""
    with torch.device("meta"):  # without memory for the weights
        return models.find(arch)(model, *vocabularies).max_positions
