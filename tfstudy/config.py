"""RunConfig: everything that decides a run's numbers, and how a user's words become one."""

import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidationError, model_validator

import tasks
from tasks.base import Task, TaskConfig, UserError, one_of
from tfstudy import models
from tfstudy.files import configs, read_yaml
from tfstudy.models.base import ModelConfig

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
    parts: int = Field(0, ge=0, description="parts computed side by side; 1 is the padded whole; 0 is 2 on CPU, else 1")
    accumulate: int = Field(1, ge=1, description="batches whose mean gradient makes one step, each weighted alike")
    optimizer: Literal["adamw", "sgd"] = Field("adamw", description="AdamW, or SGD with Nesterov momentum")
    learning_rate: float = Field(1e-3, gt=0, description="the highest of the schedule")
    schedule: Literal["cosine", "inverse_sqrt", "constant"] = Field(
        "cosine", description="after the warm-up: half a cosine to 0, sqrt(warmup/step), or no change"
    )
    warmup: int = Field(300, ge=0, description="steps of linear warm-up")
    beta1: float = Field(0.9, ge=0, lt=1, description="AdamW's decay of the mean gradient; SGD's momentum")
    beta2: float = Field(0.98, ge=0, lt=1, description="AdamW's decay of the mean squared gradient")
    weight_decay: float = Field(0.01, ge=0, description="decoupled for AdamW; of matrices, not of biases and gains")
    clip: float = Field(1.0, ge=0, description="largest norm of the whole gradient; 0 does not clip")
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="probability spread evenly over all tokens")
    teacher_forcing: float = Field(
        1.0, ge=0, le=1, description="share of batches fed with gold tokens; the others are fed with the model's own"
    )
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = Field("32-true", description="of arithmetic")
    compile: bool = Field(False, description="torch.compile: minutes at the start, faster steps on a GPU")
    log_every: int = Field(50, ge=1, description="steps between two rows of training metrics")
    check_every: int = Field(500, ge=1, description="steps between two validations, each followed by a checkpoint")

    @model_validator(mode="after")
    def _consistent(self) -> "TrainConfig":
        if self.check_every % self.log_every:
            raise ValueError(
                f"check_every must be a multiple of log_every ({self.log_every}), but is {self.check_every}"
            )
        if self.batch_tokens and self.batching == "random":
            raise ValueError(f"batch_tokens must be 0 with batching 'random', but is {self.batch_tokens}")
        return self


class DecodeConfig(Section):
    """How targets are generated (section `decode`)."""

    method: Literal["greedy", "beam"] = Field("greedy", description="one hypothesis, or several")
    width: int = Field(4, ge=1, le=256, description="hypotheses of beam search")
    length_penalty: float = Field(0.0, ge=0, description="beam scores are divided by length to this power")
    max_length: int = Field(0, ge=0, description="most tokens generated; 0 is the longest gold target and 16 more")


class EvalConfig(Section):
    """What is measured at the end (section `eval`)."""

    checkpoint: Literal["last", "best"] = Field("last", description="which weights: best is by validation loss")
    limit: int = Field(0, ge=0, description="examples a split, drawn by hash; 0 is all")
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


# Where data are read from is no part of a run's identity: their content is.
PLACES = ("root", "hub")
SMOKE: Tree = {
    "train": {"steps": 20, "warmup": 5, "batch_size": 16, "log_every": 5, "check_every": 10},
    "eval": {"limit": 32},
    "smoke": True,
}


class Identity(NamedTuple):
    """What decides a run's numbers."""

    hash: str  # sha256 over the config, the data and the versions
    experiment: str  # the same without the seed: runs that are replications of each other share it
    data: str  # the data's fingerprint
    versions: Mapping[str, int]  # of the code: task, model, training, evaluation


def identify(config: RunConfig, data: str, versions: Mapping[str, int]) -> Identity:
    """The identity of a run on data with this fingerprint."""
    tree = without_places(config)

    def digest(tree: Tree) -> str:
        return hashlib.sha256(json.dumps([tree, data, versions], sort_keys=True).encode()).hexdigest()

    experiment = digest({key: value for key, value in tree.items() if key != "seed"})
    return Identity(digest(tree), experiment, data, versions)


def without_places(config: RunConfig) -> Tree:
    """The config as plain values, without where its data are read from."""
    tree = config.model_dump(mode="json")
    return tree | {"data": {key: value for key, value in tree["data"].items() if key not in PLACES}}


