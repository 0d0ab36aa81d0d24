"""The convolution of the CNN as one matrix product, against torch's: forward and backward of a training step."""

from functools import partial

import torch
from torch import Tensor

from benchmarks.timing import alternate, arguments, scan, seconds, table
from tfstudy.experiment.train import training_data
from tfstudy.models.cnn import GatedConvolution
from tfstudy.training.loss import ragged_group

Call = tuple[GatedConvolution, list[Tensor]]  # a layer and its input groups


def calls() -> list[Call]:
    """Return all calls of convolutions in a step of the preset, with random values."""
    prepared, seen = scan("cnn"), []
    for module in prepared.model.modules():
        if isinstance(module, GatedConvolution):
            module.register_forward_hook(lambda layer, inputs, _: seen.append((layer, [x.shape for x in inputs[0]])))
    for part in next(iter(training_data(prepared).train_dataloader())).micro_batches:
        prepared.model.forward_groups([ragged_group(rows) for rows in part])
    return [(layer, [torch.randn(shape, requires_grad=True) for shape in shapes]) for layer, shapes in seen]


def step(layer_calls: list[Call], name: str, repeats: int) -> float:
    """Return the milliseconds of all calls of one step with the method `name`."""

    def forward_and_backward() -> None:
        for layer, groups in layer_calls:
            getattr(layer, name)(groups).sum().backward()
            for x in (*groups, *layer.parameters()):
                x.grad = None

    return 1000 * seconds(lambda: [forward_and_backward() for _ in range(repeats)]) / repeats


def main() -> None:
    chosen = arguments(__doc__, archs=False)
    repeats, rounds = (2, 3) if chosen.quick else (10, 11)
    layer_calls = calls()
    measured = alternate({n: partial(step, layer_calls, n, repeats) for n in ("convolution", "product")}, rounds)
    title = f"cnn, {torch.get_num_threads()} threads, {len(layer_calls)} calls"
    table(title, "ms a step", measured, "convolution", faster=True)


if __name__ == "__main__":
    main()
