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
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.code_blocks import Block, blocks, cells, check_command, commands
from tests.commands import tfstudy
from tests.committed import ROOT, STUDIES
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
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
    for study in studies_named_in(BLOCKS[page]):
        session.copy(study)
    for block in BLOCKS[page]:
        if block.title and not block.exempt:
            session.write(block)
        elif block.executed:
            session.run(block)


class Session:
    """A working folder with copies of committed studies, and the names of the Python blocks so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.names = folder, {"__name__": "page"}
        (folder / "results").mkdir()

    def copy(self, study: Path) -> None:
        weights = shutil.ignore_patterns("checkpoints", "*.ckpt")
        shutil.copytree(study, self.folder / "results" / study.name, ignore=weights)

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
    forkserver._forkserver._stop()  # it has the plug-ins of this page; each command of a user has its own


def studies_named_in(page: list[Block]) -> list[Path]:
    """The committed studies that occur in the blocks of a page, as words of their own."""
    words = {word for block in page for word in re.findall(r"[\w-]+", block.text)}
    return [study for study in STUDIES if study.name in words]


def shortened(resolve: Any, tree: dict[str, Any]) -> RunConfig:
    """The config of a tree with few steps, few examples of a generated task, and few examples to score."""
    config = resolve(tree)
    return config.model_copy(update={name: at_most(getattr(config, name), SMALL[name]) for name in SMALL})


def at_most(section: Any, limits: dict[str, int]) -> Any:
    """A section of a config whose values do not exceed these limits; 0 is no limit of its own."""
    own = {key: limit for key, limit in limits.items() if key in type(section).model_fields}
    return section.model_copy(update={key: min(getattr(section, key) or limit, limit) for key, limit in own.items()})
