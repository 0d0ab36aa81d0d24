"""What the tests of instruments share: a task, and a subject for each architecture."""

import pytest

from tests.conftest import perturbed
from tests.example_task import TASK, added
from tfstudy import instruments, tasks
from tfstudy.config.resolve import resolve
from tfstudy.data.encoding import TaskEncoder
from tfstudy.instruments.base import Subject

TREE = {"task": "reverse", "arch": "transformer", "data": {"split": "short"}}


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    with added(tasks, "reverse", TASK, tmp_path_factory.mktemp("more")):
        cls = tasks.find("reverse")
        yield cls(cls.Config(split="short"))


@pytest.fixture
def subject(build, task):
    """`subject(variant, **config)`: a model with random weights as an instrument sees it."""

    def subject(variant, **config):
        data = TaskEncoder(task)
        model = perturbed(build(variant, (len(data.source_vocab.tokens), len(data.target_vocab.tokens)), **config))
        return Subject(model.eval(), task, data, resolve(TREE))

    return subject


@pytest.fixture
def measure():
    """`measure(name, subject, **settings)`: the rows of an instrument."""

    def measure(name, subject, **settings):
        cls = instruments.find(name)
        return cls(cls.Config(**settings)).measure(subject)

    return measure
