"""A gated linear recurrence with attention (minGRU: Feng et al. 2024, arXiv 2410.01201).

The gates do not depend on the state, so a whole sequence is computed by a parallel scan; decoding keeps one vector.
A hybrid has self-attention in some of its layers (as Jamba, Lieber et al. 2024, 2403.19887).
"""

from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from tfstudy.models.attention import Cache, MultiHeadAttention, Sight, append, causal_mask
from tfstudy.models.base import PaddedModel
from tfstudy.models.checkpointing import run_layer
from tfstudy.models.config import CopyConfig
from tfstudy.models.copying import CopyOutput
from tfstudy.models.dropout import Dropout
from tfstudy.models.recurrent import scan
from tfstudy.models.source_attention import SCORES, Score, Source, SourceAttention, copied_of


class State(NamedTuple):
    """The encoded source, and the state of each layer of the decoder."""

    source: Source
    hidden: tuple[Float[Tensor, "batch hidden"] | Cache | None, ...]  # a cache in layers with self-attention


class MinGRU(PaddedModel):
    """A gated linear recurrence: a bidirectional encoder, and a decoder that attends to it after the recurrence.

    Each layer is x + W h(norm(x)), followed by a feedforward layer of the same form. The initial state of a layer of
    the decoder is a learned map of what the encoder returns for the first and the last token, where its two directions
    have read everything. With `attention: none` nothing else of the source reaches the decoder. In a hybrid, every
    `self_attention_every`-th layer has self-attention in place of the recurrence; the recurrence before it says where
    each token is, so there is no position encoding.
    """

    version = 1
    parallel = True
    widths = ("dim", "hidden", "feedforward")
    small: ClassVar = {"dim": 16, "hidden": 20, "feedforward": 24}
    variants: ClassVar = {
        "deep-forwards": {"layers": 3, "bidirectional": False},
        "additive": {"attention": "additive"},
        "none": {"attention": "none"},
        "hybrid": {"self_attention_every": 2, "heads": 2, "layers": 3, "copy_output": True},
        "hybrid-forwards": {"self_attention_every": 2, "bidirectional": False, "attention": "dot"},
        "share_embeddings": {"share_embeddings": True, "tie_output": True},
    }

    class Config(CopyConfig):
        hidden: int = Field(256, ge=1, le=16384, description="width of the recurrent state")
        feedforward: int = Field(256, ge=1, le=65536, description="inner width of the feedforward layers")
        layers: int = Field(2, ge=1, le=64, description="recurrent layers of the encoder, and of the decoder")
        bidirectional: bool = Field(True, description="the encoder reads in both directions")
        attention: Score = Field("multiplicative", description=SCORES)
        self_attention_every: int = Field(
            0, ge=0, le=64, description="every such layer has self-attention in place of the recurrence; 0: none has"
        )
        heads: int = Field(1, ge=1, description="heads of the self-attention; must divide dim")

        @model_validator(mode="after")
        def _switches_fit(self) -> "MinGRU.Config":
            if self.attention == "none" and self.copy_output:
                raise ValueError("copy_output needs attention, but attention is 'none'")
            if self.self_attention_every == 1 or self.self_attention_every > self.layers:
                raise ValueError(
                    f"self_attention_every must be 0 (none) or from 2 to layers ({self.layers}), "
                    f"but is {self.self_attention_every}"
                )
            if self.dim % self.heads:
                raise ValueError(f"heads must divide dim ({self.dim}), but is {self.heads}")
            if self.heads > 1 and not self.self_attention_every:
                raise ValueError(f"heads is {self.heads}, but no layer has self-attention (self_attention_every is 0)")
            return self

    def __init__(self, config: Config, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config
        config.check_vocabularies(source_vocab, target_vocab)
        dim, hidden, directions = config.dim, config.hidden, 1 + config.bidirectional
        self.source_embedding = nn.Embedding(source_vocab, dim)
        self.target_embedding = self.source_embedding if config.share_embeddings else nn.Embedding(target_vocab, dim)
        numbers = range(1, config.layers + 1)
        self.encoder = nn.ModuleList(Layer(config, directions, number) for number in numbers)
        self.decoder = nn.ModuleList(Layer(config, 1, number) for number in numbers)
        recurrent = sum(layer.attention is None for layer in self.decoder)
        self.bridge = nn.ModuleList(nn.Linear(dim * directions, hidden) for _ in range(recurrent))
        self.encoded, self.decoded = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = SourceAttention(config.attention, dim, dim)
        self.combine = nn.Linear(dim + self.attention.width, dim)
        self.output = nn.Linear(dim, target_vocab, bias=not config.tie_output)
        self.copy = CopyOutput(dim, source_vocab, target_vocab) if config.copy_output else None
        self.dropout = Dropout(config.dropout)
        for module in self.modules():
            initialise(module)
        if config.tie_output:
            self.output.weight = self.target_embedding.weight

    def encode_padded(self, source: Int[Tensor, "rows source"], mask: Bool[Tensor, "rows source"]) -> State:
        x = self.dropout(self.source_states(self.source_embedding(source), 0))
        for number, layer in enumerate(self.encoder, 1):
            x = self.source_states(run_layer(layer, x, None, mask)[0], number)
        x = self.dropout(self.encoded(x))
        last = x[torch.arange(len(x), device=x.device), mask.sum(1) - 1]
        ends = torch.cat([last, x[:, 0]], -1) if self.config.bidirectional else last
        bridges = iter(self.bridge)
        hidden = tuple(next(bridges)(ends).tanh() if layer.attention is None else None for layer in self.decoder)
        keys = self.attention.project(x.flatten(0, 1))
        copied = None if self.copy is None else self.copy.target_ids[source]
        return State(Source(keys.view(*source.shape, keys.shape[1]), x, mask, copied), hidden)

    def decode_padded(
        self, tokens: Int[Tensor, "rows length"], state: State
    ) -> tuple[Float[Tensor, "rows length target_vocab"], State]:
        x = self.dropout(self.target_states(self.target_embedding(tokens), 0))
        hidden = []
        for number, (layer, start) in enumerate(zip(self.decoder, state.hidden, strict=True), 1):
            x, last = run_layer(layer, x, start)
            x = self.target_states(x, number)
            hidden.append(last)
        x = self.decoded(x)
        sources = len(state.source.mask)
        # The hypotheses of a source are next to each other, like one longer target.
        query = x.reshape(sources, len(x) // max(1, sources) * x.shape[1], x.shape[2])
        found = self.attention(query, state.source)
        context = found.contexts.reshape(*tokens.shape, self.attention.width)
        features = self.dropout(self.combine(torch.cat([x, context], -1)).tanh())
        logits = self.output(features)
        if self.copy is not None:
            copied = self.copy.copied([found.weights], copied_of([state.source]))
            logits = self.copy(features.flatten(0, 1), logits.flatten(0, 1), copied).view(logits.shape)
        return logits, state._replace(hidden=tuple(hidden))


class Layer(nn.Module):
    """A gated linear recurrence in one direction or both, and a feedforward layer, each with a residual connection.

    At the depths for it, self-attention takes the place of the recurrence. In one direction it sees no later token.
    """

    def __init__(self, config: MinGRU.Config, directions: int, number: int) -> None:
        super().__init__()
        self.norm, self.feedforward_norm = nn.LayerNorm(config.dim), nn.LayerNorm(config.dim)
        attends = config.self_attention_every > 0 and number % config.self_attention_every == 0
        self.attention = MultiHeadAttention(config.dim, config.heads) if attends else None
        self.causal = directions == 1
        if self.attention is None:
            self.gates = nn.ModuleList(nn.Linear(config.dim, 2 * config.hidden) for _ in range(directions))
            self.out = nn.Linear(directions * config.hidden, config.dim)
        self.inner, self.outer = nn.Linear(config.dim, config.feedforward), nn.Linear(config.feedforward, config.dim)
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "batch length dim"],
        start: Float[Tensor, "batch hidden"] | Cache | None = None,
        mask: Bool[Tensor, "batch length"] | None = None,
    ) -> tuple[Float[Tensor, "batch length dim"], Float[Tensor, "batch states"] | Cache]:
        """Return the outputs, and the last state of each direction. Where the mask is False the state stays.

        The state of self-attention is a cache of all tokens so far; those that the mask hides are not attended to.
        """
        update, state = self._mix(self.norm(x), start, mask)
        x = x + self.dropout(update)
        x = x + self.dropout(self.outer(self.dropout(self.inner(self.feedforward_norm(x)).relu())))
        return x, state

    def _mix(self, x: Tensor, start: Tensor | Cache | None, mask: Tensor | None) -> tuple[Tensor, Tensor | Cache]:
        if self.attention is None:
            first = start if isinstance(start, Tensor) else None
            states = [recurrence(gate(x), first, mask, bool(i)) for i, gate in enumerate(self.gates)]
            last = [state[:, 0 if i else -1] for i, state in enumerate(states)]
            return self.out(torch.cat(states, -1)), torch.cat(last, -1)
        shapes, visible = [(x.shape[0], x.shape[1])], None if mask is None else mask[:, None, None]
        if visible is not None and self.causal:
            visible = visible & causal_mask(x.shape[1], x.shape[1], x.device)
        sight = Sight(shapes, [visible], [None], "decoder" if mask is None else "encoder", causal=mask is None)
        seen = append([start] if isinstance(start, Cache) else [], self.attention.key_values(x.flatten(0, 1), sight))
        return self.attention(x.flatten(0, 1), sight, seen)[0].view(x.shape), seen[0]


# torch 2.13 compiles the backward pass of the scan with the strides of another batch, and fails
@torch.compiler.disable  # type: ignore[untyped-decorator]
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


def initialise(module: nn.Module) -> None:
    """Initialise the embeddings with a standard deviation of 0.1, the linear layers by Xavier, without biases."""
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.1)
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
