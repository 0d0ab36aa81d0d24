"""Finding tasks, the roles of splits, and error messages."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.example_plugins import write
from tests.tasks.toy_task import A, B, C, D, Toy
from tfstudy import tasks
from tfstudy.errors import UserError, one_of
from tfstudy.tasks.base import (
    Splits,
    Task,
    TaskConfig,
    overlap,
    overlap_warning,
)
from tfstudy.tasks.scan import Scan

HERE = Path(__file__).resolve().parents[2]


# Finding a task


def test_every_module_except_the_shared_ones_is_a_task():
    folders = {path.parent.name for path in (HERE / "tasks").glob("*/__init__.py")}
    files = {path.stem for path in (HERE / "tasks").glob("*.py")} | folders
    assert set(tasks.names()) == files - {"__init__"} - tasks.NOT_TASKS
    assert tasks.names() == sorted(tasks.names())


def test_every_task_is_found_by_its_name():
    assert tasks.find("scan") is Scan
    for name in tasks.names():
        assert issubclass(tasks.find(name), Task)
        assert issubclass(tasks.find(name).Config, TaskConfig)


@pytest.mark.parametrize("name", ["scam", "base", "scoring", "tasks.scan"])
def test_an_unknown_task_is_refused_with_the_known_ones(name):
    with pytest.raises(UserError, match=rf"task '{name}'.*scan"):
        tasks.find(name)


def test_a_misspelt_task_gets_the_nearest_name():
    with pytest.raises(UserError, match=r"'scna'.*did you mean 'scan'"):
        tasks.find("scna")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A second folder in which tasks are found, forgotten afterwards."""
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(tmp_path)])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("tfstudy.tasks."):
            del sys.modules[name]
            delattr(tasks, name.removeprefix("tfstudy.tasks."))


def test_adding_a_task_takes_one_file(folder):
    write(folder, "extra_task")
    assert "extra_task" in tasks.names()
    assert tasks.find("extra_task").__name__ == "Letters"


def test_overlap_is_a_line_of_warning_with_its_numbers():
    apart, shared = Toy(train=[A, B], validation=[C], test=[D]), Toy(train=[A, B], validation=[C], test=[A, D], far=[B])
    assert overlap_warning(apart, overlap(apart)) == ""
    assert overlap_warning(shared, overlap(shared)) == (
        "WARNING: 1 of 2 examples of test and 1 of 1 examples of far have a source that is also in train"
    )


@pytest.mark.parametrize("count", [0, 2])
def test_a_file_must_define_one_task(folder, count):
    classes = "".join(f"class T{n}(Task):\n    'A task.'\n" for n in range(count))
    (folder / "other_task.py").write_text(f"from tfstudy.tasks import Task\n{classes}")
    with pytest.raises(UserError, match=rf"tasks/other_task\.py must define one subclass of Task, but defines {count}"):
        tasks.find("other_task")


def test_tasks_import_no_torch_no_datasets_and_nothing_else_of_tfstudy():
    code = (
        "import sys\nfrom tfstudy import tasks\n"
        "for name in tasks.names():\n    tasks.find(name)\n"
        "ours = {'.'.join(name.split('.')[:2]) for name in sys.modules if name.split('.')[0] == 'tfstudy'}\n"
        "print(sorted(ours), sorted({'torch', 'lightning', 'datasets'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True)
    assert done.stdout == "['tfstudy', 'tfstudy.errors', 'tfstudy.plugins', 'tfstudy.registry', 'tfstudy.tasks'] []\n"


def test_the_imported_tasks_are_of_this_repository():
    assert Path(tasks.__file__).resolve().parent == HERE / "tasks"


# Messages


def test_an_allowed_name_is_returned():
    assert one_of("x", "b", "abc") == "b"


def test_a_name_without_a_near_match_gets_no_suggestion():
    with pytest.raises(UserError) as caught:
        one_of("split scheme", "zzz", ["length", "simple"])
    assert str(caught.value) == "unknown split scheme 'zzz'; expected one of: length, simple"


# Splits


def test_splits_are_named_by_role():
    splits = Splits("train", "validation", ("near", "far"))
    assert splits.held_out == ("validation", "near", "far")
    assert splits.all == ("train", "validation", "near", "far")
    assert Splits("train", None, ("test",)).all == ("train", "test")


@pytest.mark.parametrize("validation", [0, 0.05])
def test_each_split_of_scan_has_one_role(validation):
    task = Scan(Scan.Config(validation_fraction=validation))
    splits = task.splits()
    assert len(set(splits.all)) == len(splits.all)
    assert splits.train not in splits.held_out
    assert splits.validation not in splits.tests
    assert all(task.examples(name) for name in splits.all)


def test_overlap_counts_held_out_sources_that_occur_in_train():
    other = A._replace(target=("other",))
    assert overlap(Toy(train=[A, A, B], validation=[C], near=[A, other, D], far=[])) == {
        "validation": 0,
        "near": 2,
        "far": 0,
    }
