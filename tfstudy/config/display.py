"""A config as YAML, plain or with every key explained."""

import json
from collections.abc import Iterator
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from tfstudy.config.schema import RunConfig


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
