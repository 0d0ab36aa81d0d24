"""Tasks of other people: what is found, refused and not imported; what is shown of them, and what a run records."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_task import ARCHITECTURE, LETTERS, install, write
from tfstudy import plugins, tasks
from tfstudy.config.presets import preset, presets, starting_point
from tfstudy.errors import UserError
from tfstudy.experiment import code_versions
from tfstudy.launchers.job import REFUSED, SUCCEEDED, Job, perform
from tfstudy.runs.store import open_run
from tfstudy.tasks.base import Task

TINY = ("train.steps=2", "train.warmup_steps=1", "train.batch_size=4", "model.dim=8", "model.hidden=8")
RUN = ("run", "mine", "--arch", "lstm", "--accelerator", "cpu", *(word for one in TINY for word in ("--set", one)))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(plugins.VARIABLE, "")


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    """A folder of installed packages."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    (tmp_path / "site").mkdir()
    before = set(sys.modules)
    yield tmp_path / "site"
    for name in set(sys.modules) - before:
        del sys.modules[name]


# Files


def test_a_file_is_the_task_of_its_name_and_the_same_one_counts_once(tmp_path):
    first, second = write(tmp_path, "first"), write(tmp_path, "second")
    plugins.add(first)
    plugins.add("second.py", "./first.py")
    assert plugins.files() == [first, second]
    assert {"first", "second"} <= set(tasks.names()) - set(tasks.built_in())
    assert (tasks.find("first").__name__, issubclass(tasks.find("first"), Task)) == ("Letters", True)
    assert (tasks.plugin("first").origin, tasks.plugin("scan")) == (str(first), None)


def test_what_lies_in_the_working_folder_is_not_found_and_what_is_no_python_file_is_refused(tmp_path):
    write(tmp_path, "mine", "raise SystemExit('imported')")
    with pytest.raises(UserError, match=r"unknown task 'mine'.*add --plugin FILE\.py"):
        tasks.find("mine")
    (tmp_path / "mine.txt").touch()
    (tmp_path / "a-b.py").touch()
    for name in ("none.py", "mine.txt", "a-b.py", "", ".", "x" * 5000 + ".py"):
        with pytest.raises(UserError, match="--plugin"):
            plugins.add(name)
    assert plugins.files() == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module\n", "can't be imported: ModuleNotFoundError, line 1: No module named 'no_such_module'"),
        ("x = 1\nx +\n", "can't be imported: SyntaxError, line 2: invalid syntax"),
        ("def f():\n    raise SystemExit(3)\n\nf()\n", "can't be imported: SystemExit, line 2: 3"),
        ("raise ValueError('\\x1b[2J' + 'a' * 999)\n", "ValueError, line 1: \\x1b[2J" + "a" * 100),
        ("x = 1\n", "must define one subclass of Task, Model, Instrument, but defines 0"),
        (LETTERS + "\n\nclass Other(Letters):\n    pass\n", "but defines 2"),
    ],
)
def test_a_file_that_can_not_be_imported_or_does_not_define_one_class_is_refused(tmp_path, text, reason):
    plugins.add(write(tmp_path, "mine", text))
    before = set(sys.modules)
    for ask in (tasks.names, lambda: tasks.find("scan")):
        with pytest.raises(UserError) as caught:
            ask()
        assert f"{tmp_path / 'mine.py'} " in str(caught.value)
        assert reason in str(caught.value)
        assert len(str(caught.value)) < 800
    left = [name for name in set(sys.modules) - before if name.startswith("tfstudy_plugin_mine")]
    assert bool(left) == ("can't be imported" not in str(caught.value)), "what failed is not kept"


