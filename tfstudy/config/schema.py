"""RunConfig: every setting of a run, with its type, range and meaning; and as YAML. Imports no torch."""

import json
import textwrap
from collections.abc import Mapping
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, model_validator
from pydantic_core import to_jsonable_python

from tfstudy.errors import UserError
from tfstudy.models.config import ModelConfig
from tfstudy.tasks.base import TaskConfig

WIDTH = 80  # of comments on the keys of a config
BOUNDS = (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"))


class Section(BaseModel):
    """A section of the config: frozen; unknown keys, nan and infinity are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TrainConfig(Section):
    """How the weights are trained (section `train`)."""

    steps: int = Field(3000, ge=1, description="optimiser steps; the last weights are evaluated")
    batch_size: int = Field(64, ge=1, description="maximum number of examples per batch")
    batch_tokens: int = Field(
        0, ge=0, description="maximum tokens per batch on its longer side (0: no limit), with padding unless random"
    )
    batching: Literal["random", "length", "fairseq"] = Field(
        "random", description="batches of any lengths, of similar target length, or as fairseq 0.6 composes them"
    )
    resampled_examples: int = Field(
        0, ge=0, le=100_000_000, description="train on so many draws from the train split, once per seed (0: all of it)"
    )
    micro_batches: int = Field(0, ge=0, description="parallel micro-batches per step (0: 1 or 2, by device and work)")
    accumulate_grad_batches: int = Field(1, ge=1, description="batches per step, whose gradients are averaged")
    optimizer: Literal["adamw", "sgd"] = Field("adamw", description="AdamW, or SGD with Nesterov momentum")
    learning_rate: float = Field(1e-3, gt=0, description="highest learning rate; with schedule 'noam', a factor of it")
    schedule: Literal["cosine", "inverse_sqrt", "constant", "noam"] = Field(
        "cosine",
        description="learning rate after warm-up: half a cosine to 0, sqrt(warmup_steps / step), or constant; noam: "
        "learning_rate / sqrt(model.dim * step) (Vaswani et al. 2017)",
    )
    warmup_steps: int = Field(300, ge=0, description="steps of linear warm-up (0: none)")
    beta1: float = Field(0.9, ge=0, lt=1, description="first beta of AdamW; momentum of SGD")
    beta2: float = Field(0.98, ge=0, lt=1, description="second beta of AdamW")
    adam_epsilon: float = Field(1e-9, gt=0, description="epsilon of AdamW, added to the root of the second moment")
    weight_decay: float = Field(0.01, ge=0, description="of matrices, not of biases and gains; decoupled in AdamW")
    gradient_clip_norm: float = Field(1.0, ge=0, description="maximum norm of the whole gradient (0: no limit)")
    loss_reduction: Literal["mean", "sum"] = Field("mean", description="mean or sum over the target tokens of a batch")
    target_eos: bool = Field(
        True, description="train on targets that end with EOS; else only metrics at the target's length mean anything"
    )
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="probability spread evenly over all target tokens")
    teacher_forcing: float = Field(1.0, ge=0, le=1, description="share of batches without scheduled sampling")
    sampling_stops_at_eos: bool = Field(False, description="scheduled sampling: no loss after the first predicted EOS")
    precision: Literal["32-true", "bf16-mixed"] = Field("32-true", description="precision of the arithmetic")
    gradient_checkpointing: bool = Field(False, description="compute layers again in the backward pass: less memory")
    compile: bool = Field(False, description="use torch.compile: takes minutes at the start, faster steps on a GPU")
    log_interval: int = Field(50, ge=1, description="steps between two records of the training metrics")
    validation_interval: int = Field(500, ge=1, description="steps between two validations, each with a checkpoint")

    @model_validator(mode="after")
    def _consistent(self) -> "TrainConfig":
        if self.validation_interval % self.log_interval:
            interval = f"a multiple of log_interval ({self.log_interval})"
            raise ValueError(f"validation_interval must be {interval}, but is {self.validation_interval}")
        if self.sampling_stops_at_eos and not self.target_eos:
            raise ValueError("sampling_stops_at_eos must be false if target_eos is false")
        if self.gradient_checkpointing and self.compile:
            raise ValueError("gradient_checkpointing must be false if compile is true")
        return self


class DecodeConfig(Section):
    """How targets are generated (section `decode`)."""

    method: Literal["greedy", "beam"] = Field("greedy", description="greedy decoding or beam search")
    beam_size: int = Field(4, ge=1, le=256, description="hypotheses of beam search")
    length_penalty: float = Field(0.0, ge=0, le=10, description="beam search: exponent of the length in its scores")
    limit: Literal["longest", "source"] = Field(
        "longest",
        description="maximum number of generated tokens: 16 more than the longest target; or than the source times the "
        "99 % quantile of target length / source length in the train split (at least 1)",
    )
    max_length: int = Field(0, ge=0, le=1_000_000, description="maximum of generated tokens per output (0: see limit)")

    def check_given(self, given: Mapping[str, Any]) -> None:
        """Raise `UserError` if a setting of beam search is among those given for greedy decoding, which has no use."""
        for key in ("beam_size", "length_penalty") if self.method == "greedy" else ():
            if key in given and given[key] != type(self).model_fields[key].default:
                raise UserError(f"decode.{key} is a setting of beam search: set decode.method=beam too")

    @property
    def hypotheses(self) -> int:
        """Number of partial outputs that are kept of each source; greedy decoding keeps one."""
        return self.beam_size if self.method == "beam" else 1


class EvalConfig(Section):
    """What is evaluated after training (section `eval`)."""

    checkpoint: Literal["last", "best"] = Field("last", description="last weights, or those of lowest validation loss")
    max_examples: int = Field(0, ge=0, description="maximum number of examples per split, drawn by hash (0: all)")
    batch_size: int = Field(512, ge=1, description="maximum of sources decoded together; 512 stands for 4096 on a GPU")


class RunConfig(Section):
    """All settings of a run. The type of `data` depends on the task, that of `model` on the architecture."""

    task: str = Field(description="name of a task (`tfstudy list tasks`)")
    data: SerializeAsAny[TaskConfig] = Field(description="data that the task generates or loads")
    arch: str = Field(description="name of an architecture (`tfstudy list architectures`)")
    model: SerializeAsAny[ModelConfig] = Field(description="size and shape of the model")
    train: TrainConfig = Field(default_factory=TrainConfig, description="how the weights are trained")
    decode: DecodeConfig = Field(default_factory=DecodeConfig, description="how targets are generated")
    eval: EvalConfig = Field(default_factory=EvalConfig, description="what is evaluated after training")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of initialisation, dropout and order of the batches")
    smoke: bool = Field(False, description="quick end-to-end check; its numbers mean nothing")

    @model_validator(mode="after")
    def _has_best_checkpoint(self) -> "RunConfig":
        train = self.train
        if self.eval.checkpoint == "best" and train.steps % train.validation_interval:
            interval = f"a multiple of train.validation_interval ({train.validation_interval})"
            raise ValueError(f"with eval.checkpoint 'best', train.steps must be {interval}, but is {train.steps}")
        return self


def to_yaml(config: RunConfig) -> str:
    """Return the config as the text of a `config.yaml`."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def annotated(section: BaseModel, indent: str = "") -> str:
    """Return the same in 80 columns, each key below a comment on its type, range and meaning.

    The comment on a value other than the default says what it was changed from.
    """
    text = ""
    for name, field in type(section).model_fields.items():
        value, comment, margin = getattr(section, name), str(field.description), f"{indent}# "
        shown = annotated(value, indent + "  ") if isinstance(value, BaseModel) else ""
        if not shown:
            limits = "".join(f" {sign} {getattr(m, k)}" for m in field.metadata for k, sign in BOUNDS if hasattr(m, k))
            default = field.is_required() or value == field.default
            changed = "" if default else f", changed from {_as_json(field.default)}"
            comment = f"{_type_name(field.annotation)}{limits}{changed}: {comment}"
        text += textwrap.fill(comment, WIDTH, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
        text += f"\n{indent}{name}:" + (f"\n{shown}" if shown else f" {_as_json(value)}\n")
    return text


def _as_json(value: Any) -> str:
    return json.dumps(value, default=to_jsonable_python)


def _type_name(annotation: Any) -> str:
    """Return the name of a type, or what a key may be: `full | linear`, `float | null`."""
    if allowed := get_args(annotation):
        return " | ".join(map(_type_name, allowed))
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return "null" if name == "NoneType" else name
