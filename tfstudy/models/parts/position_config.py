"""The settings of the Transformer's positions. Imports no torch."""

from typing import Literal

from pydantic import Field, model_validator

from tfstudy.models.parts.layer_config import LayerConfig

Positions = Literal[
    "sinusoidal", "learned", "relative", "shaw", "rotary", "t5", "alibi", "kerple", "kerple_power", "fire",
    "contextual", "none",
]  # fmt: skip
CrossPositions = Literal["rotary", "t5", "alibi", "kerple", "kerple_power", "fire", "none"]
ON_EMBEDDINGS = ("sinusoidal", "learned")
WITHOUT_NUMBERS = ("contextual", "none")  # schemes that do not depend on the numbers of positions


class PositionConfig(LayerConfig):
    """The settings of how the Transformer knows where a token is (section `model`)."""

    positions: Positions = Field(
        "sinusoidal", description="position scheme of encoder and decoder; relative: Dai et al. 2019"
    )
    decoder_positions: Positions | None = Field(
        None, description="position scheme of the decoder (none given: as `positions`)"
    )
    cross_positions: CrossPositions = Field(
        "none", description="position scheme between target and source, in cross-attention"
    )
    randomised_positions: int = Field(
        0, ge=0, le=2**16, description="draw positions at random below this number (Ruoss et al. 2023; 0: 0, 1, 2, ...)"
    )
    max_positions: int = Field(
        512, ge=1, description="longest sequence with learned or randomised positions; sequences of the data always fit"
    )

    digit_positions: int = Field(
        0, ge=0, le=2**16, description="positions of digits in their numbers: size of the table (McLeish et al. 2024)"
    )

    @property
    def target_positions(self) -> str:
        """The position scheme of the decoder."""
        return self.decoder_positions or self.positions

    @property
    def position_schemes(self) -> tuple[str, str, str]:
        """The position schemes of the encoder, the decoder and the cross-attention."""
        return self.positions, self.target_positions, self.cross_positions

    @property
    def positions_are_limited(self) -> bool:
        """Whether no sequence may be longer than `max_positions`."""
        return bool(self.randomised_positions) or "learned" in self.position_schemes

    @model_validator(mode="after")
    def _positions_agree(self) -> "PositionConfig":
        schemes = self.position_schemes
        if "rotary" in schemes and self.dim % (2 * self.heads):
            allowed = f"a multiple of 2 * heads ({2 * self.heads}) with rotary positions"
            raise ValueError(f"dim must be {allowed}, but is {self.dim}")
        on_embeddings = {scheme if scheme in ON_EMBEDDINGS else "none" for scheme in schemes[:2]}
        if self.share_embeddings and len(on_embeddings) > 1:
            raise ValueError(
                f"share_embeddings needs the same positions on embeddings, but there are {schemes[0]} and {schemes[1]}"
            )
        if self.randomised_positions:
            self._check_range()
        return self

    def _check_range(self) -> None:
        if all(scheme in WITHOUT_NUMBERS for scheme in self.position_schemes):
            raise ValueError(f"randomised_positions change nothing with positions {self.positions}; it must be 0")
        if self.randomised_positions < self.max_positions:
            raise ValueError(
                f"randomised_positions must be at least max_positions ({self.max_positions}), "
                f"but is {self.randomised_positions}"
            )