@pytest.mark.parametrize(
    ("name", "other", "origins"),
    [
        ("sorting", None, r"task 'sorting': tasks/sorting\.py and {}/sorting\.py"),
        ("mine", "file", r"{0}/mine\.py and {0}/other/mine\.py"),
        ("mine", "package", r"mine\.py and other_package 1\.2"),
    ],
)
def test_a_file_with_the_name_of_another_task_is_refused_with_both_origins(site, tmp_path, name, other, origins):
    plugins.add(write(tmp_path, name))
    if other == "file":
        (tmp_path / "other").mkdir()
        plugins.add(write(tmp_path / "other", name))
    elif other:
        install(site, "other_package", f"{name} = other_package:Letters")
    with pytest.raises(UserError, match=origins.format(tmp_path)):
        tasks.find("scan")


# Installed packages


def test_an_installed_task_is_found_and_only_then_imported(site):
    install(site, "first_package", "mine = first_package:Letters")
    install(site, "second_package", "yours = second_package", LETTERS + "\n\nOld = Letters\n")  # a module with one task
    assert {"mine", "yours"} <= set(tasks.names())
    assert "first_package" not in sys.modules
    assert tasks.find("mine").__name__ == tasks.find("yours").__name__ == "Letters"
    assert tasks.plugin("mine").origin == "first_package 1.2"


@pytest.mark.parametrize(
    ("entry", "text", "reason"),
    [
        ("mine = broken_package:Letters", "1 / 0", "can't be imported: ZeroDivisionError: division by zero"),
        ("mine = broken_package:Nothing", LETTERS, "can't be imported: AttributeError"),
        ("mine = broken_package:Splits", LETTERS, "must be one subclass of Task"),
        ("mine = broken_package", "x = 1", "must be one subclass of Task"),
        ("mine/../x = broken_package:Letters", LETTERS, "needs a name such as my_task"),
    ],
)
def test_a_broken_package_stops_only_what_uses_it(site, entry, text, reason):
    install(site, "broken_package", entry, text)
    assert tasks.find("sorting").__name__ == "Sorting"
    [name] = set(tasks.names()) - set(tasks.built_in())
    with pytest.raises(UserError, match=reason) as caught:
        tasks.find(name)
    assert "broken_package 1.2" in str(caught.value)


def test_the_code_of_a_package_is_all_of_its_top_package(site):
    (site / "deep_package" / "sub").mkdir(parents=True)
    for folder in ("deep_package", "deep_package/sub"):
        (site / folder / "__init__.py").touch()
    util, module = write(site / "deep_package", "util", ""), write(site / "deep_package" / "sub", "letters")
    install(site, "deep_entry", "mine = deep_package.sub.letters:Letters")
    found = plugins.source_files(tasks.find("mine"))
    assert {util, module} <= set(found)
    assert len(found) == 4


# On the command line


