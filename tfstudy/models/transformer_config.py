"""The settings of the Transformer. Imports no torch."""

from typing import Literal

from pydantic import Field

from tfstudy.models.position_config import PositionConfig


class TransformerConfig(PositionConfig):
    """The settings of the Transformer (section `model`)."""

    encoder_layers: int = Field(2, ge=1, le=512, description="layers of the encoder")
    decoder_layers: int = Field(2, ge=1, le=512, description="layers of the decoder")
    embedding_init: Literal["unit_variance", "token_upscaling", "no_scaling", "position_downscaling", "xavier"] = Field(
        "unit_variance",
        description=(
            "initial token embeddings: normal with variance 1/dim, times sqrt(dim); Xavier uniform, times "
            "sqrt(dim); normal with variance 1; normal with variance 2/dim, sinusoids divided by sqrt(dim); or "
            "Xavier uniform, as Csordas et al. 2021 have it with relative positions"
        ),
    )
    share_layers: bool = Field(False, description="use the same layer at every depth")
