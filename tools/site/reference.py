"""The reference: every command with its options, from the app; every key of the config, from the pydantic models."""

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tfstudy import instruments, models, tasks
from tfstudy.cli.command_line import GROUPS, app
from tfstudy.config.schema import DecodeConfig, EvalConfig, RunConfig, TrainConfig
from tfstudy.models.config import ModelConfig
from tfstudy.models.positions import SCHEMES
from tfstudy.tasks.base import TaskConfig
from tfstudy.tasks.generated import GeneratedConfig

SPECIAL = str.maketrans({character: f"\\{character}" for character in "*_[]<>|"})
PLAIN = {"<str>": "TEXT", "<int>": "N", "<int range>": "N", "<float>": "NUMBER", "<float range>": "NUMBER"}
INTRODUCTION = """# Command line

Every command, as its `--help` shows it. RUN is the folder of a run, the start of its hash, `STUDY/HASH` or
`STUDY/ARCH/SEED`. Exit code 0 means success, 1 that a run failed, 2 that a name or value is invalid, and 130 that the
command was interrupted.
"""
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
SCHEMES_OF_POSITIONS = """## Position schemes

The values of `model.positions` of the Transformer, from `tfstudy/models/positions/schemes.py`.
"""
INSTRUMENTS = """# Instruments

What `tfstudy measure RUN INSTRUMENT` measures, from the files of `tfstudy/instruments/`. Set a setting with `--set
examples=500`. [Look inside a model](../how-to/look-inside.md) shows some of them at work.
"""


# Markdown: tables and cells


def text(words: object) -> str:
    """Return words for a cell or a paragraph, with the characters escaped that Markdown reads; `code` stays code."""
    parts = " ".join(str(words).split()).split("`")
    return "".join(code(part) if i % 2 else part.translate(SPECIAL) for i, part in enumerate(parts))


def code(words: object) -> str:
    """Return words as code; a pipe within code does not end a cell."""
    return f"`{words}`" if str(words) else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str) -> str:
    """Return a table whose cells are Markdown; `kind` is its class in the style sheet."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
    return f'<div class="{kind}" markdown>\n\n' + "\n".join(lines) + "\n\n</div>\n"


# Commands


def commands_page() -> str:
    """Return the page of all commands, in groups and in the order of `tfstudy --help`."""
    program: Any = typer.main.get_command(app)
    top = typer.Context(program, info_name="tfstudy")
    parts = [INTRODUCTION, overview(program.commands), "## tfstudy\n", options(program, top)]
    for group, names in GROUPS.items():
        parts += [f"## {group}\n", *(describe(name, program.commands[name], top) for name in names)]
    return "\n".join(parts)


def overview(commands: Any) -> str:
    """Return a table of all commands, each with its first sentence and a link."""
    rows = [
        (group, f"[`{name}`](#tfstudy-{name})", text(summary(commands[name])))
        for group, names in GROUPS.items()
        for name in names
    ]
    return table(("Group", "Command", "What it does"), rows, "commands")


def summary(command: Any) -> str:
    """Return the first line of a command's help."""
    return (command.help or "").strip().splitlines()[0]


def describe(name: str, command: Any, parent: Any) -> str:
    """Return the section of one command: its synopsis, its help and its options."""
    context = typer.Context(command, info_name=name, parent=parent)
    pieces = " ".join(command.collect_usage_pieces(context))
    synopsis = f"```text\ntfstudy {name} {pieces}\n```\n"
    return f"### tfstudy {name}\n\n{synopsis}\n{text(command.help)}\n\n{options(command, context)}"


def options(command: Any, context: Any) -> str:
    """Return the table of arguments and options."""
    shown = [p for p in command.params if not (getattr(p, "hidden", False) or p.name == "show_completion")]
    records = (parameter.get_help_record(context) for parameter in shown)
    rows = [(code(_plain(left)), _meaning(right)) for left, right in filter(None, records)]
    return table(("Option", "Meaning"), rows, "options")


def _plain(left: str) -> str:
    for kind, word in PLAIN.items():
        left = left.replace(kind, word)
    words = re.sub(r"<list\[.*?\]>|<choice>", "TEXT", left)
    return words if words.startswith("-") else words.split()[0]  # an argument is named by its metavar


def _meaning(right: str) -> str:
    """Return `What it does.  [1<=x<=9]` with the range in words; a help text says itself what the default is."""
    help_, _, extra = right.partition("  [")
    facts = [fact for fact in extra.removesuffix("]").split("; ") if fact and "default: " not in fact]
    ranges = [fact.replace("x>=", "at least ").replace("x<=", "at most ") for fact in facts]
    between = [re.sub(r"^(\S+)<=at most (\S+)$", r"\1 to \2", fact) for fact in ranges]
    return text(help_ + (f" ({'; '.join(between)})" if between else ""))


# Keys of the config


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
    return "\n".join([*parts, SCHEMES_OF_POSITIONS, schemes()])


def schemes() -> str:
    """Return the table of the position schemes."""
    nothing = "Nothing: an encoder can't tell the order of its source."
    rows = [(code(name), text(nothing if name == "none" else scheme.__doc__)) for name, scheme in SCHEMES.items()]
    return table(("Scheme", "What it does"), rows, "keys")


def instruments_page() -> str:
    """Return the page of the instruments: what each measures, how it is defined, and its settings."""
    parts = [INSTRUMENTS]
    for name in instruments.names():
        kind = instruments.find(name)
        module = inspect.getdoc(sys.modules[kind.__module__]) or ""
        parts += [f"## {name}\n", fenced(module), "", fenced(inspect.getdoc(kind) or ""), ""]
        parts += [keys("", kind.Config.model_fields)] if kind.Config.model_fields else []
    return "\n".join(parts)


def fenced(docstring: str) -> str:
    """Return a docstring as Markdown, its indented examples as blocks of text."""
    paragraphs = re.split(r"\n\n", docstring)
    return "\n\n".join(
        f"```text\n{textwrap.dedent(part)}\n```" if part.startswith("    ") else part for part in paragraphs
    )


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
