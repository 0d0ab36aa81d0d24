"""The task and the architecture of this package are found by tfstudy, and have the properties of all of them."""

from tfstudy import models, tasks
from tfstudy.testing import check_architecture, check_task

SMALL = {"train_examples": 300, "eval_examples": 60}


def test_each_letter_is_replaced_by_the_next_one():
    cls = tasks.find("shift")
    for example in cls(cls.Config(**SMALL)).examples("train"):
        assert all(ord(b) - ord(a) in (1, -25) for a, b in zip(example.source, example.target, strict=True))


def test_the_task_has_the_properties_of_a_task():
    check_task(tasks.find("shift"), SMALL)


def test_the_architecture_has_the_properties_of_an_architecture():
    check_architecture(models.find("elman"))
