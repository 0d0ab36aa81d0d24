"""The Transformer of Vaswani et al. 2017 (arXiv 1706.03762), pre-norm by default (Xiong et al. 2020)."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from jaxtyping import Bool
from torch import Tensor, nn

from tfstudy.models.base import RaggedModel
from tfstudy.models.cache import Cache, KeyValue
from tfstudy.models.embedding import Embedding, embedding_init
from tfstudy.models.layers import Dropout
from tfstudy.models.positions.transformer_xl import TransformerXL
from tfstudy.models.ragged import flatten_groups, shapes_by_source, shapes_of, token_positions
from tfstudy.models.transformer_config import TransformerConfig
from tfstudy.models.transformer_layers import Stack


class TransformerSource(NamedTuple):
    """Keys and values of the source for each decoder layer."""

    memory: tuple[KeyValue, ...]
    mask: Bool[Tensor, "sources source"]


class TransformerState(NamedTuple):
    """The source, and keys and values of the target tokens decoded so far for each decoder layer."""

    source: TransformerSource
    past: tuple[Cache, ...]


class Transformer(RaggedModel):
    """The Transformer: self-attention in the encoder, causal self-attention and cross-attention in the decoder."""

    version = 1
    parallel = True
    widths = ("dim", "feedforward")
    small: ClassVar = {"dim": 16, "heads": 2, "feedforward": 24, "max_positions": 64}
    variants: ClassVar = {
        "postnorm": {"norm": "post"},
        "relative": {"positions": "relative"},
        "learned": {"positions": "learned"},
        "none": {"positions": "none"},
        "share_layers": {"share_layers": True, "decoder_layers": 3},
        "tie_output": {"tie_output": True},
        "token_upscaling": {"embedding_init": "token_upscaling"},
        "no_scaling": {"embedding_init": "no_scaling"},
        "position_downscaling": {"embedding_init": "position_downscaling"},
        "xavier": {"embedding_init": "xavier", "positions": "relative", "tie_output": True},
        "share_embeddings": {"share_embeddings": True, "tie_output": True},
    }
    bags = ("none",)

    Config = TransformerConfig

    def __init__(self, config: TransformerConfig, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config

        def embedding(vocab: int) -> Embedding:
            init = embedding_init(config.embedding_init, vocab, config.dim)
            return Embedding(vocab, config.dim, config.positions, config.max_positions, init)

        config.check_vocabularies(source_vocab, target_vocab)
        self.target_embedding = embedding(target_vocab)
        self.source_embedding = self.target_embedding if config.share_embeddings else embedding(source_vocab)
        self.encoder = Stack(config, config.encoder_layers, decoder=False)
        self.decoder = Stack(config, config.decoder_layers, decoder=True)
        self.output = nn.Linear(config.dim, target_vocab, bias=not config.tie_output)
        if config.tie_output:
            self.output.weight = self.target_embedding.tokens.weight
        else:
            nn.init.xavier_uniform_(self.output.weight)
            nn.init.zeros_(self.output.bias)
        self.dropout = Dropout(config.dropout)

    @property
    def max_positions(self) -> int | None:
        return self.config.max_positions if self.config.positions == "learned" else None

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        yield from super().parameters_without_decay()
        for module in self.modules():
            if isinstance(module, TransformerXL):
                yield from (module.content_bias, module.position_bias)

    def encode_groups(self, sources: Sequence[Tensor], masks: Sequence[Tensor]) -> list[TransformerState]:
        shapes, seen = shapes_of(sources), [mask[:, None, None] for mask in masks]
        x = self._embed(self.source_embedding, sources)
        for number, layer in enumerate(self.encoder, 1):
            x = layer.encode(x, shapes, seen, number)
        x = self.encoder.norm(x)
        memories = zip(*(layer.cross.project(x, shapes) for layer in self.decoder), strict=True)
        return [
            TransformerState(TransformerSource(memory, mask), (self._empty(x, len(mask)),) * len(memory))
            for memory, mask in zip(memories, masks, strict=True)
        ]

    def decode_groups(
        self, tokens: Sequence[Tensor], states: Sequence[TransformerState]
    ) -> tuple[Tensor, list[TransformerState]]:
        sources, shapes = [state.source for state in states], shapes_of(tokens)
        masks = [source.mask for source in sources]
        by_source, seen = shapes_by_source(tokens, masks), [mask[:, None, None] for mask in masks]
        x = self._embed(self.target_embedding, tokens, [state.past[0].length for state in states])
        pasts = []
        for depth, layer in enumerate(self.decoder):
            x, past = layer.decode_self(x, shapes, [state.past[depth] for state in states], depth + 1)
            x = layer.decode_cross(x, by_source, [source.memory[depth] for source in sources], seen, depth + 1)
            pasts.append(past)
        after = [state._replace(past=past) for state, past in zip(states, zip(*pasts, strict=True), strict=True)]
        return self.output(self.decoder.norm(x)), after

    def _embed(self, embedding: Embedding, tokens: Sequence[Tensor], starts: Sequence[int] | None = None) -> Tensor:
        """Embed the tokens of all groups, each group from its own start position on (0 by default)."""
        starts = starts or [0] * len(tokens)
        rows = [group.new_full((len(group),), start) for group, start in zip(tokens, starts, strict=True)]
        end = max(start + group.shape[1] for group, start in zip(tokens, starts, strict=True))
        embedded: Tensor = self.dropout(embedding(flatten_groups(tokens), token_positions(tokens, rows), end))
        return embedded

    def _empty(self, x: Tensor, batch: int) -> Cache:
        empty = x.new_zeros(batch, self.config.heads, 0, self.config.dim // self.config.heads)
        return Cache(KeyValue(empty, empty))
