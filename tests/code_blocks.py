"""The code blocks of the documents, and how commands are checked without executing them."""

import contextlib
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer

from tests.committed import ROOT
from tfstudy.cli import app
from tfstudy.cli.runs import requested
from tfstudy.grids.spec import load_grid

PLACEHOLDER = re.compile(r"(?<![a-z_])[A-Z]{2,}(?![a-z])|\$|\.\.\.|^[A-Z]$")
FENCE = re.compile(r"^(\s*)(```+)\s*([\w-]*)(.*)$")


class Block(NamedTuple):
    """A fenced block of a page: its first line, language, file name, the comment before it, and its text."""

    page: Path
    line: int
    language: str
    title: str
    comment: str
    text: str

    @property
    def exempt(self) -> bool:
        return self.comment.startswith("not run")

    @property
    def executed(self) -> bool:
        runs = self.language == "python" or (self.language == "bash" and self.comment.startswith("run"))
        return runs and not self.exempt and not self.title

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def cells(notebook: Path) -> Iterator[Block]:
    """Yield the code cells of a notebook, numbered from 1."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    sources = ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]
    for number, source in enumerate(sources, 1):
        yield Block(notebook, number, "python", "", "", source)


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    fence, comment, lines = None, "", page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        match = FENCE.match(line)
        if fence is None and match:
            fence, start, text = match, number, []
        elif fence is not None and line.strip() == fence[2]:
            title = re.search(r'title="([^"]+)"', fence[4])
            yield Block(page, start, fence[3], title[1] if title else "", comment, "\n".join(text) + "\n")
            fence, comment = None, ""
        elif fence is not None:
            text.append(line.removeprefix(fence[1]))
        elif line.strip():
            found = re.fullmatch(r"\s*<!--\s*(.*?)\s*-->\s*", line)
            comment = found[1] if found else ""


def commands(block: Block) -> Iterator[list[str]]:
    """Yield the words of every command of ours in a block of bash, or after `$ ` in one of console."""
    text = "\n".join(re.findall(r"^\$ (.*)$", block.text, re.M)) if block.language == "console" else block.text
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        with contextlib.suppress(ValueError):  # a quotation that goes on in the next line is no command of ours
            words = [*lexer, ";"]
            while words:
                end = next(i for i, word in enumerate(words) if re.fullmatch(r"[();<>|&]+", word))
                start = next((i for i, word in enumerate(words[:end]) if word in ("tfstudy", "make", "pip")), end)
                if start < end:
                    yield words[start:end]
                words = words[end + 1 :]


def check_command(words: list[str]) -> None:
    """Check the options and values of `tfstudy`, the targets of `make`, and the extras of `pip install`."""
    program, *rest = words
    if program == "tfstudy":
        check_tfstudy(rest)
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert {word for word in rest if "=" not in word and not word.startswith("-")} <= set(targets)
    else:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = re.findall(r"(?:tfstudy|\.)\[([\w,-]+)\]", " ".join(rest))
        assert {extra for names in named for extra in names.split(",")} <= extras.keys()


def check_tfstudy(words: list[str]) -> None:
    """Parse a command as the app does. A placeholder in it exempts its values, not its names."""
    command: Any = typer.main.get_command(app)
    context = typer.Context(command, info_name="tfstudy")
    while hasattr(command, "commands"):
        _, words, _ = command.make_parser(context).parse_args(list(words))
        if not words:  # such as `tfstudy --version`
            return
        assert words[0] in command.commands, f"unknown command: {words[0]}"
        command, words = command.commands[words[0]], words[1:]
        context = typer.Context(command, info_name=command.name, parent=context)
    if any(PLACEHOLDER.search(word) for word in words):
        values, rest, _ = command.make_parser(context).parse_args(list(words))
        required = [p.name for p in command.params if p.required]
        assert rest == [], f"surplus words: {rest}"
        assert [name for name in required if values.get(name) is None] == []
        return
    with contextlib.suppress(typer.Exit):  # of --help
        check_values(command, command.make_context(command.name, list(words), parent=context).params)


def check_values(command: Any, values: dict[str, Any]) -> None:
    """Resolve the config of `run` and `config`; find the grid of `grid`."""
    if command.name in ("run", "config") and values["task"] and not values["config"] and ":" not in values["preset"]:
        named = {key: values[key] for key in ("task", "arch", "preset", "split", "seed", "smoke")}
        requested(**named, file=values["config"], assignments=values["set_"])
    if command.name == "grid" and values.get("name") and not str(values["name"]).endswith((".yaml", ".yml")):
        load_grid(values["name"], values.get("tier") or "")