@pytest.fixture
def mine(tmp_path) -> Path:
    """A file with the task `mine`."""
    return write(tmp_path, "mine")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The results of a run of this task."""
    folder = tmp_path_factory.mktemp("made")
    assert tfstudy(*RUN, "--results", folder / "results", "--plugin", write(folder, "mine")) == 0
    return folder / "results"


@pytest.fixture
def run(made) -> Path:
    """The run, in a copy of its results."""
    shutil.copytree(made, "results")
    return next(Path("results").glob("runs/mine-only/lstm/s0-*"))


def test_the_list_shows_where_a_plugin_is_from_and_why_it_is_broken(mine, tmp_path, monkeypatch, capsys):
    for words in (("list", "tasks", "mine"), ("list", "--plugin"), ("list", "--plugin", "none.py")):
        assert tfstudy(*words) == 2
        assert "--plugin" in capsys.readouterr().err
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    install(tmp_path / "site", "sad_package", "sad = sad_package", "1 / 0")
    install(tmp_path / "site", "sad_network", "gloomy = sad_network", "1 / 0", "tfstudy.architectures")
    assert tfstudy("--plugin", Path(tasks.__file__).with_name("copying.py"), "run", "copying") == 2
    assert "tasks/copying.py is already part of this checkout: leave out --plugin" in capsys.readouterr().err
    assert tfstudy("list", "tasks", "mine", "--plugin", mine) == 0
    assert "all letters" in capsys.readouterr().out, "its docstring has no example"
    assert tfstudy("list", "tasks", f"--plugin={mine}") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"plug-in: {mine}" in out
    assert "broken (the plug-in sad = sad_package of sad_package 1.2 can't be imported: ZeroDivisionError" in out
    assert tfstudy("list", "architectures") == 0
    assert "gloomy broken (the plug-in" in " ".join(capsys.readouterr().out.split())
    assert tfstudy("config", "copying", "--set", "model.depth=1") == 2  # a message that asks every architecture
    assert "unknown key 'model.depth'" in capsys.readouterr().err


def test_a_run_records_the_digest_of_its_plugin_and_without_it_is_unknown_and_not_outdated(mine, run, capsys):
    [entry] = open_run(run).environments
    assert len(entry.syntax_trees["plug-in task mine"]) == 16
    (mine.parent / "new").mkdir()
    changed = write(mine.parent / "new", "mine", LETTERS.replace("One letter", "1 letter"))
    assert tfstudy("result", run, "--changes", "--plugin", changed) == 0
    out = capsys.readouterr().out
    assert "up to date" in out
    assert "plug-in task mine" in out
    missing = "unknown task 'mine': its plug-in is missing"
    for words in (("table", "runs", "--format", "md"), ("result", run, "--changes")):
        code_versions._named_versions.cache_clear()  # another process
        assert tfstudy(*words) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert (missing in out, "outdated" in out) == (True, False)
        assert tfstudy(*words, "--plugin", mine) == 0
        out = capsys.readouterr().out
        assert ("plug-in is missing" in out, "plug-in task mine" in out) == (False, False)


def test_a_job_has_its_own_plugins_and_not_those_that_its_process_inherits(mine, monkeypatch):
    config = {"task": "mine", "arch": "lstm"}
    ran = []
    monkeypatch.setattr("tfstudy.experiment.run.run", lambda config, *_, **__: ran.append(config.task))
    monkeypatch.setattr("tfstudy.launchers.job._redirect_output", lambda path: None)
    monkeypatch.setenv(plugins.VARIABLE, "gone.py")  # of an earlier grid
    assert perform(Job("a/b/c/d/e", config)) == REFUSED
    monkeypatch.setenv(plugins.VARIABLE, "gone.py")
    assert perform(Job("a/b/c/d/e", config, plugins=(str(mine),))) == SUCCEEDED
    assert ran == ["mine"]


def test_a_task_and_an_architecture_bring_their_presets(mine, tmp_path, capsys):
    mine.with_name("mine.presets.yaml").write_text("default:\n  lstm: {about: small, model: {hidden: 24}}\n")
    bag = write(tmp_path, "bag", ARCHITECTURE)
    bag.with_name("bag.presets.yaml").write_text("scan: {default: {model: {depth: 3}}, deep: {model: {depth: 9}}}\n")
    plugins.add(mine, bag)
    assert preset("mine", "lstm") == {"model": {"hidden": 24}}
    assert preset("mine", "cnn") == preset("copying", "bag") == {}
    assert starting_point("copying", "bag")["model"] == {"dropout": 0.1}, "that of the Transformer, but not its size"
    assert (preset("scan", "bag"), preset("scan", "bag", "deep")) == ({"model": {"depth": 3}}, {"model": {"depth": 9}})
    assert set(presets("scan")["default"]) >= {"bag", "lstm"}
    bag.with_name("bag.presets.yaml").write_text("scan: [")
    with pytest.raises(UserError, match=r"bag.presets.yaml is not valid YAML"):
        preset("scan", "bag")
    bag.with_name("bag.presets.yaml").unlink()
    assert tfstudy("config", "mine", "--arch", "lstm") == 0
    assert "hidden: 24" in capsys.readouterr().out
