"""From a tree of settings to a validated RunConfig; all config errors are reported at once.

Imports no torch before the names of the task and the architecture are known to be valid, and never Lightning.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tfstudy import models, tasks
from tfstudy.config.schema import DecodeConfig, EvalConfig, RunConfig, TrainConfig
from tfstudy.config.trees import MAX_DEPTH, Tree, merge, parse_yaml, unflatten
from tfstudy.errors import UserError, nearest, quoted

Section = TypeVar("Section", bound=BaseModel)
ALMOST = 0.9  # share of characters that an unknown key has in common with one of another section
LARGEST = 2**63 - 1  # of all integers
NO_TEXT = re.compile("[\0\ud800-\udfff]")  # what neither a path nor a JSON file can hold
RETIRED: dict[str, tuple[Any, ...]] = {  # keys that are gone, with their last defaults
    "data.duplicates": ("allowed",), "data.hub": ("",), "data.max_edit_distance": (3,), "data.test_digits": (0,),
    "data.test_symbols": (0,), "data.modulus": (7,), "data.reverse_output": (False,), "data.repeats": (2,),
    "data.digits": (3,), "data.queries": (0,), "data.bleu_tokenizer": ("auto",), "data.drop_overlap": (True,),
    "data.lowercase": (False,), "data.max_subwords": (0,), "data.reverse": (False,), "data.shared_subwords": (True,),
    "data.subset_seed": (0,), "data.subword_pairs": (0,), "data.source_language": ("",),
    "model.attention": ("full", True), "model.attention_window": (0,),
    "model.cross_positions": ("none",), "model.decoder_positions": (None,), "model.depth_signal": (False,),
    "model.expert_balance": (0.01,), "model.experts": (0,), "model.experts_per_token": (1,), "model.heads": (1,),
    "model.input_feeding": (False,), "model.input_injection": (False,), "model.layer_init": ("xavier",),
    "model.qk_norm": (False,), "model.score_scale": ("sqrt_dim",), "model.self_attention_every": (0,),
    "model.temperature": (1.0,), "model.test_layers": (0,), "model.weight_norm": (True,), "model.word_dropout": (0.0,),
    "train.average_last": (0,), "train.ema_decay": (0.0,),
}  # fmt: skip
SMOKE: Tree = {
    "train": {"steps": 20, "warmup_steps": 5, "batch_size": 16, "log_interval": 5, "validation_interval": 10},
    "eval": {"max_examples": 32},
    "smoke": True,
}


def resolve(tree: Tree) -> RunConfig:
    """Return the config with the settings of a tree; `UserError` with one line for each error.

    Configs of older code may have keys that are gone, if their values are the defaults.
    """
    types: dict[str, type[BaseModel]] = {
        "data": tasks.find(str(tree.get("task"))).Config,
        "model": models.find(str(tree.get("arch"))).Config,
        "train": TrainConfig,
        "decode": DecodeConfig,
        "eval": EvalConfig,
    }
    known = [*RunConfig.model_fields, *(f"{name}.{key}" for name, one in types.items() for key in one.model_fields)]
    errors: list[str] = []
    sections = dict(tree)
    for name, section in types.items():
        try:
            sections[name] = resolve_section(section, tree.get(name, {}), f"{name}.", known)
        except UserError as error:
            errors.append(str(error))
            sections[name] = section.model_construct()  # so that errors outside of this section are found too
    try:
        config = resolve_section(RunConfig, sections, "", known)
        if not errors:
            tasks.find(config.task).check_config(config.data)
    except UserError as error:
        errors.append(str(error))
    if errors:
        raise UserError("\n".join(errors))
    return config


def resolve_section(section: type[Section], values: Any, prefix: str = "", known: Sequence[str] = ()) -> Section:
    """Return a validated section of a config, or the settings of an instrument; `UserError` with a line per error."""
    if not isinstance(values, dict):
        raise UserError(f"'{prefix.rstrip('.')}' must be a section of keys, but is {quoted(values)}")
    own = section.model_fields  # a plug-in may have a key that is gone elsewhere
    values = {key: value for key, value in values.items() if key in own or value not in RETIRED.get(prefix + key, ())}
    unfit = {key: rule for key, value in values.items() if (rule := _unfit(value))}
    errors = [f"'{prefix}{key}' must be {rule}, but is {quoted(values[key])}" for key, rule in unfit.items()]
    fit = {key: value for key, value in values.items() if key not in unfit}
    try:
        found = section.model_validate(fit, strict=True)
    except ValidationError as error:
        try:  # as JSON, where a list may be a tuple or a set, and a text a path or a member of an enumeration
            found = section.model_validate_json(json.dumps(fit), strict=True)
        except (TypeError, ValueError, RecursionError):  # also a `ValidationError`
            errors += _explain(error, section, prefix, known)
    if errors:
        raise UserError("\n".join(errors))
    return found


def check_local(config: RunConfig) -> None:
    """`UserError` if the data of a config, which may be somebody else's, come from the network."""
    hub = getattr(config.data, "hub", "")  # the name of a data set on the network, or a folder
    if hub and not os.path.isdir(hub):
        raise UserError(f"its data come from the network (data.hub {quoted(hub)}); --online loads them")


