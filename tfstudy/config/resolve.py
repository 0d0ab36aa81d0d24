"""From a tree of settings to a validated RunConfig; every config error is reported at once."""

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

import tasks
from tasks.base import Task
from tasks.errors import UserError
from tfstudy import models
from tfstudy.config.schema import DecodeConfig, EvalConfig, RunConfig, TrainConfig, Tree

SMOKE: Tree = {
    "train": {"steps": 20, "warmup_steps": 5, "batch_size": 16, "log_interval": 5, "validation_interval": 10},
    "eval": {"max_examples": 32},
    "smoke": True,
}


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
