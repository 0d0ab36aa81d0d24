"""The settings of the layers of the Transformer. Imports no torch."""

from typing import Literal

from pydantic import Field, model_validator

from tfstudy.models.config import CopyConfig


class LayerConfig(CopyConfig):
    """The settings of the Transformer's layers (section `model`)."""

    heads: int = Field(4, ge=1, description="attention heads; must divide dim")
    attention_window: int = Field(
        0, ge=0, description="self-attention sees at most this many positions to each side (0: all)"
    )
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="dropout on attention weights (slower on CPU)")
    score_scale: Literal["sqrt_dim", "none"] = Field(
        "sqrt_dim", description="divide attention scores by sqrt(dim / heads), or not"
    )
    temperature: float = Field(1.0, gt=0, description="divide attention scores by this number as well")
    qk_norm: bool = Field(
        False, description="normalise queries and keys of each head, with learned gains (Dehghani et al. 2023)"
    )
    feedforward: int = Field(256, ge=1, le=65536, description="hidden width of the feed-forward layers")
    activation: Literal["relu", "gelu", "swiglu", "geglu"] = Field(
        "relu", description="of the feed-forward layers; swiglu and geglu are gated (Shazeer 2020)"
    )
    activation_dropout: float | None = Field(
        None, ge=0, lt=1, description="dropout behind the activation of the feed-forward layers (none: as `dropout`)"
    )
    norm: Literal["pre", "post", "sandwich", "none"] = Field(
        "pre", description="normalise before each sublayer, behind it, on both sides (Ding et al. 2021), or nowhere"
    )
    norm_type: Literal["layer", "rms"] = Field("layer", description="LayerNorm, or RMSNorm (Zhang & Sennrich 2019)")
    residual: Literal["sum", "scaled", "none"] = Field(
        "sum", description="residual connections; scaled: sublayers times 1/sqrt(2 * layers) (Noci et al. 2022)"
    )

    @model_validator(mode="after")
    def _settings_agree(self) -> "LayerConfig":
        if self.dim % self.heads:
            raise ValueError(f"heads must divide dim ({self.dim}), but is {self.heads}")
        if self.norm == "none" and not self.qk_norm and self.norm_type != "layer":
            raise ValueError(f"norm_type {self.norm_type} needs a norm or qk_norm, but norm is none")
        return self
