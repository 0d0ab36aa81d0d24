"""Rows packed one after the other against rows padded to a few shapes, over training steps of two layers.

Packed rows attend to themselves only, by a mask that is block-diagonal, or on CUDA by `varlen_attn` (bfloat16). The
layers are those of a decoder without cross-attention, on the targets of batches of SCAN simple. On CUDA every step is
replayed from a graph, as in training. The figure is target tokens per second, without padding; the losses must agree.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from benchmarks.timing import alternate, arguments, now, scan, table
from tfstudy.data.shapes import Shape, choose_shapes, smallest
from tfstudy.experiment.train import training_data
from tfstudy.training.graphs import CudaGraphs

WIDTH, HEADS, LAYERS, VOCAB, BATCH, SHAPES = 128, 8, 2, 32, 256, 4
WARM_UP = 2  # steps before a capture
TOLERATED = {torch.float32: 1e-4, torch.bfloat16: 0.02}  # differences, as a fraction of the loss

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # of queries, keys and values (..., tokens, heads, width of a head)


class Layer(nn.Module):
    """Causal self-attention and a feed-forward block, each after a norm and with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.inputs, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feedforward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        """Return the outputs for inputs (..., tokens, WIDTH)."""
        query, key, value = self.inputs(self.norms[0](x)).unflatten(-1, (3, HEADS, -1)).unbind(-3)
        x = x + self.output(attend(query, key, value).flatten(-2))
        return x + self.feedforward(self.norms[1](x))  # type: ignore[no-any-return]


class Network(nn.Module):
    """Embedding, layers, and the logits of the same tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.logits = nn.Embedding(VOCAB, WIDTH), nn.Linear(WIDTH, VOCAB)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def loss(self, tokens: Tensor, attend: Attend) -> Tensor:
        """Return the summed loss of tokens, without those that are 0."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, attend)
        logits = self.logits(x).flatten(0, -2)
        return cross_entropy(logits, tokens.flatten(), ignore_index=0, reduction="sum")


