"""Every code block of README.md, docs/**/*.md and the notebooks of examples/ is executed or checked.

Blocks are fenced with three backticks and a language:

bash      Commands are checked: `tfstudy ...` by the parser of the app (names and settings are resolved), targets of
          `make`, extras of `pip install 'tfstudy[EXTRA]'`. Words in capitals (RUN, STUDY) are the reader's. After
          `<!-- run -->` the block is executed and must end with 0, or after `<!-- run: exit code 2 -->` with that.
python    Executed, with trainings of 4 steps (`max_epochs=1` is replaced by 2 steps).
yaml      Parsed, and json and toml too.
console   Lines that start with `$ ` are checked like those of bash; other languages are outputs and files.

A block with a name, such as ```yaml title="grid.yaml", is written to that file for the blocks after it. Those of a page
share a working folder, with copies of the committed studies that they name, and one namespace of Python.
`<!-- not run: REASON -->` exempts a block. The pages of a newcomer are executed with the fast tests, others with the
slow ones.
"""

import ast
import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
import yaml

from tests.commands import tfstudy
from tests.committed import ROOT, STUDIES
from tfstudy.cli import app
from tfstudy.cli.runs import requested
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.grids.spec import load_grid
from tfstudy.plugins import VARIABLE

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXECUTED, PARSED = {"bash", "python"}, {"yaml", "json", "toml"}
OUTPUTS = {"text", "console", "csv", "bibtex", "html", "mermaid", "dockerfile", "tex", "markdown", "makefile"}
SMALL = {
    "train": {"steps": 4, "warmup_steps": 2, "batch_size": 16, "log_interval": 2, "validation_interval": 2},
    "data": {"train_examples": 200, "eval_examples": 20},
    "eval": {"max_examples": 16},
}
CONFIGURED = ("tfstudy.experiment.api", "tfstudy.tuning.search")  # what resolves new configs
FIRST = {"README.md", "tutorial.md", "own-task.md"}
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
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
    else:  # from a checkout; by its name, an index may have another package
        assert not re.search(r"(?<![/\w])tfstudy\[", " ".join(rest))
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = re.findall(r"\.\[([\w,-]+)\]", " ".join(rest))
        assert {extra for names in named for extra in names.split(",")} <= extras.keys()


def check_tfstudy(words: list[str]) -> None:
    """Parse a command as the app does. A placeholder in it exempts its values, not its names."""
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="tfstudy")
    _, words, _ = group.make_parser(context).parse_args(list(words))
    if not words:  # such as `tfstudy --version`
        return
    assert words[0] in group.commands, f"unknown command: {words[0]}"
    command, words = group.commands[words[0]], words[1:]
    if any(PLACEHOLDER.search(word) for word in words):
        inner = typer.Context(command, info_name=command.name, parent=context)
        given, surplus, _ = command.make_parser(inner).parse_args(list(words))
        assert [*surplus, *(p.name for p in command.params if p.required and given.get(p.name) is None)] == []
        return
    with contextlib.suppress(typer.Exit):  # of --help
        values = command.make_context(command.name, list(words), parent=context).params
        if command.name in ("run", "config") and values["task"] and not (values["config"] or ":" in values["preset"]):
            named = {key: values[key] for key in ("task", "arch", "preset", "split", "seed", "smoke")}
            requested(**named, file=values["config"], assignments=values["set_"])
        if command.name == "grid" and values.get("name") and not str(values["name"]).endswith((".yaml", ".yml")):
            load_grid(values["name"], values.get("tier") or "")


BLOCKS = {page: list(blocks(page)) for page in PAGES} | {page: list(cells(page)) for page in NOTEBOOKS}
ALL = [block for page in BLOCKS for block in BLOCKS[page]]


def test_every_block_names_its_language_and_every_comment_before_it_is_understood():
    known, marks = EXECUTED | PARSED | OUTPUTS, re.compile(r"run|run: exit code \d+|not run: \w.*")
    assert [f"{block}: {block.language}" for block in ALL if block.language not in known] == []
    assert [f"{b}: {b.comment}" for b in ALL if b.comment and not marks.fullmatch(b.comment)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_exist_and_its_files_are_valid(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    for block in BLOCKS[page]:
        try:
            if block.exempt:
                continue
            if block.language in ("bash", "console") and not (block.executed or block.title):
                for words in commands(block):
                    check_command(words)
            elif block.language in PARSED:
                assert {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}[block.language](block.text)
        except BaseException as error:
            error.add_note(f"in {block}")
            raise


# Execution: one session for each page


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=() if page.name in FIRST else pytest.mark.slow)
        for page in BLOCKS
        if any(block.executed for block in BLOCKS[page])
    ],
)
def test_the_blocks_of_a_page_run_in_order(page, session):
    words = {word for block in BLOCKS[page] for word in re.findall(r"[\w-]+", block.text)}
    for study in STUDIES:
        if study.name in words:
            ignore = shutil.ignore_patterns("checkpoints", "*.ckpt")
            shutil.copytree(study, session.folder / "results" / study.name, ignore=ignore)
    for block in BLOCKS[page]:
        if block.title and not block.exempt:
            session.write(block)
        elif block.executed:
            session.run(block)


class Session:
    """A working folder, and the names of the Python blocks so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.names = folder, {"__name__": "page"}
        (folder / "results").mkdir()

    def write(self, block: Block) -> None:
        path = self.folder / block.title
        assert path.resolve().is_relative_to(self.folder.resolve()), "a file outside of the working folder"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")

    def run(self, block: Block) -> None:
        if block.language == "python":
            self._python(block)
            return
        expected = int((re.search(r"exit code (\d+)", block.comment) or ["", "0"])[1])
        lines = [line for line in block.text.replace("\\\n", " ").splitlines() if line.split("#")[0].strip()]
        codes = [self._command(line) for line in lines]
        assert codes == [0] * (len(lines) - 1) + [expected], f"{block}: exit codes {codes} of {lines}"

    def _python(self, block: Block) -> None:
        """Execute a block; what its last line shows in a notebook is computed."""
        tree = ast.parse("\n" * block.line + re.sub(r"\bmax_epochs=\d+", "max_steps=2", block.text), str(block))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(block), "exec"), self.names)
        if last:
            value = eval(compile(ast.Expression(last.value), str(block), "eval"), self.names)
            assert isinstance(getattr(value, "_repr_html_", value.__repr__)() or "", str)

    def _command(self, line: str) -> int:
        if line.startswith("source "):  # the activation of .venv, which is active here
            return 0
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            os.environ[name] = value.replace("$PWD", str(self.folder))  # the fixture restores the one that pages set
            return 0
        if line.startswith("tfstudy ") and not re.search(r"[|<>&;$*`]", line):
            return tfstudy(*shlex.split(line, comments=True)[1:])
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], env={**os.environ, "PATH": path}, check=False)
        return done.returncode


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session in an empty folder, where trainings are short."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv(VARIABLE, "")  # a page may add a plug-in from Python
    for module in CONFIGURED:
        monkeypatch.setattr(f"{module}.resolve", partial(shortened, resolve))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's advice on loggers and the like
        yield Session(tmp_path)


def shortened(resolve: Any, tree: dict[str, Any]) -> RunConfig:
    """The config of a tree with few steps, few examples of a generated task, and few examples to score."""
    config = resolve(tree)
    for name, limits in SMALL.items():  # 0 is no limit of its own
        section = getattr(config, name)
        keys = limits.keys() & type(section).model_fields.keys()
        own = {key: min(getattr(section, key) or limits[key], limits[key]) for key in keys}
        config = config.model_copy(update={name: section.model_copy(update=own)})
    return config
