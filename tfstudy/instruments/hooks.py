"""Reading a model while it computes, by forward hooks: attention weights, and hidden states, which may be replaced."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from tfstudy.errors import UserError
from tfstudy.models.attention import Weights
from tfstudy.models.base import Model
from tfstudy.models.layers import Stack
from tfstudy.models.tokens import Tokens

STATES = {"encoder": "source_states", "decoder": "target_states"}  # attributes of a `Model` that are hooked


class Site(NamedTuple):
    """Where attention weights or hidden states are: a kind, and the layer.

    Weights: `encoder` (self-attention), `decoder` (causal self-attention) or `cross`. With one stack for source and
    target (`prefix`), target tokens attend to the source and the target so far. Hidden states: `encoder` where a model
    reads the source and `decoder` where it writes the target; layer 0 is the embeddings. Layers count from 1. A layer
    that is used at several depths has a site for each.
    """

    kind: str
    layer: int


class RecordedWeights(NamedTuple):
    """The weights of one call at a site, before dropout; each row sums to 1 over the keys that its query sees.

    A visible key can have the weight 0, by underflow.
    """

    site: Site
    weights: Tensor  # (batch, heads, queries, keys)
    visible: Tensor  # of the same shape: which keys each query sees


def layer_number(module: str) -> int:
    """Return the layer of a module such as `decoder.layers.0.cross`, from 1; 1 without a number in its name."""
    return 1 + int((re.findall(r"\d+", module) or [0])[-1])


def layers_of_calls(model: nn.Module, module: str) -> Iterator[int]:
    """Return the layer of each call of a module, without an end: one that all depths share is called once for each."""
    stacks = {name: one.depth for name, one in model.named_modules() if isinstance(one, Stack) and len(one.layers) == 1}
    depth = next((depth for name, depth in stacks.items() if module.startswith(f"{name}.layers.")), 1)
    return cycle(range(layer_number(module), layer_number(module) + depth))


@contextmanager
def recorded_attention(model: nn.Module) -> Iterator[list[RecordedWeights]]:
    """Within this context, record the weights of all attention of a model: yields the list that they are added to.

    There is an item for each call and each rectangle, in order of computation. Masked keys have the weight 0. Outside,
    models use their fast kernels, which have no weights to return; the outputs are equal up to rounding.
    """
    recorded: list[RecordedWeights] = []
    with ExitStack() as stack:
        for name, module in model.named_modules():
            if isinstance(module, Weights):
                layers = layers_of_calls(model, name)

                def hook(_: nn.Module, given: Any, named: Any, found: Tensor, layers: Iterator[int] = layers) -> None:
                    mask = given[1] if len(given) > 1 else named.get("mask")
                    kind = given[2] if len(given) > 2 else named.get("kind", "cross")
                    seen = torch.ones_like(found, dtype=torch.bool) if mask is None else mask
                    seen = seen if seen.dtype == torch.bool else seen > float("-inf")  # or a bias, added to scores
                    recorded.append(RecordedWeights(Site(kind, next(layers)), found, seen.expand_as(found)))

                stack.callback(module.register_forward_hook(hook, with_kwargs=True).remove)
        yield recorded


def joined(recorded: Sequence[RecordedWeights], what: str = "weights") -> dict[Site, Tensor]:
    """Return the `weights` at each site, or what is `visible`, the queries of successive calls in one tensor.

    A step of decoding sees more keys than the one before: the weights of keys that it does not see yet are 0.
    """
    calls: dict[Site, list[Tensor]] = {}
    for call in recorded:
        calls.setdefault(call.site, []).append(getattr(call, what))
    keys = {site: max(one.shape[-1] for one in each) for site, each in calls.items()}
    return {
        site: torch.cat([pad(one, (0, keys[site] - one.shape[-1])) for one in each], dim=2)
        for site, each in calls.items()
    }


Observer = Callable[[Site, Tensor], Tensor | None]  # gets hidden states (..., width), and may return other ones


@contextmanager
def observing(model: Model, observer: Observer) -> Iterator[None]:
    """Within this context, pass all hidden states of a model through `observer`. A row's positions are consecutive."""
    with ExitStack() as stack:
        for kind, name in STATES.items():

            def hook(_: nn.Module, inputs: tuple[Tensor, int], x: Tensor, kind: str = kind) -> Tensor | None:
                return observer(Site(kind, inputs[1]), x)

            stack.callback(model.get_submodule(name).register_forward_hook(hook).remove)
        yield


class Recorded(NamedTuple):
    """The logits of a model for some rows, and the hidden states of each site, of each call."""

    logits: Tensor  # (batch, length, vocab)
    calls: dict[Site, list[Tensor]]  # more than one call where the target is written step by step

    def states(self) -> dict[Site, Tensor]:
        """Return the hidden states (batch, positions, width) at each site."""
        return {site: self._joined(calls) for site, calls in self.calls.items()}

    def gradients(self, output: Tensor, site: Site) -> Tensor:
        """Return the gradient of a scalar, computed from the logits, with respect to the hidden states at a site."""
        if not (calls := self.calls.get(site)):
            raise UserError(f"the model does not show layer {site.layer} of its {site.kind} (HiddenStates)")
        found = torch.autograd.grad(output, calls, retain_graph=True, allow_unused=True)
        return self._joined([torch.zeros_like(x) if g is None else g for x, g in zip(calls, found, strict=True)])

    def _joined(self, calls: list[Tensor]) -> Tensor:
        return torch.cat([x.reshape(len(self.logits), -1, x.shape[-1]) for x in calls], 1)


def logits_of(model: Model, source: Tensor, tokens: Tensor) -> Tensor:
    """Return the logits (batch, length, vocab) after each of `tokens` (batch, length), with teacher forcing."""
    logits: Tensor = model(Tokens.of(source), Tokens.of(tokens))
    return logits.view(*tokens.shape, logits.shape[1])


def record_states(model: Model, source: Tensor, tokens: Tensor) -> Recorded:
    """Return the logits and hidden states of a model with teacher forcing; `UserError` if it shows none.

    Gradients can flow through what is returned, unless they are disabled.
    """
    calls: dict[Site, list[Tensor]] = {}

    def keep(site: Site, x: Tensor) -> None:
        calls.setdefault(site, []).append(x)

    with observing(model, keep):
        logits = logits_of(model, source, tokens)
    if not calls:
        raise UserError(f"the hidden states of this model ({type(model).__name__}) can't be observed")
    return Recorded(logits, calls)
