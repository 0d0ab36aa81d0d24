"""`tfstudy why` runs nothing that the record of somebody else names, and reads no file outside the project."""

import json
import sys
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tfstudy.config.resolve import resolve
from tfstudy.experiment.prepare import prepare
from tfstudy.runs.environment import code_digest, environment
from tfstudy.runs.writer import open_run, run_folder

SETTINGS = {"task": "copying", "arch": "lstm", "data": {"train_examples": 60, "eval_examples": 10}}
NAMES = [
    "payload",
    "payload.inner",
    "results.payload",
    "unittest.__main__",
    "antigravity",
    "this",
    "idlelib.idle",
    "..x",
    ".payload",
    "",
    ".",
    "tasks",
    "tasks.",
    "tasks..payload",
    "tasks.../payload",
    "tasks./tmp/payload",
    "tasks.payload\x00",
    "tasks.\x1b[2J",
    "tfstudy.cli\n.x",
    "os.system('touch ran')",
    "tasks." * 5000 + "x",
]
IMPORTABLE = {"payload", "results.payload", "unittest.__main__", "antigravity", "this", "idlelib.idle"}


@pytest.fixture
def run(tmp_path, monkeypatch) -> Path:
    """A started run in a shared folder, beside a module that leaves a trace when it is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for folder in (tmp_path, tmp_path / "results"):
        folder.mkdir(exist_ok=True)
        (folder / "payload.py").write_text("open('ran', 'w')\n")
    prepared = prepare(resolve(SETTINGS))
    path = run_folder(Path("results"), "runs", prepared.config, prepared.identity)
    with open_run(path, prepared.config, prepared.identity) as folder:
        folder.add_environment(environment(prepared.identity, "cpu", 1))
    return path


def name_modules(path: Path, names: list[str]) -> None:
    [entry] = json.loads((path / "env.json").read_text())
    entry["syntax_trees"] |= dict.fromkeys(names, "0" * 16)
    (path / "env.json").write_text(json.dumps([entry]))


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:30])
def test_no_module_that_a_record_names_is_imported(run, name, capfd):
    name_modules(run, [name])
    assert tfstudy("why", run) == 0
    captured = capfd.readouterr()
    assert "declared versions have not changed" in captured.out
    assert not Path("ran").exists()
    assert not IMPORTABLE & set(sys.modules)
    assert "\x1b[2J" not in captured.out
    assert captured.err == ""


def test_only_modules_of_the_project_count_as_changed_code(run, capsys):
    name_modules(run, [*NAMES, "tfstudy.training.module", "tasks.vanished"])
    assert tfstudy("why", run) == 0
    out = capsys.readouterr().out
    assert "the code of 2 modules has changed" in out
    assert "  tfstudy.tasks.vanished (no longer exists), tfstudy.training.module" in out


def test_a_digest_is_that_of_the_file_and_imports_nothing():
    before = set(sys.modules)
    assert len(code_digest("tfstudy.cli.tuning")) == 16
    assert len(code_digest("tfstudy.launchers.ray")) == 16
    assert (
        code_digest("json.tool")
        == code_digest("tfstudy.tasks.scan.nothing")
        == code_digest("tfstudy.nothing.cli")
        == ""
    )
    assert set(sys.modules) == before
