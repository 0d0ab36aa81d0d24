"""How the weight matrices of a layer start, where that is not by Xavier."""

import torch
from torch import nn


@torch.no_grad()
def initialise(layer: nn.Module, name: str, dim: int, number: int) -> None:
    """Change the weight matrices of layer `number` (from 1) to what a value of `model.layer_init` stands for.

    With `xavier` they stay as they are. With `small` they are drawn from a normal distribution of variance 2 / (5 dim),
    which Xavier gives the matrices between widths dim and 4 dim (SmallInit, Nguyen & Salazar 2019, arXiv
    1910.05895). With `depth_scaled` they are divided by sqrt(number), in the encoder and in the decoder (DS-Init with
    alpha = 1, Zhang et al. 2019, arXiv 1908.11365).
    """
    for module in layer.modules():
        if isinstance(module, nn.Linear) and name == "small":
            nn.init.normal_(module.weight, std=(2 / (5 * dim)) ** 0.5)
        elif isinstance(module, nn.Linear) and name == "depth_scaled":
            module.weight /= number**0.5
