"""The settings of the Transformer. Imports no torch."""

from typing import Literal

from pydantic import Field, model_validator

from tfstudy.models.parts.position_config import PositionConfig

LAYOUTS: dict[str, tuple[str, ...]] = {  # that have a setting; all have the others
    "decoder_positions": ("encoder_decoder",),
    "cross_positions": ("encoder_decoder",),
    "copy_output": ("encoder_decoder",),
    "randomised_positions": ("encoder_decoder", "encoder_only"),
    "share_embeddings": ("encoder_decoder", "decoder_only"),  # elsewhere the target has no embedding
    "tie_output": ("encoder_decoder", "decoder_only"),
}


class TransformerConfig(PositionConfig):
    """The settings of the Transformer (section `model`)."""

    layout: Literal["encoder_decoder", "decoder_only", "encoder_only"] = Field(
        "encoder_decoder",
        description=(
            "decoder_only: one stack of encoder_layers + decoder_layers layers reads source and target; encoder_only: "
            "it reads the source, and each of its positions predicts one target token"
        ),
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
    word_dropout: float = Field(0.0, ge=0, lt=1, description="probability of dropping a token's whole embedding")
    share_layers: bool = Field(False, description="use the same layer at every depth")
    depth_signal: bool = Field(
        False,
        description="add sinusoids of the depth before each shared layer (of eq. 4 and 5 of Dehghani et al. 2019, "
        "those of the depth only)",
    )
    input_injection: bool = Field(False, description="add the embeddings again before each layer after the first")
    test_layers: int = Field(
        0, ge=0, le=512, description="times that shared layers are applied outside training (0: as in training)"
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> "TransformerConfig":
        for key in ("depth_signal", "test_layers"):
            if getattr(self, key) and not self.share_layers:
                raise ValueError(f"{key} needs share_layers")
        self._check_layout()
        return self

    def _check_layout(self) -> None:
        """Raise `ValueError` if a setting needs another layout."""
        if self.layout == "decoder_only" and "contextual" in self.position_schemes:
            raise ValueError(
                "positions 'contextual' needs layout encoder_decoder, but layout is decoder_only, where it would count "
                "the padding between source and target"
            )
        for key, layouts in LAYOUTS.items():
            if self.layout not in layouts and getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"{key} needs layout {' or '.join(layouts)}, but layout is {self.layout}")
