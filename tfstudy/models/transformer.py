"""The Transformer of Vaswani et al. 2017 (arXiv 1706.03762), pre-norm by default (Xiong et al. 2020)."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from torch import Tensor, nn

from tfstudy.models.base import RaggedModel, State
from tfstudy.models.parts.attention import windowed
from tfstudy.models.parts.layers import Dropout, Embedding, embedding_init, run_layer
from tfstudy.models.parts.layouts import (
    PrefixState,
    TransformerSource,
    TransformerState,
    encoded_states,
    read_outputs,
    read_source,
    read_target,
    target_positions,
)
from tfstudy.models.parts.observing import Site, observed
from tfstudy.models.parts.positions import Setup, acts_on_attention
from tfstudy.models.parts.positions.base import Places, PositionScheme
from tfstudy.models.parts.positions.numbering import (
    DigitPositions,
    Numbering,
    Numbers,
    digits_of_sources,
    digits_of_targets,
    places,
)
from tfstudy.models.parts.source_attention import CopyOutput, copied_ids
from tfstudy.models.parts.tokens import RaggedGroup, Shapes, flatten_groups, shapes_by_source, shapes_of
from tfstudy.models.parts.transformer_config import TransformerConfig
from tfstudy.models.parts.transformer_layers import Stack


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
        "shaw": {"positions": "shaw", "decoder_positions": "t5", "cross_positions": "alibi"},
        "fire": {"positions": "t5", "decoder_positions": "fire", "cross_positions": "kerple"},
        "contextual": {"positions": "contextual", "cross_positions": "kerple_power"},
        "randomised": {"positions": "rotary", "cross_positions": "rotary", "randomised_positions": 128},
        "digits": {"digit_positions": 20, "positions": "none"},
        "sandwich": {"norm": "sandwich", "norm_type": "rms", "qk_norm": True, "score_scale": "none"},
        "no_norm": {"norm": "none", "residual": "scaled", "attention_window": 1, "temperature": 2},
        "no_residual": {"residual": "none", "norm": "sandwich", "encoder_layers": 1, "decoder_layers": 1},
        "gelu": {"activation": "gelu"},
        "decoder_only": {"layout": "decoder_only", "encoder_layers": 1, "decoder_layers": 1, "attention_window": 5},
        "decoder_only_relative": {"layout": "decoder_only", "positions": "relative", "share_layers": True},
        "decoder_only_digits": {"layout": "decoder_only", "digit_positions": 20, "positions": "none"},
        "decoder_only_learned": {"layout": "decoder_only", "positions": "learned", "activation": "swiglu"},
        "encoder_only": {"layout": "encoder_only", "positions": "rotary", "randomised_positions": 128},
        "encoder_only_digits": {"layout": "encoder_only", "digit_positions": 20},
        "share_layers": {"share_layers": True, "decoder_layers": 3},
        "universal": {"share_layers": True, "depth_signal": True, "input_injection": True, "activation": "geglu"},
        "tie_output": {"tie_output": True},
        "token_upscaling": {"embedding_init": "token_upscaling"},
        "xavier": {"embedding_init": "xavier", "positions": "relative", "tie_output": True},
        "share_embeddings": {"share_embeddings": True, "tie_output": True, "copy_output": True},
    }
    bags = ("none",)
    source_only = ("encoder_only", "encoder_only_digits")

    Config = TransformerConfig

    def __init__(self, config: TransformerConfig, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config = config

        def embedding(vocab: int, scheme: str) -> Embedding:
            init = embedding_init(config.embedding_init, vocab, config.dim)
            both = 2 if config.layout == "decoder_only" else 1  # the positions of the target follow those of the source
            positions = config.randomised_positions or both * config.max_positions
            return Embedding(vocab, config.dim, scheme, positions, init, config.word_dropout)

        config.check_vocabularies(source_vocab, target_vocab)
        if config.layout != "encoder_only":
            self.target_embedding = embedding(target_vocab, config.target_positions)
        self.source_embedding = (
            self.target_embedding if config.share_embeddings else embedding(source_vocab, config.positions)
        )
        self.numbering = Numbering(config.randomised_positions, config.max_positions)
        self.digits = self._digit_positions(source_vocab, target_vocab) if config.digit_positions else None
        layers = config.encoder_layers + config.decoder_layers
        if config.layout == "decoder_only":
            self.decoder = Stack(config, layers, decoder=False)
        elif config.layout == "encoder_only":
            self.encoder = Stack(config, layers, decoder=False)
        else:
            self.encoder = Stack(config, config.encoder_layers, decoder=False)
            self.decoder = Stack(config, config.decoder_layers, decoder=True)
        self.output = nn.Linear(config.dim, target_vocab, bias=not config.tie_output)
        if config.tie_output:
            self.output.weight = self.target_embedding.tokens.weight
        else:
            nn.init.xavier_uniform_(self.output.weight)
            nn.init.zeros_(self.output.bias)
        self.copy = CopyOutput(config.dim, source_vocab, target_vocab) if config.copy_output else None
        self.dropout = Dropout(config.dropout)

    @property
    def max_positions(self) -> int | None:
        return self.config.max_positions if self.config.positions_are_limited else None

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        yield from super().parameters_without_decay()
        for module in self.modules():
            if isinstance(module, PositionScheme):
                yield from module.parameters_without_decay()

    def forward_groups(self, groups: Sequence[RaggedGroup]) -> Tensor:
        sources, masks, tokens = zip(*groups, strict=True)
        lengths = [max(group.source.shape[1], group.tokens.shape[1]) for group in groups]
        drawn = [self.numbering.sample(length, mask.device) for length, mask in zip(lengths, masks, strict=True)]
        return self.decode_groups(tokens, self.encode_groups(sources, masks, drawn))[0]

    def encode_groups(
        self, sources: Sequence[Tensor], masks: Sequence[Tensor], drawn: Sequence[Tensor | None] = ()
    ) -> list[State]:
        shapes, window = shapes_of(sources), self.config.attention_window
        drawn = drawn or [None] * len(sources)  # samples of random positions, from `forward_groups`
        numbers = self._numbers(sources, [0] * len(sources), drawn)
        near = self._places(self.config.positions, numbers, numbers)
        digits, starts = digits_of_sources(self.digits, sources)
        x = embedded = observed(Site("encoder", 0), self._embed(self.source_embedding, sources, numbers, digits))
        if self.config.layout == "decoder_only":
            return read_source(self.decoder, embedded, shapes, masks, window, near, starts)
        seen = [windowed(mask, window) for mask in masks]
        for number, layer in enumerate(self.encoder, 1):
            entered = self.encoder.enter(x, embedded, number)
            x = observed(Site("encoder", number), run_layer(layer.encode, entered, shapes, seen, number, near))
        x = self.encoder.norm(x)
        if self.config.layout == "encoder_only":
            return encoded_states(x, shapes, sources, masks)
        far = self._places(self.config.cross_positions, numbers, numbers)
        memories = zip(*(layer.cross.project(x, shapes, far) for layer in self.decoder), strict=True)
        return [
            TransformerState(
                TransformerSource(
                    memory,
                    mask,
                    (number.all.expand(mask.shape),) if far else (),
                    copied,
                    () if sample is None else (sample.expand(len(mask), -1),),
                ),
                tuple(layer.attention.empty(x, len(mask)) for layer in self.decoder),
                start,
            )
            for memory, mask, number, copied, start, sample in zip(
                memories, masks, numbers, copied_ids(self.copy, sources), starts, drawn, strict=True
            )
        ]

    def decode_groups(self, tokens: Sequence[Tensor], states: Sequence[State]) -> tuple[Tensor, list[State]]:
        if self.config.layout == "decoder_only":
            return self._decode_after_prefix(tokens, states)
        if self.config.layout == "encoder_only":
            read, after = read_outputs(tokens, states)
            return read.ended(self.output(read.features)), after
        sources, shapes = [state.source for state in states], shapes_of(tokens)
        masks = [source.mask for source in sources]
        by_source, seen = shapes_by_source(tokens, masks), [mask[:, None, None] for mask in masks]
        drawn = [source.drawn[0] if source.drawn else None for source in sources]
        numbers = self._numbers(tokens, [state.past[0].length for state in states], drawn)
        near, far = self._places(self.config.target_positions, numbers, numbers), self._far(shapes, numbers, sources)
        digits, states = digits_of_targets(self.digits, tokens, states)
        x = embedded = observed(Site("decoder", 0), self._embed(self.target_embedding, tokens, numbers, digits))
        pasts = []
        for depth, layer in enumerate(self.decoder):
            before, memory = [state.past[depth] for state in states], [source.memory[depth] for source in sources]
            x = self.decoder.enter(x, embedded, depth + 1)
            x, past = run_layer(layer.decode_self, x, shapes, before, depth + 1, near)
            weighted = self.copy is not None and depth + 1 == len(states[0].past)
            x, weights = run_layer(layer.decode_cross, x, by_source, memory, seen, depth + 1, far, weighted)
            x = observed(Site("decoder", depth + 1), x)
            pasts.append(past)
        after = [state._replace(past=past) for state, past in zip(states, zip(*pasts, strict=True), strict=True)]
        features = self.decoder.norm(x)
        logits = self.output(features)
        if self.copy is not None:
            logits = self.copy(features, logits, self.copy.copied(weights, [source.copied for source in sources]))
        return logits, after

    def _decode_after_prefix(
        self, tokens: Sequence[Tensor], states: Sequence[PrefixState]
    ) -> tuple[Tensor, list[PrefixState]]:
        places = [state.places(*group.shape) for group, state in zip(tokens, states, strict=True)]
        digits, states = digits_of_targets(self.digits, tokens, states)
        embedded = self.target_embedding(flatten_groups(tokens), *target_positions(places))
        if self.digits is not None:
            embedded = self.digits.embed(embedded, digits)
        embedded, window = observed(Site("decoder", 0), self.dropout(embedded)), self.config.attention_window
        x, after = read_target(self.decoder, embedded, shapes_of(tokens), states, window, places)
        return self.output(self.decoder.norm(x)), after

    def _embed(
        self,
        embedding: Embedding,
        tokens: Sequence[Tensor],
        numbers: Sequence[Numbers],
        digits: Sequence[Tensor] = (),
    ) -> Tensor:
        """Embed the tokens of all groups at their positions, and at those of digits."""
        new = flatten_groups([number.new.expand(group.shape) for number, group in zip(numbers, tokens, strict=True)])
        end = max(number.end for number in numbers)
        embedded: Tensor = embedding(flatten_groups(tokens), new, end)
        if self.digits is not None:
            embedded = self.digits.embed(embedded, digits)
        dropped: Tensor = self.dropout(embedded)
        return dropped

    def _digit_positions(self, source_vocab: int, target_vocab: int) -> DigitPositions:
        init = embedding_init(self.config.embedding_init, target_vocab, self.dim)
        setup = Setup(self.dim, positions=self.config.digit_positions, std=init.std * init.scale)
        return DigitPositions(setup, source_vocab, target_vocab)

    def _numbers(
        self, tokens: Sequence[Tensor], starts: Sequence[int], drawn: Sequence[Tensor | None]
    ) -> list[Numbers]:
        """Return the positions of each group's tokens, which follow `start` others."""
        groups = zip(tokens, starts, drawn, strict=True)
        return [self.numbering(start, group.shape[1], group.device, sample) for group, start, sample in groups]

    def _places(self, scheme: str, queries: Sequence[Numbers], keys: Sequence[Numbers]) -> list[Places] | None:
        """Return the positions that attention with this scheme depends on; None if it does not."""
        if not acts_on_attention(scheme):
            return None
        return [places(query, key) for query, key in zip(queries, keys, strict=True)]

    def _far(
        self, shapes: Shapes, queries: Sequence[Numbers], sources: Sequence[TransformerSource]
    ) -> list[Places] | None:
        """Return the positions that cross-attention depends on; None if it does not. All rows have the same."""
        if not acts_on_attention(self.config.cross_positions):
            return None
        hypotheses = [batch // max(1, len(source.mask)) for (batch, _), source in zip(shapes, sources, strict=True)]
        keys = [self.numbering.known(source.positions[0][:1]) for source in sources]
        return [places(*group) for group in zip(queries, keys, hypotheses, strict=True)]
