"""RunConfig: every setting of a run, with its type, range and meaning."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, model_validator

from tasks.base import TaskConfig
from tfstudy.models.config import ModelConfig

Tree = dict[str, Any]


class Section(BaseModel):
    """A part of the config: frozen, no unknown keys, no nan or infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TrainConfig(Section):
    """How the weights are found (section `train`)."""

    steps: int = Field(3000, ge=1, description="optimiser steps; the last one's weights are reported")
    batch_size: int = Field(64, ge=1, description="most examples in a batch, of all devices together")
    batch_tokens: int = Field(0, ge=0, description="most padded tokens on a batch's longer side; 0 is no bound")
    batching: Literal["random", "length"] = Field("random", description="batches of any lengths, or of like length")
    micro_batches: int = Field(
        0, ge=0, description="parts computed side by side; 1 is the padded whole; 0 is 2 on CPU, else 1"
    )
    accumulate_grad_batches: int = Field(
        1, ge=1, description="batches whose mean gradient makes one step, each weighted alike"
    )
    optimizer: Literal["adamw", "sgd"] = Field("adamw", description="AdamW, or SGD with Nesterov momentum")
    learning_rate: float = Field(1e-3, gt=0, description="the highest of the schedule")
    schedule: Literal["cosine", "inverse_sqrt", "constant"] = Field(
        "cosine", description="after the warm-up: half a cosine to 0, sqrt(warmup/step), or no change"
    )
    warmup_steps: int = Field(300, ge=0, description="steps of linear warm-up")
    beta1: float = Field(0.9, ge=0, lt=1, description="AdamW's decay of the mean gradient; SGD's momentum")
    beta2: float = Field(0.98, ge=0, lt=1, description="AdamW's decay of the mean squared gradient")
    weight_decay: float = Field(0.01, ge=0, description="decoupled for AdamW; of matrices, not of biases and gains")
    gradient_clip_norm: float = Field(1.0, ge=0, description="largest norm of the whole gradient; 0 does not clip")
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="probability spread evenly over all tokens")
    teacher_forcing: float = Field(
        1.0, ge=0, le=1, description="share of batches fed with gold tokens; the others are fed with the model's own"
    )
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = Field("32-true", description="of arithmetic")
    compile: bool = Field(False, description="torch.compile: minutes at the start, faster steps on a GPU")
    log_interval: int = Field(50, ge=1, description="steps between two rows of training metrics")
    validation_interval: int = Field(
        500, ge=1, description="steps between two validations, each followed by a checkpoint"
    )

    @model_validator(mode="after")
    def _consistent(self) -> "TrainConfig":
        if self.validation_interval % self.log_interval:
            raise ValueError(
                f"validation_interval must be a multiple of log_interval ({self.log_interval}), but is {self.validation_interval}"
            )
        if self.batch_tokens and self.batching == "random":
            raise ValueError(f"batch_tokens must be 0 with batching 'random', but is {self.batch_tokens}")
        return self


class DecodeConfig(Section):
    """How targets are generated (section `decode`)."""

    method: Literal["greedy", "beam"] = Field("greedy", description="one hypothesis, or several")
    beam_size: int = Field(4, ge=1, le=256, description="hypotheses of beam search")
    length_penalty: float = Field(0.0, ge=0, description="beam scores are divided by length to this power")
    max_length: int = Field(0, ge=0, description="most tokens generated; 0 is the longest gold target and 16 more")


class EvalConfig(Section):
    """What is measured at the end (section `eval`)."""

    checkpoint: Literal["last", "best"] = Field("last", description="which weights: best is by validation loss")
    max_examples: int = Field(0, ge=0, description="examples a split, drawn by hash; 0 is all")
    batch_size: int = Field(512, ge=1, description="sources decoded together")


class RunConfig(Section):
    """One run. `data` is of the task's type and `model` of the architecture's."""

    task: str = Field(description="a file of tasks/")
    data: SerializeAsAny[TaskConfig] = Field(description="what the task generates or loads")
    arch: str = Field(description="a file of tfstudy/models/")
    model: SerializeAsAny[ModelConfig] = Field(description="the architecture's size and shape")
    train: TrainConfig = Field(default_factory=TrainConfig, description="how the weights are found")
    decode: DecodeConfig = Field(default_factory=DecodeConfig, description="how targets are generated")
    eval: EvalConfig = Field(default_factory=EvalConfig, description="what is measured at the end")
    seed: int = Field(0, ge=0, lt=2**63, description="decides initialisation, dropout and order")
    smoke: bool = Field(False, description="a run that only shows that every part works")
