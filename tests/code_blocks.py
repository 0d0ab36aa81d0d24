"""The code blocks of the documents, and how commands and files of YAML are checked without executing them."""

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
from tfstudy import models
from tfstudy.analysis.claim_files import parse_claim
from tfstudy.cli import app
from tfstudy.cli.run_config import requested
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import merge
from tfstudy.grids.spec import KEYS as GRID_KEYS
from tfstudy.grids.spec import load_grid, validated

# fmt: off
PROGRAMS = {
    "apptainer", "cat", "cd", "conda", "cp", "curl", "diff", "docker", "echo", "export", "git", "grep", "head",
    "kill", "latexmk", "ls", "mkdir", "mv", "nohup", "open", "pdflatex", "podman", "printf", "python", "python3",
    "ray", "rm", "rsync", "sbatch", "scancel", "scp", "sed", "sinfo", "singularity", "sort", "source", "squeue",
    "srun", "ssh", "tail", "tar", "tee", "test", "time", "tmux", "touch", "uv", "wc",
}
# fmt: on
KEYWORDS = {"do", "done", "then", "fi", "else", "time", "nohup", "srun", "!"}
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


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of every command of a block, without comments, keywords, variables and redirections."""
    text = re.sub(r"<<\s*'?(\w+)'?(.*?)$.*?^\1$", r"\2", text.replace("\\\n", " "), flags=re.M | re.S)
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if re.fullmatch(r"[();<>|&]+", word):
                yield from filter(None, [_program(words)])
                words = ["redirected"] if set(word) <= {"<", ">"} or word in (">&", "&>") else []
            else:
                words.append(word)


def _program(words: list[str]) -> list[str]:
    while words and (words[0] in KEYWORDS or re.fullmatch(r"[A-Za-z_]\w*=.*", words[0])):
        words = words[1:]
    return [] if words[:1] in (["redirected"], ["for"], ["while"], ["if"]) else words


def check_command(words: list[str]) -> None:
    program, *rest = words
    program = program.removeprefix(".venv/bin/")
    if program == "tfstudy" or (program.startswith("python") and rest[:2] == ["-m", "tfstudy"]):
        return check_tfstudy(rest if program == "tfstudy" else rest[2:])
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert {word for word in rest if "=" not in word and not word.startswith("-")} <= set(targets)
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = re.findall(r"(?:tfstudy|\.)\[([\w,-]+)\]", " ".join(rest))
        assert {extra for names in named for extra in names.split(",")} <= extras.keys()
    else:
        assert program in PROGRAMS, f"unknown program: {program}"
    return None


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
    if (
        command.name in ("run", "config")
        and values.get("task")
        and not values.get("config")
        and ":" not in values["preset"]
    ):
        named = {key: values[key] for key in ("task", "arch", "preset", "split", "seed", "smoke")}
        requested(**named, file=values["config"], assignments=values["set_"]).resolve()
    if command.name == "grid" and values.get("name") and not str(values["name"]).endswith((".yaml", ".yml")):
        load_grid(values["name"], values.get("tier") or "")


def check_yaml(tree: dict[str, Any]) -> None:
    """Check a file of the kind that its keys show: workflow, claims, grid, sections of a config, presets."""
    if tree.keys() & {"jobs", "runs", "steps"}:
        return  # a workflow or an action
    if "claims" in tree:
        for number, claim in enumerate(tree["claims"], 1):
            parse_claim(claim, f"claim {number}")
    elif tree.keys() <= set(GRID_KEYS):
        validated(tree)
    elif tree.keys() <= RunConfig.model_fields.keys():
        resolve(merge({"task": "scan", "arch": "transformer"}, tree))
    else:
        check_presets(tree)


def check_presets(tree: dict[str, Any]) -> None:
    """Check presets: name, architecture, sections; in the file of a plug-in's architecture: task, name, sections."""
    for name, below in tree.items():
        if below.keys() <= {"about", "data", "model", "train", "decode", "eval"}:
            known = name in models.names()
            left_out = {"about", "data"} if known else {"about", "data", "model"}
            sections = {key: value for key, value in below.items() if key not in left_out}
            resolve(merge({"task": "scan", "arch": name if known else "transformer"}, sections))
        else:
            check_presets(below)