def resolve(tree: Tree) -> RunConfig:
    """The config that a tree of sections says; `UserError` with every mistake in it."""
    task, arch = tasks.find(str(tree.get("task"))), models.find(str(tree.get("arch")))
    kinds: dict[str, type[BaseModel]] = {
        "data": task.Config, "model": arch.Config, "train": TrainConfig, "decode": DecodeConfig, "eval": EvalConfig
    }  # fmt: skip
    problems: list[str] = []
    parts = dict(tree)
    for name, kind in kinds.items():
        given = tree.get(name, {})
        if not isinstance(given, dict):
            problems.append(f"'{name}' must be a section of keys, but is '{given}'")
            given = {}
        try:
            parts[name] = kind.model_validate(given)
        except ValidationError as error:
            problems += _explain(error, kind, f"{name}.")
            parts[name] = kind.model_construct()  # so that the other mistakes are found too
    try:
        config = RunConfig.model_validate(parts)
    except ValidationError as error:
        problems += _explain(error, RunConfig, "")
    if problems:
        raise UserError("\n".join(problems))
    return config


def resolve_data(task: str, tree: Tree) -> Task:
    """The task with the section `data` of a tree, which has no other."""
    for key in tree.keys() - {"data"}:
        raise UserError(f"only keys of 'data.' have a meaning here, but '{key}' was given")
    kind = tasks.find(task)
    try:
        return kind(kind.Config.model_validate(tree.get("data", {})))
    except ValidationError as error:
        raise UserError("\n".join(_explain(error, kind.Config, "data."))) from None


def _explain(error: ValidationError, section: type[BaseModel], prefix: str) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        key = ".".join(map(str, problem["loc"]))
        if problem["type"] == "extra_forbidden":
            yield _unknown(key, section, prefix)
        elif problem["type"] == "missing":
            yield f"'{prefix}{key}' must be given"
        else:
            message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
            where = f"'{prefix}{key}' " if key else prefix
            given = f", but is '{problem['input']}'" if key else ""
            yield f"{where}{message}{given}"


def _unknown(key: str, section: type[BaseModel], prefix: str = "") -> str:
    allowed, text = list(section.model_fields), f"unknown key '{prefix}{key}'; "
    owners = [name for name in models.names() if prefix == "model." and key in models.find(name).Config.model_fields]
    if owners:
        return f"{text}it belongs to the architecture{'s' * (len(owners) > 1)} {', '.join(owners)}"
    near = difflib.get_close_matches(key, allowed, n=1, cutoff=0.5)
    if near:
        return f"{text}did you mean '{prefix}{near[0]}'?"
    return f"{text}allowed are {', '.join(prefix + name for name in allowed)}"


def merge(*trees: Tree) -> Tree:
    """One tree of all; later ones win, key by key within sections."""
    out: Tree = {}
    for tree in trees:
        for key, value in tree.items():
            both = isinstance(value, dict) and isinstance(out.get(key), dict)
            out[key] = merge(out[key], value) if both else value
    return out


def presets(task: str) -> dict[str, Tree]:
    """The presets of a task: name to architecture to sections. A task without a file has none."""
    path = configs() / "presets" / f"{task}.yaml"
    return read_yaml(path) if path.exists() else {}


def preset(task: str, arch: str, name: str = "default") -> Tree:
    """The sections of a preset for (task, arch), of the task's or as FILE:NAME; `default` alone may be missing."""
    file, _, key = name.rpartition(":")
    every = read_yaml(Path(file)) if file else presets(task)
    known = {k: tree for k, tree in every.items() if isinstance(tree, dict) and isinstance(tree.get(arch), dict)}
    if name == "default" and name not in known:
        return {}
    tree: Tree = known[one_of(f"preset of ({task}, {arch})" + f" in {file}" * bool(file), key, known)][arch]
    return {key: value for key, value in tree.items() if key != "about"}


def overrides(assignments: Sequence[str]) -> Tree:
    """`["model.dim=128", ...]` as a tree; values are YAML."""
    tree: Tree = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UserError(f"--set must be KEY=VALUE such as model.dim=128, but is '{text}'")
        try:
            leaf: Any = yaml.safe_load(value) if value else ""
        except yaml.YAMLError:
            leaf = value
        for part in reversed(key.split(".")):
            leaf = {part: leaf}
        tree = merge(tree, leaf)
    return tree


def to_yaml(config: RunConfig) -> str:
    """The config as the text of `config.yaml`."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def annotated(config: RunConfig) -> str:
    """`to_yaml`, each key with its type, default and meaning beside it."""
    return "".join(_annotated(config, ""))


def _annotated(section: BaseModel, indent: str) -> Iterator[str]:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield f"{indent}{name}:{' ' * max(1, 34 - len(name))}# {field.description}\n"
            yield from _annotated(value, indent + "  ")
            continue
        text = f"{indent}{name}: {json.dumps(value)}"
        default = "" if field.is_required() else f", default {json.dumps(field.default)}"
        limits = (f" {sign} {getattr(m, key)}" for m in field.metadata for key, sign in BOUNDS if hasattr(m, key))
        bounds = ",".join(limits)
        yield f"{text:<35} # {_type_name(field.annotation)}{bounds}{default}: {field.description}\n"


BOUNDS = (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"))


def _type_name(annotation: Any) -> str:
    allowed = get_args(annotation)
    return " | ".join(map(str, allowed)) if allowed else annotation.__name__
