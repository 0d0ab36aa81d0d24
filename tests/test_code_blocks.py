"""Every code block of README.md, docs/**/*.md and the notebooks of examples/ is executed or checked.

How to write a block (fenced with three backticks and a language; indented blocks are refused):

bash      Every line is checked: `tfstudy ...` by the parser of the app (commands, options, names of tasks,
          architectures, presets and grids; settings of `run` and `config` are resolved), `make TARGET`, and extras of
          `pip install 'tfstudy[EXTRA]'`. Words in capitals (RUN, STUDY, DIR, FILE.csv, HOST:PORT) stand for what the
          reader puts there. With `<!-- run -->` on the line before it (a blank line between them is fine) the block is
          executed; exit code 0 is expected, or `<!-- run: exit code 2 -->` of its last command. Trainings take 4 steps
          there. Lines with pipes, redirections or other programs than tfstudy are executed by bash.
python    Executed. `max_epochs=1` is replaced by 2 steps; trainings by `tfstudy.run` take 4.
yaml      Parsed; validated if it is a grid, presets, claims or sections of a config. A workflow is only parsed.
text, console, csv, json, toml, bibtex, html, mermaid, dockerfile
          Not executed: outputs and files. json and toml are parsed. Lines of console blocks that start with `$ ` are
          checked like those of bash.

Blocks with a file name, such as ```yaml title="grid.yaml" or ```python title="reverse.py", are not executed but written
to that file, where the executed blocks after them find it. The executed blocks of a page share one temporary working
folder, with a copy of the committed studies that they name in `results/`, and one namespace of Python, in the order of
the page.

`<!-- not run: REASON -->` before a block of bash or python exempts it from execution and from the checks of values, for
example because it needs a GPU, a cluster or the network. Exempted blocks are counted.
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
from pathlib import Path
from typing import Any

import pytest

from tests.code_blocks import PROGRAMS, Block, blocks, cells, check_command, check_yaml, commands
from tests.commands import tfstudy
from tests.committed import ROOT, STUDIES
from tfstudy.config.files import parse_yaml
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXECUTED, PARSED = {"bash", "python"}, {"yaml", "json", "toml"}
OUTPUTS = {"text", "console", "csv", "bibtex", "html", "mermaid", "dockerfile", "tex", "markdown", "makefile"}
SMALL = {
    "train": {"steps": 4, "warmup_steps": 2, "batch_size": 16, "log_interval": 2, "validation_interval": 2},
    "data": {"train_examples": 200, "eval_examples": 20},
    "eval": {"max_examples": 16},
}
CONFIGURED = ("tfstudy.experiment.api", "tfstudy.grids.expand", "tfstudy.tuning.search")  # what resolves new configs
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
BLOCKS = {page: list(blocks(page)) for page in PAGES} | {page: list(cells(page)) for page in NOTEBOOKS}
ALL = [block for page in BLOCKS for block in BLOCKS[page]]


def of(languages: set[str]) -> Any:
    chosen = [block for block in ALL if block.language in languages]
    return pytest.mark.parametrize("block", chosen, ids=str)


# Every block is of a kind that is checked


def test_every_block_names_its_language():
    known = EXECUTED | PARSED | OUTPUTS
    assert [f"{block}: {block.language}" for block in ALL if block.language not in known] == []


def test_every_comment_before_a_block_is_understood():
    marks = re.compile(r"run|run: exit code \d+|not run: \w.*")
    assert [f"{b}: {b.comment}" for b in ALL if b.comment and not marks.fullmatch(b.comment)] == []


def test_no_command_stands_outside_of_a_block():
    outside = []
    for page in PAGES:
        rest = re.sub(r"^(\s*)```.*?^\s*```\s*$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        outside += [f"{page.name}: {line}" for line in rest.splitlines() if re.match(r" {4,}(tfstudy|make|pip) ", line)]
    assert outside == []


def test_most_blocks_are_executed():
    executed = [block for block in ALL if block.executed]
    exempt = [block for block in ALL if block.exempt]
    assert len(executed) > len(exempt), f"{len(executed)} executed, {len(exempt)} exempt: {', '.join(map(str, exempt))}"


@of({"bash", "console"})
def test_the_commands_exist_with_their_options_and_values(block, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = "\n".join(re.findall(r"^\$ (.*)$", block.text, re.M)) if block.language == "console" else block.text
    for words in commands(text) if not (block.exempt or block.executed or block.title) else ():
        check_command(words)
    for words in commands(block.text) if block.executed else ():
        assert words[0] in {"tfstudy", "make", "pip", *PROGRAMS}


@of(PARSED)
def test_files_are_valid(block):
    if block.exempt:
        return
    if block.language == "yaml":
        check_yaml(parse_yaml(block.text.replace("\non:", '\n"on":'), str(block)))
    else:
        assert {"json": json.loads, "toml": tomllib.loads}[block.language](block.text)


# Execution: one session for each page


@pytest.mark.parametrize("page", [p for p in BLOCKS if any(b.executed for b in BLOCKS[p])], ids=lambda p: p.name)
def test_the_blocks_of_a_page_run_in_order(page, session):
    for study in studies_named_in(BLOCKS[page]):
        session.copy(study)
    for block in BLOCKS[page]:
        if block.title and not block.exempt:
            session.write(block)
        elif block.executed:
            session.run(block)


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.name)
def test_the_stored_outputs_of_a_notebook_are_small_and_without_errors(page):
    outputs = [cell["outputs"] for cell in json.loads(page.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [output for found in outputs for output in found if output["output_type"] == "error"] == []
    assert sum(map(bool, outputs)) >= len(outputs) - 2  # all but settings show something
    assert page.stat().st_size < 200_000


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
    for module in CONFIGURED:
        monkeypatch.setattr(f"{module}.resolve", partial(shortened, resolve))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's advice on loggers and the like
        yield Session(tmp_path)


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
