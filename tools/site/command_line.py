"""The reference of the command line: every command with its arguments and options, from the app itself."""

import inspect
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import typer

from tools.site.markdown import code, table, text

KINDS = {"<str>": "TEXT", "<int>": "N", "<int range>": "N", "<float>": "NUMBER", "<float range>": "NUMBER"}
INTRODUCTION = """# Command line

Every command, as its `--help` shows it. RUN is the folder of a run, the start of its hash, `STUDY/HASH` or
`STUDY/ARCH/SEED`. Exit code 0 means success, 1 that a run failed, 2 that a name or value is invalid, and 130 that the
command was interrupted.
"""


def page() -> str:
    """Return the page: groups of commands in the order of `tfstudy --help`."""
    from tfstudy.cli import app

    program: Any = typer.main.get_command(app)
    top = typer.Context(program, info_name="tfstudy")
    groups = program.groups()
    parts = [INTRODUCTION, overview(groups, program.commands), "## tfstudy\n", options(program, top)]
    for group, names in groups.items():
        parts += [f"## {group}\n", *(describe(name, program.commands[name], top) for name in names)]
    return "\n".join(parts)


def overview(groups: dict[str, list[str]], commands: Any) -> str:
    """Return a table of all commands, each with its first sentence and a link."""
    rows = [
        (group, f"[`{name}`](#tfstudy-{name})", text(summary(commands[name])))
        for group, names in groups.items()
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
    return f"### tfstudy {name}\n\n{synopsis}\n{prose(command.help)}\n\n{options(command, context)}"


def prose(help_: str | None) -> str:
    """Return a help text as Markdown; lines such as `split: what it draws` become a list."""
    lines = [text(line) for line in inspect.cleandoc(help_ or "").splitlines()]
    return "\n".join(re.sub(r"^([\w, -]{1,24}):(?= )", r"- **\1**:", line) for line in lines)


def options(command: Any, context: Any) -> str:
    """Return the tables of arguments and options: the common ones, then those of each prefix (slurm)."""
    shown = [p for p in command.params if not (getattr(p, "hidden", False) or p.name == "show_completion")]
    groups = groupby(sorted(shown, key=subject), key=subject)
    return "\n".join(f"{f'**{name}**' if name else ''}\n\n{_table(group, context)}" for name, group in groups)


def subject(parameter: Any) -> str:
    """Return the group of an option; empty for the common ones."""
    prefix = re.match(r"--(\w+)\.", parameter.opts[0])
    return prefix[1].capitalize() if prefix else ""


def _table(parameters: Iterator[Any], context: Any) -> str:
    records = (parameter.get_help_record(context) for parameter in parameters)
    rows = [(code(_plain(left)), *_meaning(right)) for left, right in filter(None, records)]
    return table(("Option", "Meaning", "Default"), rows, "options")


def _plain(left: str) -> str:
    for kind, word in KINDS.items():
        left = left.replace(kind, word)
    words = re.sub(r"<list\[.*?\]>|<choice>", "TEXT", left)
    return words if words.startswith("-") else words.split()[0]  # an argument is named by its metavar


def _meaning(right: str) -> tuple[str, str]:
    """Split `What it does.  [default: 1; x>=1]` into the meaning, with the range, and the default."""
    help_, _, extra = right.partition("  [")
    facts = [fact for fact in extra.removesuffix("]").split("; ") if fact]
    default = next((fact.removeprefix("default: ") for fact in facts if fact.startswith("default: ")), "")
    others = [fact.replace("x>=", "at least ").replace("x<=", "at most ") for fact in facts if "default: " not in fact]
    between = [re.sub(r"^(\S+)<=at most (\S+)$", r"\1 to \2", fact) for fact in others]
    return text(help_ + (f" ({'; '.join(between)})" if between else "")), code(default)
