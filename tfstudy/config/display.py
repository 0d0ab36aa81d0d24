"""A config as YAML, plain or with an explanation of every key."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from tfstudy.config.schema import RunConfig

COLUMN, WIDTH = 34, 80  # where comments begin and end
BOUNDS = (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"))


def to_yaml(config: RunConfig) -> str:
    """Return the config as the text of a `config.yaml`."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def annotated(config: RunConfig) -> str:
    """Return the same in 80 columns, each key with a comment on its type, range and meaning.

    The comment on a value other than the default says what it was changed from.
    """
    return "".join(_annotated(config, ""))


def _annotated(section: BaseModel, indent: str) -> Iterator[str]:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield _commented(f"{indent}{name}:", str(field.description))
            yield from _annotated(value, indent + "  ")
            continue
        bounds = ",".join(
            f" {sign} {getattr(m, key)}" for m in field.metadata for key, sign in BOUNDS if hasattr(m, key)
        )
        changed = "" if field.is_required() or value == field.default else f", changed from {json.dumps(field.default)}"
        comment = f"{_type_name(field.annotation)}{bounds}{changed}: {field.description}"
        yield _commented(f"{indent}{name}: {json.dumps(value)}", comment)


def _commented(text: str, comment: str) -> str:
    """Return a line of YAML with a comment, which continues on lines below."""
    lines = textwrap.wrap(comment, WIDTH - COLUMN - 2, break_long_words=False, break_on_hyphens=False)
    first, rest = (f"{text}\n", lines) if len(text) >= COLUMN else (f"{text:{COLUMN}}# {lines[0]}\n", lines[1:])
    return first + "".join(f"{'':{COLUMN}}# {line}\n" for line in rest)


def _type_name(annotation: Any) -> str:
    """Return the name of a type, or what a key may be: `full | linear`, `float | null`."""
    if allowed := get_args(annotation):
        return " | ".join(map(_type_name, allowed))
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return "null" if name == "NoneType" else name
