"""The settings of the layers of the Transformer. Imports no torch."""

from typing import Literal

from pydantic import Field, model_validator

from tfstudy.models.config import CopyConfig


class LayerConfig(CopyConfig):
    """The settings of the Transformer's layers (section `model`)."""

    heads: int = Field(4, ge=1, description="attention heads; must divide dim")
    attention: Literal["full", "linear"] = Field(
        "full", description="self-attention; linear: Katharopoulos et al. 2020, with a state of constant size"
    )
    attention_window: int = Field(
        0, ge=0, description="self-attention sees at most this many positions to each side (0: all)"
    )
    attention_dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="dropout on attention weights, with linear attention of cross-attention only (slower on CPU)",
    )
    score_scale: Literal["sqrt_dim", "none"] = Field(
        "sqrt_dim", description="divide attention scores by sqrt(dim / heads), or not (linear: cross-attention only)"
    )
    temperature: float = Field(
        1.0, gt=0, description="divide attention scores by this number as well (linear: cross-attention only)"
    )
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
    experts: int = Field(0, ge=0, le=1024, description="feed-forward networks of a mixture of experts (0: no mixture)")
    experts_per_token: int = Field(1, ge=1, description="experts that compute each token (1: Switch Transformer)")
    expert_balance: float = Field(0.01, ge=0, description="weight of the loss that balances the load of the experts")
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
        for key in ("experts_per_token", "expert_balance"):
            if not self.experts and getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"{key} needs a mixture of experts, but experts is 0")
        if self.experts and self.experts_per_token > self.experts:
            raise ValueError(
                f"experts_per_token must be at most experts ({self.experts}), but is {self.experts_per_token}"
            )
        if self.norm == "none" and not self.qk_norm and self.norm_type != "layer":
            raise ValueError(f"norm_type {self.norm_type} needs a norm or qk_norm, but norm is none")
        if self.attention == "linear" and self.attention_window:
            raise ValueError("attention_window needs attention full, but attention is linear")
        return self
