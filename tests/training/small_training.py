"""Training of small models on a small task, for the tests of this folder."""

import torch

from tfstudy import models, tasks
from tfstudy.config.schema import TrainConfig
from tfstudy.data.module import TaskData
from tfstudy.training.fit import fit
from tfstudy.training.module import Seq2Seq

ARCHITECTURES = models.names()


def small_training(arch: str = "lstm", dropout: float = 0.0, seed: int = 0, **train) -> tuple[Seq2Seq, TaskData]:
    """A module and its data. The task `reverse` must be added: see the fixtures."""
    config = TrainConfig(
        **{"steps": 4, "batch_size": 16, "log_interval": 1, "validation_interval": 2, "warmup_steps": 0} | train
    )
    task = tasks.find("reverse")(tasks.find("reverse").Config(split="short"))
    data = TaskData(task, config, seed)
    torch.manual_seed(seed)
    cls = models.find(arch)
    model = cls(cls.Config(**{**cls.small, "dropout": dropout}), len(data.source_vocab), len(data.target_vocab))
    return Seq2Seq(model, len(data.target_vocab), config, seed), data


def trained(*args, callbacks=(), resume=None, execution=None, **settings) -> Seq2Seq:
    """A module after training."""
    module, data = small_training(*args, **settings)
    fit(module, data, accelerator="cpu", callbacks=callbacks, resume=resume, execution=execution)
    return module


def same(one: torch.nn.Module, other: torch.nn.Module, **close) -> bool:
    """Whether two modules have the same weights, bit by bit unless tolerances are given."""
    pairs = list(zip(one.parameters(), other.parameters(), strict=True))
    return all(torch.allclose(a, b, **close) if close else torch.equal(a, b) for a, b in pairs)
