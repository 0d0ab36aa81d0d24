"""FLOPs by torch's counter, with formulas for the fused operators that it does not know."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from tfstudy.performance.record import Flops

aten = torch.ops.aten
Shape = Sequence[int]
BACKWARD = 2  # a product of matrices has two gradients, each a product of the same size


def _recurrent(input_shape: Shape, weights: Sequence[Shape]) -> int:
    """Return the FLOPs of a recurrent layer: each matrix is multiplied with a vector at every position.

    For an LSTM from `d` to `h` units these are 2 (4 h d + 4 h h) = 8 h (d + h) at a position. All directions and layers
    of a call are among `weights`.
    """
    positions = math.prod(input_shape[:-1])
    return 2 * positions * sum(math.prod(shape) for shape in weights if len(shape) == 2)


def _one_layer(x: Shape, to_input: Shape, to_hidden: Shape, *_: Any, out_shape: Any = None, **__: Any) -> int:
    return _recurrent(x, [to_input, to_hidden])


def _several_layers(x: Shape, weights: Sequence[Shape], *_: Any, out_shape: Any = None, **__: Any) -> int:
    return _recurrent(x, weights)


def _attention(query: Shape, key: Shape, value: Shape, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """Return the FLOPs of both products, of all pairs: with a causal mask, too, as explicit attention computes them."""
    flops: int = sdpa_flop_count(query, key, value)  # type: ignore[no-untyped-call]
    return flops


def _attention_backward(gradient: Shape, query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    flops: int = sdpa_backward_flop_count(gradient, query, key, value)  # type: ignore[no-untyped-call]
    return flops


def _backward(formula: Callable[..., int]) -> Callable[..., int]:
    def gradients(*arguments: Any, **options: Any) -> int:
        return BACKWARD * formula(*arguments, **options)

    return gradients


FORMULAS: Mapping[Any, Callable[..., int]] = {
    aten.mkldnn_rnn_layer: _one_layer,
    aten.mkldnn_rnn_layer_backward: _backward(_one_layer),
    aten._cudnn_rnn: _several_layers,
    aten._cudnn_rnn_backward: _backward(_several_layers),
    aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
}
PRODUCTS = ("bmm", "baddbmm")  # of two tensors of activations: scores, and weighted values
FUSED = "scaled_dot_product"


def count(work: Callable[[], object], model: nn.Module) -> Flops:
    """Return the FLOPs of what `work` does with a model: those of products of matrices, convolutions and attention."""
    by_module = _by_module(work, model)
    every = {_name(op): flops for op, flops in by_module.get("Global", {}).items()}
    attention = sum(flops for op, flops in every.items() if op in PRODUCTS or FUSED in op)
    inner = [name for name in by_module if "feedforward" in name.split(".")]
    outermost = [name for name in inner if "feedforward" not in name.split(".")[:-1]]
    feedforward = sum(sum(by_module[name].values()) for name in outermost or inner)
    return Flops(sum(every.values()), attention, feedforward)


def uses_fused_attention(work: Callable[[], object], model: nn.Module) -> bool:
    """Whether `work` calls an attention kernel that does not return its weights."""
    return any(FUSED in _name(op) for op in _by_module(work, model).get("Global", {}))


def _by_module(work: Callable[[], object], model: nn.Module) -> Mapping[str, Mapping[Any, int]]:
    """Return the FLOPs of each operator, for each module that contains it; the whole is `Global`."""
    with FlopCounterMode(display=False, custom_mapping=dict(FORMULAS)) as counter:
        # The counter names a module when its parent is called, which some parents are not.
        for name, module in model.named_modules():
            counter.mod_tracker._known_modules[module] = f"model.{name}"
        work()
    counts: Mapping[str, Mapping[Any, int]] = counter.get_flop_counts()
    return counts


def _name(op: Any) -> str:
    return str(op).rpartition(".")[2]
