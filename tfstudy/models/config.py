"""The settings that every architecture has (section `model` of a config). Imports no torch."""

from pydantic import BaseModel, ConfigDict, Field


class ModelConfig(BaseModel):
    """The settings common to all architectures (section `model`)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    dim: int = Field(128, ge=1, le=16384, description="width of the embeddings")
    dropout: float = Field(0.1, ge=0, lt=1, description="probability of setting an activation to zero during training")

    @property
    def needs_one_vocabulary(self) -> bool:
        """Whether the source and the target must have the same tokens."""
        return False
