"""Plug-ins on the command line: what they are shown as, what runs record of them, and what a record may not do."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from tests.commands import tfstudy
from tests.example_plugins import TASK, install, write
from tests.example_records import set_environments
from tests.example_task import ARCHITECTURE
from tfstudy import plugins, tasks
from tfstudy.config.presets import all_presets, preset
from tfstudy.experiment import code_versions
from tfstudy.launchers.job import REFUSED, SUCCEEDED, Job, _run
from tfstudy.runs.store import read_environments

TINY = ("train.steps=2", "train.warmup_steps=1", "train.batch_size=4", "model.dim=8", "model.hidden=8")
RUN = ("run", "mine", "--arch", "lstm", "--accelerator", "cpu", *(word for one in TINY for word in ("--set", one)))


@pytest.fixture(autouse=True)
def _plugins(monkeypatch):
    monkeypatch.setenv(plugins.VARIABLE, "")


@pytest.fixture
def mine(tmp_path) -> Path:
    """A file with the task `mine`."""
    return write(tmp_path, "mine")


@pytest.fixture
def run(mine, made) -> Path:
    """A finished run of the task `mine`."""
    shutil.copytree(made, "results")
    return next(Path("results").glob("runs/mine-only/lstm/s0-*"))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The folder of the results of a run of the task `mine`, made once."""
    folder = tmp_path_factory.mktemp("made")
    results = folder / "results"
    assert tfstudy(*RUN, "--results", results, "--plugin", write(folder, "mine")) == 0
    return results


def test_a_task_of_a_file_is_listed(mine, capsys):
    for words in (("--plugin", "mine.py", "list", "tasks"), ("list", "splits", "mine", "--plugin=mine.py")):
        assert tfstudy(*words) == 0
        assert ("A task of one letter" if "tasks" in words else "all letters") in capsys.readouterr().out
    assert tfstudy("list", "splits", "mine") == 2
    assert os.environ[plugins.VARIABLE] == ""


def test_the_list_shows_where_a_plugin_is_from_and_why_it_is_broken(mine, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    install(tmp_path / "site", "sad_package", "sad = sad_package", "1 / 0")
    install(tmp_path / "site", "sad_network", "gloomy = sad_network", "1 / 0", "tfstudy.architectures")
    assert tfstudy("list", "tasks", "--plugin", mine) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"plug-in: {mine}" in out
    assert "broken: the plug-in sad = sad_package of sad_package 1.2 can't be imported: ZeroDivisionError" in out
    assert tfstudy("list", "architectures") == 0
    assert "gloomy broken: the plug-in" in " ".join(capsys.readouterr().out.split())
    assert tfstudy("config", "copying", "--set", "model.depth=1") == 2  # a message that asks every architecture
    assert "unknown key 'model.depth'" in capsys.readouterr().err


def test_a_missing_file_is_one_message(capsys):
    for words in (("list", "--plugin"), ("list", "--plugin", "none.py"), ("list", "--plugin", "")):
        assert tfstudy(*words) == 2
        captured = capsys.readouterr()
        assert "--plugin" in captured.err
        assert "Traceback" not in captured.err


def test_a_run_records_the_digest_and_why_sees_that_the_code_changed(mine, run, capsys):
    [entry] = read_environments(run)
    assert len(entry.syntax_trees["plug-in task mine"]) == 16
    assert tfstudy("result", run, "--changes", "--plugin", mine) == 0
    assert "plug-in task mine" not in capsys.readouterr().out
    (mine.parent / "new").mkdir()
    changed = write(mine.parent / "new", "mine", TASK.replace("One letter", "1 letter"))
    assert tfstudy("result", run, "--changes", "--plugin", changed) == 0
    out = capsys.readouterr().out
    assert "up to date" in out
    assert "plug-in task mine" in out


def test_a_record_that_names_a_plugin_imports_nothing(mine, run, tmp_path, capsys):
    write(tmp_path, "payload", "open('ran', 'w')")
    entry = msgspec.to_builtins(read_environments(run)[0])
    entry["arguments"] = ["--plugin", str(tmp_path / "payload.py"), *RUN]
    entry["syntax_trees"] |= {f"plug-in task {name}": "0" * 16 for name in ("payload", str(tmp_path / "payload.py"))}
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("task: mine", f"task: {tmp_path / 'payload.py'}"))
    set_environments(run, entry)
    for words in (
        ("result", run, "--changes"),
        ("predict", run, "a"),
        ("grid", "--resume", "runs", "--dry-run"),
        ("table", "runs"),
    ):
        assert tfstudy(*words) in (0, 2)
    assert not Path("ran").exists()


def test_a_job_finds_its_plugins_in_a_process_that_did_not_inherit_them(mine, monkeypatch):
    config = {"task": "mine", "arch": "lstm"}
    ran = []
    monkeypatch.setattr("tfstudy.experiment.run.run", lambda config, *_, **__: ran.append(config.task))
    assert _run(Job("a/b/c/d/e", config)) == REFUSED
    assert _run(Job("a/b/c/d/e", config, plugins=(str(mine),))) == SUCCEEDED
    assert ran == ["mine"]


def test_a_task_brings_its_presets(mine, monkeypatch, capsys):
    mine.with_name("mine.presets.yaml").write_text("default:\n  lstm: {about: small, model: {hidden: 24}}\n")
    monkeypatch.setenv(plugins.VARIABLE, str(mine))
    assert preset("mine", "lstm") == {"model": {"hidden": 24}}
    assert preset("mine", "cnn") == {}
    assert tfstudy("list", "presets", "mine") == 0
    assert capsys.readouterr().out.split() == ["default", "lstm", "small"]
    assert tfstudy("config", "mine", "--arch", "lstm") == 0
    assert "hidden: 24" in capsys.readouterr().out


def test_an_architecture_brings_presets_for_tasks(tmp_path, monkeypatch):
    bag = write(tmp_path, "bag", ARCHITECTURE)
    bag.with_name("bag.presets.yaml").write_text("scan: {default: {model: {depth: 3}}, deep: {model: {depth: 9}}}\n")
    monkeypatch.setenv(plugins.VARIABLE, str(bag))
    assert preset("scan", "bag") == {"model": {"depth": 3}}
    assert preset("scan", "bag", "deep") == {"model": {"depth": 9}}
    assert preset("copying", "bag") == {}
    assert set(all_presets("scan")["default"]) >= {"bag", "lstm"}


def test_a_run_whose_plugin_is_missing_is_unknown_and_not_outdated(mine, run, capsys):
    missing = "unknown task 'mine': its plug-in is missing"
    for words in (("table", "runs", "--format", "md"), ("status", "runs"), ("result", run, "--changes")):
        code_versions._named_versions.cache_clear()  # another process
        assert tfstudy(*words) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert missing in out
        assert "outdated" not in out
        assert tfstudy(*words, "--plugin", mine) == 0
        assert "plug-in is missing" not in capsys.readouterr().out


def test_a_file_of_this_package_is_no_plugin(capsys):
    assert tfstudy("--plugin", Path(tasks.__file__).with_name("copying.py"), "run", "copying") == 2
    assert capsys.readouterr().err == "error: tasks/copying.py is already part of this checkout: leave out --plugin\n"
