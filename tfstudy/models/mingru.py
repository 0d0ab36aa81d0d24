"""A gated linear recurrence with attention (minGRU: Feng et al. 2024, arXiv 2410.01201).

The gates do not depend on the state, so a whole sequence is computed by a parallel scan; decoding keeps one vector.
"""

from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from tfstudy.models.base import Model
from tfstudy.models.config import TiedConfig
from tfstudy.models.layers import Dropout
from tfstudy.models.source_attention import Attention, Source


class MinGRUState(NamedTuple):
    """The encoded source, and the state of each layer of the decoder."""

    source: Source
    hidden: tuple[Float[Tensor, "batch hidden"], ...]


class MinGRU(Model):
    """A gated linear recurrence: a bidirectional encoder, and a decoder that attends to it after the recurrence.

    Each layer is x + W h(norm(x)), followed by a feedforward layer of the same form. The initial state of a layer of
    the decoder is a learned map of what the encoder returns for the first and the last token, where its two directions
    have read everything. With `attention: none` nothing else of the source reaches the decoder.
    """

    version = 1
    parallel = True
    widths = ("dim", "hidden", "feedforward")
    small: ClassVar = {"dim": 16, "hidden": 20, "feedforward": 24}
    variants: ClassVar = {
        "deep-forwards": {"layers": 3, "bidirectional": False},
        "additive": {"attention": "additive"},
        "none": {"attention": "none"},
        "share_embeddings": {"share_embeddings": True, "tie_output": True},
    }

    class Config(TiedConfig):
        hidden: int = Field(256, ge=1, le=16384, description="width of the recurrent state")
        feedforward: int = Field(256, ge=1, le=65536, description="inner width of the feedforward layers")
        layers: int = Field(2, ge=1, le=64, description="recurrent layers of the encoder, and of the decoder")
        bidirectional: bool = Field(True, description="the encoder reads in both directions")
        attention: Literal["multiplicative", "general", "additive", "none"] = Field(
            "multiplicative",
            description="Luong's general score, divided by sqrt(hidden) or not; Bahdanau's additive score; or none",
        )

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        config.check_vocabularies(source_vocab, target_vocab)
        dim, hidden, directions = config.dim, config.hidden, 1 + config.bidirectional
        self.source_embedding = nn.Embedding(source_vocab, dim)
        self.target_embedding = self.source_embedding if config.share_embeddings else nn.Embedding(target_vocab, dim)
        self.encoder = nn.ModuleList(Layer(config, directions) for _ in range(config.layers))
        self.decoder = nn.ModuleList(Layer(config, 1) for _ in range(config.layers))
        self.bridge = nn.ModuleList(nn.Linear(dim * directions, hidden) for _ in range(config.layers))
        self.encoded, self.decoded = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(config.attention, dim, dim)
        self.combine = nn.Linear(dim + self.attention.width, dim)
        self.output = nn.Linear(dim, target_vocab, bias=not config.tie_output)
        self.dropout = Dropout(config.dropout)
        for module in self.modules():
            initialise(module)
        if config.tie_output:
            self.output.weight = self.target_embedding.weight

    def encode(self, source: Int[Tensor, "batch source"], source_mask: Bool[Tensor, "batch source"]) -> MinGRUState:
        x = self.dropout(self.source_embedding(source))
        for layer in self.encoder:
            x, _ = layer(x, None, source_mask)
        x = self.dropout(self.encoded(x))
        last = x[torch.arange(len(x), device=x.device), source_mask.sum(1) - 1]
        ends = torch.cat([last, x[:, 0]], -1) if self.config.bidirectional else last
        hidden = tuple(bridge(ends).tanh() for bridge in self.bridge)
        keys = self.attention.project(x.flatten(0, 1))
        return MinGRUState(Source(keys.view(*x.shape[:2], keys.shape[1]), x, source_mask), hidden)

    def decode(
        self, tokens: Int[Tensor, "batch length"], state: MinGRUState
    ) -> tuple[Float[Tensor, "batch length target_vocab"], MinGRUState]:
        x = self.dropout(self.target_embedding(tokens))
        hidden = []
        for layer, start in zip(self.decoder, state.hidden, strict=True):
            x, last = layer(x, start)
            hidden.append(last)
        x = self.decoded(x)
        sources = len(state.source.mask)
        # The hypotheses of a source are next to each other, like one longer target.
        query = x.reshape(sources, len(x) // max(1, sources) * x.shape[1], x.shape[2])
        context = self.attention(query, state.source).view(*tokens.shape, self.attention.width)
        attended = self.combine(torch.cat([x, context], -1)).tanh()
        return self.output(self.dropout(attended)), state._replace(hidden=tuple(hidden))


class Layer(nn.Module):
    """A gated linear recurrence in one direction or both, and a feedforward layer, each with a residual connection."""

    def __init__(self, config: "MinGRU.Config", directions: int) -> None:
        super().__init__()
        self.norm, self.feedforward_norm = nn.LayerNorm(config.dim), nn.LayerNorm(config.dim)
        self.gates = nn.ModuleList(nn.Linear(config.dim, 2 * config.hidden) for _ in range(directions))
        self.out = nn.Linear(directions * config.hidden, config.dim)
        self.inner, self.outer = nn.Linear(config.dim, config.feedforward), nn.Linear(config.feedforward, config.dim)
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "batch length dim"],
        start: Float[Tensor, "batch hidden"] | None = None,
        mask: Bool[Tensor, "batch length"] | None = None,
    ) -> tuple[Float[Tensor, "batch length dim"], Float[Tensor, "batch states"]]:
        """Return the outputs, and the last state of each direction. Where the mask is False the state stays."""
        normed = self.norm(x)
        states = [recurrence(gate(normed), start, mask, bool(i)) for i, gate in enumerate(self.gates)]
        x = x + self.dropout(self.out(torch.cat(states, -1)))
        x = x + self.dropout(self.outer(self.dropout(self.inner(self.feedforward_norm(x)).relu())))
        return x, torch.cat([state[:, 0 if i else -1] for i, state in enumerate(states)], -1)


