"""The Transformer of Vaswani et al. 2017 (arXiv 1706.03762), pre-norm by default (Xiong et al. 2020).

What is computed depends on the layout: an encoder and a decoder (below), or one stack for both (`decoder_only.py`). The
parts, each in a file:

    config.py               the settings, with what must not be combined
    tokens.py               rows of different length in one batch
    attention.py            `Sight`: which keys a query sees (causal, padding); `Cache`: what generation keeps
    layers.py, residual.py  a layer with its dropout; the sum around each sublayer, where a gate would be
    positions/              a class for each position scheme; where tokens are, and digits in their numbers
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from tfstudy.models.attention import Cache, KeyValue, Sight
from tfstudy.models.base import Model
from tfstudy.models.config import TransformerConfig
from tfstudy.models.copying import CopyOutput
from tfstudy.models.decoder_only import DecoderOnly
from tfstudy.models.dropout import Dropout
from tfstudy.models.layers import Embedding, Stack, embedding_init
from tfstudy.models.positions import PositionScheme, Setup
from tfstudy.models.positions.numbering import DigitPositions, DigitState, Numbering
from tfstudy.models.source_attention import Source, encoded
from tfstudy.models.tokens import Tokens


class Transformer(Model):
    """The Transformer: self-attention in the encoder, causal self-attention and cross-attention in the decoder."""

    version = 1
    parallel = True
    widths = ("dim", "feedforward")
    small: ClassVar = {"dim": 16, "heads": 2, "feedforward": 24, "max_positions": 64}
    variants: ClassVar = {
        "postnorm": {"norm": "post", "activation": "gelu"},
        "relative": {"positions": "relative"},
        "learned": {"positions": "learned"},
        "none": {"positions": "none"},
        "shaw": {"positions": "shaw"},
        "t5": {"positions": "t5"},
        "kerple": {"positions": "kerple"},
        "fire": {"positions": "fire"},
        "contextual": {"positions": "contextual"},
        "randomised": {"positions": "rotary", "randomised_positions": 128},
        "digits": {"digit_positions": 20, "positions": "none"},
        "sandwich": {"norm": "sandwich", "norm_type": "rms"},
        "no_norm": {"norm": "none", "residual": "scaled"},
        "no_residual": {"residual": "none", "norm": "sandwich", "encoder_layers": 1, "decoder_layers": 1},
        "decoder_only": {"layout": "decoder_only", "encoder_layers": 1, "decoder_layers": 1},
        "decoder_only_relative": {"layout": "decoder_only", "positions": "relative", "share_layers": True},
        "decoder_only_digits": {"layout": "decoder_only", "digit_positions": 20, "positions": "none"},
        "decoder_only_learned": {"layout": "decoder_only", "positions": "learned", "activation": "swiglu"},
        "share_layers": {"share_layers": True, "decoder_layers": 3, "activation": "geglu"},
        "token_upscaling": {"embedding_init": "token_upscaling", "tie_output": True},
        "xavier": {"embedding_init": "xavier", "positions": "relative", "tie_output": True},
        "share_embeddings": {"share_embeddings": True, "tie_output": True, "copy_output": True},
    }
    bags = ("none",)
    Config = TransformerConfig

    encoder: Stack  # in the layout that has one
    decoder: Stack

    def __init__(self, config: TransformerConfig, source_vocab: int, target_vocab: int) -> None:
        super().__init__(config, source_vocab, target_vocab)
        self.config, self.layout = config, LAYOUTS[config.layout]
        self.target_embedding = self._embedding(target_vocab)
        self.source_embedding = self.target_embedding if config.share_embeddings else self._embedding(source_vocab)
        self.numbering = Numbering(config.randomised_positions, config.max_positions)
        self.digits: DigitPositions | None = None
        if config.digit_positions:
            setup = Setup(config.dim, positions=config.digit_positions, std=self.target_embedding.std)
            self.digits = DigitPositions(setup, source_vocab, target_vocab)
        for name, (layers, crosses) in self.layout.stacks(config).items():
            self.add_module(name, Stack(config, layers, crosses))
        self.output = nn.Linear(config.dim, target_vocab, bias=not config.tie_output)
        if config.tie_output:
            self.output.weight = self.target_embedding.tokens.weight
        else:
            nn.init.xavier_uniform_(self.output.weight)
            nn.init.zeros_(self.output.bias)
        self.copy = CopyOutput(config.dim, config.dim, source_vocab, target_vocab) if config.copy_output else None
        self.dropout = Dropout(config.dropout)

    def _embedding(self, vocab: int) -> Embedding:
        config = self.config
        both = 2 if config.layout == "decoder_only" else 1  # the positions of the target follow those of the source
        positions = config.randomised_positions or both * config.max_positions
        init = embedding_init(config.embedding_init, vocab, config.dim)
        return Embedding(vocab, config.dim, config.positions, positions, init)

    @property
    def max_positions(self) -> int | None:
        limited = self.config.randomised_positions or self.config.positions == "learned"
        return self.config.max_positions if limited else None

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        yield from super().parameters_without_decay()
        for module in self.modules():
            if isinstance(module, PositionScheme):
                yield from module.parameters_without_decay()

    def encode(self, source: Tokens) -> Any:
        return self.layout.encode(self, source)  # EncoderDecoder below, or DecoderOnly

    def decode(self, target: Tokens, state: Any) -> tuple[Float[Tensor, "tokens vocab"], Any]:
        return self.layout.decode(self, target, state)

    def forward(self, source: Tokens, target: Tokens) -> Float[Tensor, "tokens vocab"]:
        return super().forward(*self.numbering.drawn(source, target))

    def embed_source(self, source: Tokens) -> tuple[Float[Tensor, "tokens dim"], DigitState | None]:
        """Return the embedded source, and what the positions of digits of the target depend on."""
        x, digits = self.source_embedding(source), None
        if self.digits is not None:
            x, digits = self.digits.of_source(x, source)
        return self.dropout(x), digits

    def embed_target(
        self, target: Tokens, digits: DigitState | None
    ) -> tuple[Float[Tensor, "tokens dim"], DigitState | None]:
        """Return the embedded target, and what the positions of digits that follow depend on."""
        x = self.target_embedding(target)
        if self.digits is not None and digits is not None:
            x, digits = self.digits.of_target(x, target, digits)
        return self.dropout(x), digits


class Memory(NamedTuple):
    """The source, with its keys and values for each decoder layer and rectangle."""

    tokens: Tokens
    key_values: Sequence[Sequence[KeyValue]] = ()
    copied: Sequence[Source] = ()  # if the model copies


class State(NamedTuple):
    """The source, and what generation needs of the target tokens so far."""

    source: Memory
    caches: Sequence[Sequence[Cache]] = ()  # of each layer and rectangle; none before the first token
    length: int = 0  # target tokens so far
    digits: DigitState | None = None  # if there are positions of digits


class EncoderDecoder:
    """An encoder, and a decoder with causal self-attention and cross-attention to the encoder's outputs."""

    @staticmethod
    def stacks(config: TransformerConfig) -> dict[str, tuple[int, bool]]:
        """Return the number of layers of each stack, and whether they have cross-attention."""
        return {"encoder": (config.encoder_layers, False), "decoder": (config.decoder_layers, True)}

    @staticmethod
    def encode(model: Transformer, source: Tokens) -> State:
        """Return the encoded source."""
        config = model.config
        source = model.numbering(source)
        embedded, digits = model.embed_source(source)
        near = Sight.within(source, config.positions)
        x, _ = model.encoder(embedded, near, model.source_states)
        x = model.encoder.norm(x)
        far = Sight.within(source)
        key_values = tuple(layer.cross.key_values(x, far) for layer in model.decoder)
        copied = encoded(source, x[:, :0], x, model.copy) if model.copy else ()
        return State(Memory(source, key_values, copied), digits=digits)

    @staticmethod
    def decode(model: Transformer, target: Tokens, state: State) -> tuple[Tensor, State]:
        """Return the logits (tokens, vocab) after the target tokens, and the new state."""
        config, source = model.config, state.source
        target = model.numbering(target.following(state.length))
        embedded, digits = model.embed_target(target, state.digits)
        near = Sight.back(target, config.positions)
        far = Sight.across(target, source.tokens)
        x, caches = model.decoder(embedded, near, model.target_states, state.caches, source.key_values, far)
        features = model.decoder.norm(x)
        logits = model.output(features)
        if model.copy is not None:
            logits = model.copy(features, logits, target.shapes, source.copied)
        return logits, State(source, caches, target.next_start, digits)


LAYOUTS: dict[str, type[EncoderDecoder | DecoderOnly]] = {
    "encoder_decoder": EncoderDecoder,
    "decoder_only": DecoderOnly,
}
