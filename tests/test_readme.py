"""What the README shows is true."""

import re
import warnings
from pathlib import Path

from tfstudy import tasks
from tfstudy.tasks.base import overlap

TEXT = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.S)


def test_the_python_example_trains(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # a plain trainer writes its logs to the working folder
    example = next(block for block in BLOCKS if "lightning.Trainer" in block)
    assert "max_epochs=1" in example
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's advice on loggers and the like
        exec(example.replace("max_epochs=1", "max_steps=2"), names)
    assert all(parameter.grad is not None for parameter in names["model"].parameters())


def test_the_example_of_a_task_is_a_task(tmp_path, monkeypatch):
    example = next(block for block in BLOCKS if "class Reverse" in block)
    (tmp_path / "reverse.py").write_text(example)
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(tmp_path)])
    kind = tasks.find("reverse")
    task = kind(kind.Config())
    assert all(e.target == e.source[::-1] for split in task.splits().all for e in task.examples(split))
    assert overlap(task) == {"validation": 0, "test": 0}


def test_every_command_of_the_readme_is_one():
    from tfstudy.cli import app

    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert set(re.findall(r"^    tfstudy (\w+)", TEXT, re.M)) <= known