def recurrence(
    gates: Float[Tensor, "batch length gates"],
    start: Float[Tensor, "batch hidden"] | None,
    mask: Bool[Tensor, "batch length"] | None,
    backwards: bool,
) -> Float[Tensor, "batch length hidden"]:
    """Return the states h_t = (1 - z_t) h_(t-1) + z_t c_t (Feng et al. 2024, section 3.1).

    `gates` holds the logits of z and the candidates c. The state before the first token is `start`, or 0.
    """
    update, candidate = gates.chunk(2, -1)
    update = update.sigmoid()
    if mask is not None:
        update = update * mask[..., None]
    keep, new = 1 - update, update * candidate
    if start is not None:
        new = torch.cat([new[:, :1] + keep[:, :1] * start[:, None], new[:, 1:]], 1)
    if backwards:
        return scan(keep.flip(1), new.flip(1)).flip(1)
    return scan(keep, new)


class _Scan(torch.autograd.Function):
    """h_t = a_t h_(t-1) + b_t by recursive doubling; its gradient is the same recurrence from the end."""

    @staticmethod
    def forward(ctx: Any, keep: Tensor, new: Tensor) -> Tensor:
        states = doubling(keep, new)
        ctx.save_for_backward(keep, states)
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        keep, states = ctx.saved_tensors
        later = torch.cat([torch.zeros_like(keep[:, :1]), keep[:, 1:].flip(1)], 1)  # a_(t+1), from the end
        to_new = doubling(later, gradients[0].flip(1)).flip(1)
        before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], 1)
        return to_new * before, to_new


def scan(
    keep: Float[Tensor, "batch length hidden"], new: Float[Tensor, "batch length hidden"]
) -> Float[Tensor, "batch length hidden"]:
    """Return h_t = keep_t h_(t-1) + new_t for all t, with h_(-1) = 0, in about log2(length) passes."""
    states: Tensor = _Scan.apply(keep, new) if keep.shape[1] > 1 else new  # type: ignore[no-untyped-call]
    return states


def doubling(keep: Tensor, new: Tensor) -> Tensor:
    """Compute the recurrence: after a pass with distance d, each state covers the 2 d tokens up to its own."""
    distance = 1
    while distance < keep.shape[1]:
        reached = torch.addcmul(new[:, distance:], keep[:, distance:], new[:, :-distance])
        new = torch.cat([new[:, :distance], reached], 1)
        keep = torch.cat([keep[:, :distance], keep[:, distance:] * keep[:, :-distance]], 1)
        distance *= 2
    return new


def initialise(module: nn.Module) -> None:
    """Initialise the embeddings with a standard deviation of 0.1, the linear layers by Xavier, without biases."""
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.1)
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
