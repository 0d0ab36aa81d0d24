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


class TiedConfig(ModelConfig):
    """The settings of an architecture whose embeddings can be shared (section `model`)."""

    tie_output: bool = Field(False, description="use the target embedding as the output layer, without a bias")
    share_embeddings: bool = Field(False, description="use one embedding for source and target (needs one vocabulary)")

    @property
    def needs_one_vocabulary(self) -> bool:
        return self.share_embeddings

    def check_vocabularies(self, source: int, target: int) -> None:
        """Raise `ValueError` if one embedding is to serve vocabularies of different sizes."""
        if self.share_embeddings and source != target:
            raise ValueError(f"share_embeddings needs one vocabulary, but there are {source} and {target}")


class CopyConfig(TiedConfig):
    """The settings of an architecture that can copy from its source (section `model`)."""

    copy_output: bool = Field(
        False, description="mix the output with a copy of source tokens, weighted by attention (See et al. 2017)"
    )
