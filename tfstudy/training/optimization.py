"""The learning-rate schedule."""

import math

from tfstudy.config.schema import TrainConfig


def rate(config: TrainConfig, step: int) -> float:
    """The learning rate of step 0, 1, ... as a share of the highest."""
    warm, step = config.warmup_steps, step + 1
    if step < warm:
        return step / warm
    if config.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / max(1, config.steps + 1 - warm))))
    if config.schedule == "inverse_sqrt":
        return math.sqrt(max(1, warm) / step)
    return 1.0