def overrides(assignments: Sequence[str]) -> Tree:
    """Return `["model.dim=128", ...]` as a tree; values are read as YAML, and later assignments win."""
    tree: Tree = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UserError(f"--set must be KEY=VALUE such as model.dim=128, but is {quoted(text)}")
        if key.count(".") > MAX_DEPTH:
            raise UserError(f"the key {quoted(key)} of --set has more than {MAX_DEPTH} points")
        try:
            leaf: Any = parse_yaml(value, f"the value of {quoted(key)}") if value else ""
        except UserError:  # text, such as a path with a colon
            leaf = value
        tree = merge(tree, unflatten({key: leaf}))
    return tree


def _unfit(value: Any) -> str:
    """Return what a value of any setting must be and is not; empty if it may be one."""
    if isinstance(value, str) and NO_TEXT.search(value):
        return "text without NUL and without halves of characters"
    return f"at most {LARGEST}" if isinstance(value, int) and abs(value) > LARGEST else ""


def _explain(error: ValidationError, section: type[BaseModel], prefix: str, known: Sequence[str]) -> Iterator[str]:
    """Yield a line for each error: what a value must be and what it is, with the nearest of a few allowed words."""
    for problem in error.errors(include_url=False):
        key, value = quoted(".".join(map(str, problem["loc"])), marks=""), problem["input"]
        rule = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        if problem["type"] == "extra_forbidden":
            yield _unknown(key, section, prefix, known)
        elif problem["type"] == "missing":
            yield f"'{prefix}{key}' is required"
        elif not key:
            yield f"{prefix}{rule}"
        else:
            words = re.findall(r"'([^']*)'", rule) if problem["type"] == "literal_error" else ()
            hint = nearest(value, words) if isinstance(value, str) else ""
            yield f"'{prefix}{key}' {rule}, but is {quoted(value)}{hint}"


def _unknown(key: str, section: type[BaseModel], prefix: str, known: Sequence[str]) -> str:
    """The message for an unknown key: the architectures that have it, the nearest key, or all keys of the section."""
    keys, whole, owners = [prefix + name for name in section.model_fields], prefix + key, []
    for arch in models.names() if prefix == "model." else ():
        with suppress(UserError):  # a plug-in that can't be imported
            owners += [arch] * (key in models.find(arch).Config.model_fields)
    if owners:
        return f"unknown key '{whole}'; it belongs to the architecture{'s' * (len(owners) > 1)} {', '.join(owners)}"
    if gone := RETIRED.get(whole):
        return f"'{whole}' is no longer a setting; a config may only have its last default, {gone[0]}"
    expected = f"; expected one of: {', '.join(keys) or '(there are none)'}"
    return f"unknown key '{whole}'{nearest(key, keys) or nearest(key, known, ALMOST) or expected}"
