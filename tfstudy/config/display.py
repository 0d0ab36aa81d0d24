"""A config as YAML, plain or with an explanation of every key."""

import json
from collections.abc import Iterator
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from tfstudy.config.schema import RunConfig

BOUNDS = (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"))


def to_yaml(config: RunConfig) -> str:
    """Return the config as the text of a `config.yaml`."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def annotated(config: RunConfig) -> str:
    """Return the same, each key with a comment on its type, range, default and meaning."""
    return "".join(_annotated(config, ""))


def _annotated(section: BaseModel, indent: str) -> Iterator[str]:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield f"{indent}{name + ':':<{35 - len(indent)}} # {field.description}\n"
            yield from _annotated(value, indent + "  ")
            continue
        text = f"{indent}{name}: {json.dumps(value)}"
        bounds = ",".join(
            f" {sign} {getattr(m, key)}" for m in field.metadata for key, sign in BOUNDS if hasattr(m, key)
        )
        default = "" if field.is_required() else f", default {json.dumps(field.default)}"
        yield f"{text:<35} # {_type_name(field.annotation)}{bounds}{default}: {field.description}\n"


def _type_name(annotation: Any) -> str:
    """Return the name of a type, or what a key may be: `full | linear`, `float | null`."""
    if allowed := get_args(annotation):
        return " | ".join(map(_type_name, allowed))
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return "null" if name == "NoneType" else name
