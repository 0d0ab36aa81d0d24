"""The settings that architectures share, and those of the Transformer (section `model` of a config). No torch."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Positions = Literal[
    "sinusoidal", "learned", "relative", "shaw", "rotary", "t5", "alibi", "kerple", "fire",
    "contextual", "none",
]  # fmt: skip
WITHOUT_NUMBERS = ("contextual", "none")  # schemes that do not depend on the numbers of positions


class ModelConfig(BaseModel):
    """The settings common to all architectures (section `model`)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    dim: int = Field(128, ge=1, le=16384, description="width of the embeddings")
    dropout: float = Field(0.1, ge=0, lt=1, description="probability of setting an activation to zero during training")

    @property
    def needs_one_vocabulary(self) -> bool:
        """Whether the source and the target must have the same tokens."""
        return False


class TiedConfig(ModelConfig):
    """The settings of an architecture whose embeddings can be shared (section `model`)."""

    tie_output: bool = Field(False, description="use the target embedding as the output layer, without a bias")
    share_embeddings: bool = Field(False, description="use one embedding for source and target (needs one vocabulary)")
    copy_output: bool = Field(
        False, description="mix the output with pointers to source tokens (See et al. 2017, Gu et al. 2016)"
    )

    @property
    def needs_one_vocabulary(self) -> bool:
        return self.share_embeddings


class TransformerConfig(TiedConfig):
    """The settings of the Transformer (section `model`)."""

    heads: int = Field(4, ge=1, description="attention heads; must divide dim")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="dropout on attention weights (slower on CPU)")
    feedforward: int = Field(256, ge=1, le=65536, description="hidden width of the feed-forward layers")
    activation_dropout: float | None = Field(
        None, ge=0, lt=1, description="dropout within feed-forward layers (null: dropout)"
    )
    activation: Literal["relu", "gelu", "swiglu", "geglu"] = Field(
        "relu", description="of the feed-forward layers; swiglu and geglu are gated (Shazeer 2020)"
    )
    norm: Literal["pre", "post", "sandwich", "none"] = Field(
        "pre", description="normalise before each sublayer, behind it, on both sides (Ding et al. 2021), or nowhere"
    )
    norm_type: Literal["layer", "rms"] = Field("layer", description="LayerNorm, or RMSNorm (Zhang & Sennrich 2019)")
    residual: Literal["sum", "scaled", "none"] = Field(
        "sum", description="residual connections; scaled: sublayers times 1/sqrt(2 * layers) (Noci et al. 2022)"
    )
    positions: Positions = Field("sinusoidal", description="position scheme; relative: Dai et al. 2019")
    randomised_positions: int = Field(
        0, ge=0, le=2**16, description="draw positions at random below this number (Ruoss et al. 2023; 0: 0, 1, 2, ...)"
    )
    max_positions: int = Field(
        512, ge=1, description="longest sequence with learned or randomised positions; sequences of the data always fit"
    )
    digit_positions: int = Field(
        0, ge=0, le=2**16, description="positions of digits in their numbers: size of the table (McLeish et al. 2024)"
    )
    layout: Literal["encoder_decoder", "decoder_only"] = Field(
        "encoder_decoder",
        description="decoder_only: one stack of encoder_layers + decoder_layers layers reads source and target",
    )
    encoder_layers: int = Field(2, ge=1, le=512, description="layers of the encoder")
    decoder_layers: int = Field(2, ge=1, le=512, description="layers of the decoder")
    embedding_init: Literal["unit_variance", "token_upscaling", "xavier"] = Field(
        "unit_variance",
        description=(
            "initial token embeddings: normal with variance 1/dim, times sqrt(dim); Xavier uniform, times "
            "sqrt(dim); or Xavier uniform, as Csordas et al. 2021 have it with relative positions"
        ),
    )
    share_layers: bool = Field(False, description="use the same layer at every depth (Dehghani et al. 2019)")

    @model_validator(mode="after")
    def _settings_agree(self) -> "TransformerConfig":
        if self.dim % self.heads:
            raise ValueError(f"heads must divide dim ({self.dim}), but is {self.heads}")
        if self.norm == "none" and self.norm_type != "layer":
            raise ValueError(f"norm_type {self.norm_type} needs a norm, but norm is none")
        if self.layout == "decoder_only":  # `contextual` would count the padding between source and target
            needs = {"copy_output": self.copy_output, "randomised_positions": self.randomised_positions}
            needs |= {"positions 'contextual'": self.positions == "contextual"}
            for setting in filter(needs.get, needs):
                raise ValueError(f"{setting} needs layout encoder_decoder, but layout is decoder_only")
        if self.positions == "rotary" and self.dim % (2 * self.heads):
            allowed = f"a multiple of 2 * heads ({2 * self.heads}) with rotary positions"
            raise ValueError(f"dim must be {allowed}, but is {self.dim}")
        if self.randomised_positions and self.positions in WITHOUT_NUMBERS:
            raise ValueError(f"randomised_positions change nothing with positions {self.positions}; it must be 0")
        if 0 < self.randomised_positions < self.max_positions:
            raise ValueError(
                f"randomised_positions must be at least max_positions ({self.max_positions}), "
                f"but is {self.randomised_positions}"
            )
        return self
