"""Tasks of other people: what is found, what is refused, and what is not imported."""

import sys
from pathlib import Path

import pytest

from tests.example_plugins import TASK, install, write
from tfstudy import plugins, tasks
from tfstudy.errors import UserError
from tfstudy.tasks.base import Task


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


def test_a_file_is_the_task_of_its_name(tmp_path):
    plugins.add(write(tmp_path, "mine"))
    assert "mine" in tasks.names()
    assert tasks.find("mine").__name__ == "Letters"
    assert issubclass(tasks.find("mine"), Task)
    assert tasks.plugin("mine").origin == str(tmp_path / "mine.py")
    assert tasks.plugin("scan") is None
    assert "mine" not in tasks.built_in()


def test_files_add_up_and_the_same_one_counts_once(tmp_path):
    first, second = write(tmp_path, "first"), write(tmp_path, "second")
    plugins.add(first)
    plugins.add("second.py", "./first.py")
    assert plugins.files() == [first, second]
    assert {"first", "second"} <= set(tasks.names())


def test_what_lies_in_the_working_folder_is_not_found(tmp_path):
    write(tmp_path, "mine", "raise SystemExit('imported')")
    with pytest.raises(UserError, match=r"unknown task 'mine'.*add --plugin FILE\.py"):
        tasks.find("mine")


def test_what_is_no_python_file_is_refused(tmp_path):
    (tmp_path / "mine.txt").touch()
    (tmp_path / "a-b.py").touch()
    for name in ("none.py", "mine.txt", "a-b.py", "", ".", "x" * 5000 + ".py"):
        with pytest.raises(UserError, match="--plugin"):
            plugins.add(name)
    assert plugins.files() == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module\n", "ModuleNotFoundError, line 1: No module named 'no_such_module'"),
        ("x = 1\nx +\n", "SyntaxError, line 2: invalid syntax"),
        ("def f():\n    raise KeyError('a')\n\nf()\n", "KeyError, line 2: 'a'"),
        ("raise SystemExit(3)\n", "SystemExit, line 1: 3"),
        ("raise ValueError('\\x1b[2J' + 'a' * 999)\n", "ValueError, line 1: \\x1b[2J" + "a" * 100),
    ],
)
def test_a_file_that_can_not_be_imported_is_refused_with_its_line(tmp_path, text, reason):
    plugins.add(write(tmp_path, "mine", text))
    before = set(sys.modules)
    for ask in (tasks.names, lambda: tasks.find("scan")):
        with pytest.raises(UserError) as caught:
            ask()
        assert f"{tmp_path / 'mine.py'} can't be imported: {reason}" in str(caught.value)
        assert len(str(caught.value)) < 800
    assert not [name for name in set(sys.modules) - before if name.startswith("tfstudy_plugin_mine")]


@pytest.mark.parametrize(("text", "count"), [("x = 1\n", 0), (TASK + "\n\nclass Other(Letters):\n    pass\n", 2)])
def test_a_file_defines_one_class(tmp_path, text, count):
    plugins.add(write(tmp_path, "mine", text))
    with pytest.raises(
        UserError, match=rf"mine\.py must define one subclass of Task, Model, Instrument, but defines {count}"
    ):
        tasks.names()


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
    install(site, "second_package", "yours = second_package", TASK + "\n\nOld = Letters\n")  # a module with one task
    assert {"mine", "yours"} <= set(tasks.names())
    assert "first_package" not in sys.modules
    assert tasks.find("mine").__name__ == tasks.find("yours").__name__ == "Letters"
    assert tasks.plugin("mine").origin == "first_package 1.2"


@pytest.mark.parametrize(
    ("entry", "text", "reason"),
    [
        ("mine = broken_package:Letters", "1 / 0", "can't be imported: ZeroDivisionError: division by zero"),
        ("mine = broken_package:Nothing", TASK, "can't be imported: AttributeError"),
        ("mine = no_package:Letters", TASK, "can't be imported: ModuleNotFoundError"),
        ("mine = broken_package:Splits", TASK, "must be one subclass of Task"),
        ("mine = broken_package", "x = 1", "must be one subclass of Task"),
        ("mine/../x = broken_package:Letters", TASK, "needs a name such as my_task"),
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
    install(site, "flat_module", "yours = flat_module:Letters")
    found = plugins.source_files(tasks.find("mine"))
    assert {util, module} <= set(found)
    assert len(found) == 4
    assert plugins.source_files(tasks.find("yours")) == [site / "flat_module.py"]


def test_a_package_with_the_name_of_another_task_is_refused_when_the_name_is_used(site, tmp_path):
    install(site, "third_package", "sorting = third_package:Letters")
    assert tasks.find("scan").__name__ == "Scan"
    with pytest.raises(UserError, match=r"'sorting': tasks/sorting\.py and third_package 1\.2"):
        tasks.find("sorting")
