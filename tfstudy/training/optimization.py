"""The optimiser and the learning-rate schedule."""

import math

import torch

from tfstudy.config.schema import TrainConfig
from tfstudy.models.base import Model


def learning_rate_factor(config: TrainConfig, step: int, dim: int) -> float:
    """Return the learning rate of step 0, 1, ... divided by `config.learning_rate`, for a model of this width.

    With schedule `noam` it is dim^-0.5 min(step^-0.5, step warmup^-1.5), with steps counted from 1 (Vaswani et al.
    2017, eq. 3); without warm-up, (dim step)^-0.5.
    """
    warmup, step = config.warmup_steps, step + 1
    if config.schedule == "noam":
        return min(1 / math.sqrt(step), step / math.sqrt(max(1, warmup) ** 3)) / math.sqrt(dim)
    if step < warmup:
        return step / warmup
    if config.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, config.steps + 1 - warmup))))
    if config.schedule == "inverse_sqrt":
        return math.sqrt(max(1, warmup) / step)
    return 1.0


def build_optimizer(model: Model, config: TrainConfig) -> torch.optim.Optimizer:
    """Return the optimiser of a model, with weight decay for all parameters that the model does not exempt."""
    exempt = {id(parameter) for parameter in model.parameters_without_decay()}
    groups = [
        {"params": [p for p in model.parameters() if id(p) not in exempt], "weight_decay": config.weight_decay},
        {"params": [p for p in model.parameters() if id(p) in exempt], "weight_decay": 0.0},
    ]
    fused = config.precision != "16-mixed"  # a fused optimiser would have its scaled gradients clipped
    if config.optimizer == "adamw":
        betas = (config.beta1, config.beta2)
        return torch.optim.AdamW(groups, config.learning_rate, betas=betas, eps=config.adam_epsilon, fused=fused)
    return torch.optim.SGD(groups, config.learning_rate, momentum=config.beta1, nesterov=config.beta1 > 0, fused=fused)
