"""The settings of the Transformer. Imports no torch."""

from typing import Literal

from pydantic import Field, model_validator

from tfstudy.models.config import TiedConfig


class TransformerConfig(TiedConfig):
    """The settings of the Transformer (section `model`)."""

    encoder_layers: int = Field(2, ge=1, le=512, description="layers of the encoder")
    decoder_layers: int = Field(2, ge=1, le=512, description="layers of the decoder")
    heads: int = Field(4, ge=1, description="attention heads; must divide dim")
    feedforward: int = Field(256, ge=1, le=65536, description="hidden width of the feed-forward layers")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="dropout on attention weights (slower on CPU)")
    norm: Literal["pre", "post"] = Field("pre", description="layer normalisation before or after each sublayer")
    positions: Literal["sinusoidal", "learned", "relative", "none"] = Field(
        "sinusoidal", description="position encoding; relative: Dai et al. 2019"
    )
    max_positions: int = Field(512, ge=1, description="size of the table of learned positions")
    embedding_init: Literal["unit_variance", "token_upscaling", "no_scaling", "position_downscaling", "xavier"] = Field(
        "unit_variance",
        description=(
            "initial token embeddings: normal with variance 1/dim, times sqrt(dim); Xavier uniform, times "
            "sqrt(dim); normal with variance 1; normal with variance 2/dim, sinusoids divided by sqrt(dim); or "
            "Xavier uniform, as Csordas et al. 2021 have it with relative positions"
        ),
    )
    share_layers: bool = Field(False, description="use the same layer at every depth")

    @model_validator(mode="after")
    def _heads_divide_dim(self) -> "TransformerConfig":
        if self.dim % self.heads:
            raise ValueError(f"heads must divide dim ({self.dim}), but is {self.heads}")
        return self
