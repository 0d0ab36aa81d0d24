"""The reference of the config: every key with its type, default, range and meaning, from the pydantic models."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tfstudy import models, tasks
from tfstudy.config.schema import DecodeConfig, EvalConfig, RunConfig, TrainConfig
from tfstudy.models.config import ModelConfig
from tfstudy.tasks.base import TaskConfig
from tfstudy.tasks.generated import GeneratedConfig
from tools.site.markdown import code, table, text

BOUNDS = (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than"))
NAMES = {"str": "text", "int": "integer", "float": "number", "bool": "true or false"}
RUN = """# Config: training and evaluation

Every key of a run's config outside the sections `data` ([tasks](config-data.md)) and `model`
([architectures](config-model.md)). Set a key with `--set train.steps=500`, in a file for `--config`, in a preset or in
a grid. `tfstudy config TASK` shows the values that a command would use. Only keys that differ from their default
enter the hash of a run.
"""
DATA = """# Config: data

The keys of the section `data`, by task. Set them with `--set data.train_length=1-20`. `data.split` is also the option
`--split`.
"""
MODEL = """# Config: models

The keys of the section `model`, by architecture. Set them with `--set model.dim=256`. The defaults are those of the
code; a preset (`tfstudy list presets TASK`) sets sizes that are comparable among architectures.
"""


def run_page() -> str:
    """Return the page of the keys that all runs have."""
    own = {key: field for key, field in RunConfig.model_fields.items() if not _is_section(field)}
    parts = [RUN, "## The run\n", keys("", own)]
    for name, section in (("train", TrainConfig), ("decode", DecodeConfig), ("eval", EvalConfig)):
        parts += [f"## {name}\n", text(_first(section)), "", keys(f"{name}.", section.model_fields)]
    return "\n".join(parts)


def data_page() -> str:
    """Return the page of the section `data`: the keys that tasks share, then those of each task."""
    generated = changed(GeneratedConfig, TaskConfig)
    parts = [DATA, *_section("All tasks", "data.", TaskConfig, TaskConfig.model_fields)]
    parts += _section("Generated tasks", "data.", GeneratedConfig, generated)
    for name in tasks.names():
        config = tasks.find(name).Config
        base = GeneratedConfig if issubclass(config, GeneratedConfig) else TaskConfig
        link = "generated-tasks" if base is GeneratedConfig else "all-tasks"
        parts += [
            f"## {name}\n",
            f"[The task](../gallery/{name}.md). It also has the keys of [{_title(base)}](#{link}).\n",
        ]
        parts.append(keys("data.", changed(config, base)))
    return "\n".join(parts)


def model_page() -> str:
    """Return the page of the section `model`: the keys that architectures share, then those of each."""
    parts = [MODEL, *_section("All architectures", "model.", ModelConfig, ModelConfig.model_fields)]
    for name in models.names():
        kind = models.find(name)
        parts += [f"## {name}\n", text(_first(kind)), "", keys("model.", changed(kind.Config, ModelConfig))]
    return "\n".join(parts)


def changed(config: type[BaseModel], base: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields that `base` lacks, or whose default, type or description differ from those of `base`."""
    return {key: field for key, field in config.model_fields.items() if repr(field) != repr(base.model_fields.get(key))}


def keys(prefix: str, fields: dict[str, FieldInfo]) -> str:
    """Return the table of some keys."""
    rows = [
        (code(prefix + key), code(default(field)), kind(field), text(field.description))
        for key, field in fields.items()
    ]
    return table(("Key", "Default", "Type and range", "Meaning"), rows, "keys")


def default(field: FieldInfo) -> str:
    """Return the default value as YAML would write it; empty if the key is required."""
    return "" if field.is_required() else json.dumps(field.default).strip('"') or '""'


def kind(field: FieldInfo) -> str:
    """Return the type and the range of a key, such as "integer, at least 1"."""
    return ", ".join(
        [_type(field.annotation), *(f"{word} {_number(value)}" for word, value in _bounds(field.metadata))]
    )


def _type(annotation: Any) -> str:
    choices = get_args(annotation)
    if choices and all(isinstance(choice, str) for choice in choices):
        return " \\| ".join(map(code, choices))
    if choices:
        return " or ".join(_type(choice) for choice in choices if choice is not type(None) and isinstance(choice, type))
    return NAMES.get(annotation.__name__, annotation.__name__)


def _bounds(metadata: Iterable[Any]) -> Iterator[tuple[str, float]]:
    for limit in metadata:
        yield from ((word, getattr(limit, key)) for key, word in BOUNDS if getattr(limit, key, None) is not None)


def _number(value: float) -> str:
    return f"2^{value.bit_length() - 1}" if isinstance(value, int) and value >= 2**32 else f"{value:,}"


def _section(title: str, prefix: str, config: type[BaseModel], fields: dict[str, FieldInfo]) -> tuple[str, ...]:
    return f"## {title}\n", f"{text(_first(config))}\n", keys(prefix, fields)


def _title(base: type[BaseModel]) -> str:
    return "generated tasks" if base is GeneratedConfig else "all tasks"


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _first(kind: Any) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]
