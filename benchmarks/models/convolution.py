"""The CNN's convolution as one product of matrices against torch's: forward and backward in a training step."""

from functools import partial

import torch
from torch import Tensor

from benchmarks.timing import alternate, arguments, scan, seconds, table
from tfstudy.models.cnn import GatedConvolution
from tfstudy.training.module import block

Call = tuple[GatedConvolution, list[Tensor]]  # a layer and the blocks that it is given


def calls() -> list[Call]:
    """All that a step of the preset convolves, with made-up values."""
    prepared, found = scan("cnn"), []
    for module in prepared.model.modules():
        if isinstance(module, GatedConvolution):
            module.register_forward_hook(lambda layer, given, _: found.append((layer, [x.shape for x in given[0]])))
    for part in next(iter(prepared.data.train_dataloader())).parts:
        prepared.model.forward_blocks([block(rows) for rows in part])
    return [(layer, [torch.randn(shape, requires_grad=True) for shape in shapes]) for layer, shapes in found]


def step(found: list[Call], name: str, repeats: int) -> float:
    """Milliseconds of all calls of one step, by the method of that name."""

    def both_ways() -> None:
        for layer, blocks in found:
            getattr(layer, name)(blocks).sum().backward()
            for x in (*blocks, *layer.parameters()):
                x.grad = None

    return 1000 * seconds(lambda: [both_ways() for _ in range(repeats)]) / repeats


def main() -> None:
    chosen = arguments(__doc__, archs=False)
    repeats, rounds = (2, 3) if chosen.quick else (10, 11)
    found = calls()
    measured = alternate({n: partial(step, found, n, repeats) for n in ("convolution", "product")}, rounds)
    title = f"cnn, {torch.get_num_threads()} threads, {len(found)} calls"
    table(title, "ms a step", measured, "convolution", faster=True)


if __name__ == "__main__":
    main()
