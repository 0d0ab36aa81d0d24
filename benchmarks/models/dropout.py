"""`Dropout` of this package against `nn.Dropout`: forward and backward of all dropouts of a training step."""

from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.timing import alternate, arguments, scan, seconds, table
from tfstudy.experiment.train import training_data
from tfstudy.models.parts.layers import Dropout
from tfstudy.training.loss import ragged_group


def dropout_shapes(arch: str) -> tuple[list[torch.Size], float]:
    """Return the input shapes of all dropouts in the first step, in order, and the probability."""
    prepared, shapes = scan(arch), []
    for module in prepared.model.modules():
        if isinstance(module, Dropout):
            module.register_forward_hook(lambda _, inputs, __: shapes.append(inputs[0].shape))
    prepared.model.train()
    for part in next(iter(training_data(prepared).train_dataloader())).micro_batches:
        prepared.model.forward_groups([ragged_group(rows) for rows in part])
    return shapes, prepared.config.model.dropout


def forward_and_backward(dropout: nn.Module, activations: list[Tensor], gradients: list[Tensor]) -> None:
    """Compute each dropout forward and backward."""
    for x, gradient in zip(activations, gradients, strict=True):
        dropout(x).backward(gradient)
        x.grad = None


def main() -> None:
    chosen = arguments(__doc__)
    repeats, rounds = (5, 3) if chosen.quick else (20, 21)
    for arch in chosen.arch:
        shapes, probability = dropout_shapes(arch)
        activations = [torch.randn(shape, requires_grad=True) for shape in shapes]
        gradients = [torch.randn(shape) for shape in shapes]

        def step(dropout: nn.Module, a: list[Tensor] = activations, g: list[Tensor] = gradients) -> float:
            """Return the milliseconds of all dropouts of one step."""
            return 1000 * seconds(lambda: [forward_and_backward(dropout, a, g) for _ in range(repeats)]) / repeats

        ways = {"nn.Dropout": partial(step, nn.Dropout(probability)), "ours": partial(step, Dropout(probability))}
        measured = alternate(ways, rounds)
        elements = sum(shape.numel() for shape in shapes)
        title = f"{len(shapes)} calls, {elements:,} elements"
        table(f"{arch}, {torch.get_num_threads()} threads, {title}", "ms a step", measured, "nn.Dropout", faster=True)


if __name__ == "__main__":
    main()