def of_rows(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend causally within padded rows: the padding comes last, so no token sees it."""
    turned = (part.transpose(-2, -3) for part in (query, key, value))
    return scaled_dot_product_attention(*turned, is_causal=True).transpose(-2, -3)


def by_mask(ends: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend causally within packed rows, by a mask over all pairs of tokens; `ends` (rows + 1,) are those of rows."""
    position = torch.arange(len(query), dtype=ends.dtype, device=query.device)
    row = torch.searchsorted(ends, position, right=True)
    mask = (row[:, None] == row) & (position[:, None] >= position)
    turned = (part.transpose(0, 1) for part in (query, key, value))
    return scaled_dot_product_attention(*turned, attn_mask=mask).transpose(0, 1)


def by_lengths(longest: int, ends: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend causally within packed rows, by the kernel for rows of different lengths."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(query, key, value, ends, ends, longest, longest, window_size=(-1, 0))  # type: ignore[return-value]


class Inputs(NamedTuple):
    """What the step of one shape reads."""

    tokens: Tensor  # (rows, tokens) padded, or (tokens,) packed
    ends: Tensor  # (rows + 2,): where packed rows end, the last one being the padding


def padded(rows: Sequence[Tensor], shape: Shape) -> Inputs:
    """Return rows padded to a shape."""
    tokens = torch.zeros(shape.rows, shape.target, dtype=torch.long)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = row
    return Inputs(tokens, torch.zeros(1, dtype=torch.int32))


def packed(rows: Sequence[Tensor], shape: Shape) -> Inputs:
    """Return rows one after the other, and as much padding as fills up the shape, which is one row more."""
    tokens = torch.zeros(shape.target, dtype=torch.long)
    joined = torch.cat(list(rows))
    tokens[: len(joined)] = joined
    lengths = torch.tensor([0, *map(len, rows), shape.target - len(joined)])
    return Inputs(tokens, lengths.cumsum(0).int())


class Way:
    """One way to compute steps: how a batch is laid out, how it attends, and in which precision."""

    def __init__(
        self,
        layout: Callable[[Sequence[Tensor], Shape], Inputs],
        attend: Callable[[Tensor], Attend],
        precision: torch.dtype,
        batches: Sequence[Sequence[Tensor]],
        device: torch.device,
    ) -> None:
        torch.manual_seed(0)
        self.network, self.attend, self.precision = Network().to(device), attend, precision
        needed = [
            Shape(1, 0, sum(map(len, rows))) if layout is packed else Shape(len(rows), 0, max(map(len, rows)))
            for rows in batches
        ]
        shapes = choose_shapes(needed, SHAPES)
        chosen = [shape for shape in (smallest(shapes, one) for one in needed) if shape]
        self.batches = [
            (shape, Inputs(*(part.to(device) for part in layout(rows, shape))))
            for rows, shape in zip(batches, chosen, strict=True)
        ]
        self.inputs = {shape: Inputs(*map(torch.clone, inputs)) for shape, inputs in self.batches}
        self.tokens, self.device = sum(len(row) for rows in batches for row in rows), device
        self.total = torch.zeros((), device=device)
        self.replays = {shape: self.captured(shape) for shape in self.inputs}

    def step(self, shape: Shape) -> None:
        """Compute the gradient of a shape's inputs, and add its loss to `total`."""
        inputs = self.inputs[shape]
        with torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32):
            loss = self.network.loss(inputs.tokens, self.attend(inputs.ends))
        torch.autograd.grad(loss, list(self.network.parameters()))
        self.total += loss.detach()

    def captured(self, shape: Shape) -> Callable[[], None]:
        """Return what computes the step of a shape: on CUDA its graph."""
        work = partial(self.step, shape)
        if self.device.type != "cuda":
            return work
        graphs = CudaGraphs()
        for _ in range(WARM_UP):
            graphs.warm_up(work)
        return graphs.capture(work)

    def all_steps(self) -> float:
        """Compute the step of every batch; return the loss of all."""
        self.total.zero_()
        for shape, inputs in self.batches:
            for kept, new in zip(self.inputs[shape], inputs, strict=True):
                kept.copy_(new)
            self.replays[shape]()
        return self.total.item()

    def tokens_per_second(self) -> float:
        """Return the speed of all steps."""
        start = now()
        self.all_steps()
        return self.tokens / (now() - start)


def target_rows(count: int, size: int) -> list[list[Tensor]]:
    """Return the targets of the first batches of training, without padding and BOS."""
    data = training_data(scan("lstm", batch_size=size, steps=count, micro_batches=1))
    batches = (batch.micro_batches for _, batch in zip(range(count), data.train_dataloader(), strict=False))
    return [[row[row != 0][1:] for group in parts for rows in group for row in rows.target] for parts in batches]


def ways(batches: Sequence[Sequence[Tensor]], device: torch.device) -> dict[str, Way]:
    """Return the ways that a device has."""
    longest = max(len(row) for rows in batches for row in rows)
    of_padded = partial(Way, padded, lambda _: of_rows)
    masked = partial(Way, packed, lambda ends: partial(by_mask, ends))
    found = {
        "shapes": of_padded(torch.float32, batches, device),
        "packed, mask": masked(torch.float32, batches, device),
    }
    if device.type != "cuda":
        return found
    found["shapes, bf16"] = of_padded(torch.bfloat16, batches, device)
    try:
        kernel = partial(Way, packed, lambda ends: partial(by_lengths, longest, ends))
        found["packed, by length, bf16"] = kernel(torch.bfloat16, batches, device)
    except (ImportError, TypeError, RuntimeError) as error:  # the kernel is new, and its arguments have changed
        print(f"packed, by length: {error}", flush=True)
    return found


def main() -> None:
    chosen = arguments(__doc__, archs=False)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    quick = chosen.quick or device.type == "cpu"
    batches = target_rows(8 if quick else 64, 16 if device.type == "cpu" else BATCH)
    found = ways(batches, device)
    expected = found["shapes"].all_steps()
    for name, way in found.items():
        if abs((loss := way.all_steps()) - expected) > TOLERATED[way.precision] * expected:
            raise SystemExit(f"{name} has the loss {loss}, but shapes has {expected}")
    measured = alternate({name: way.tokens_per_second for name, way in found.items()}, 3 if quick else 9)
    table(f"{len(batches)} batches on {device.type}", "tokens/s", measured, "shapes")
    for name, speeds in measured.items():
        row = {"group": "packed rows", "way": name, "baseline": "shapes", "tokens/s": max(speeds)}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
