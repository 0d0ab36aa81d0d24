"""The properties of tasks: those of tfstudy have them, and what lacks one is reported by its name."""

import random

import pytest

from tfstudy import tasks
from tfstudy.tasks.base import Example, Splits, Task, TaskConfig
from tfstudy.testing import check_task

SMALL = {"train_examples": 300, "eval_examples": 60}


@pytest.mark.parametrize("name", tasks.built_in())
def test_every_task_has_them(name):
    cls = tasks.find(name)
    check_task(cls, {key: value for key, value in SMALL.items() if key in cls.Config.model_fields})


class Letters(Task):
    """One letter to the same letter."""

    class Config(TaskConfig):
        split: str = "only"

    def __init__(self, config):
        self.check_config(config)

    @classmethod
    def split_schemes(cls):
        return {"only": "all letters"}

    def splits(self):
        return Splits("train", None, ("test",))

    def examples(self, split):
        return [Example((a,), (a,), {"length": 1}) for a in {"train": "abc", "test": "ij"}[split]]


def with_examples(*examples):
    return {"examples": lambda self, split: examples if split == "test" else Letters.examples(self, split)}


def test_a_task_without_a_fault_passes():
    check_task(Letters)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"__init__": lambda self, config: None}, "its config is valid: an unknown split scheme is accepted"),
        ({"version": "1.0"}, "its config is valid: the version must be a whole number from 1, but is '1.0'"),
        ({"split_schemes": classmethod(lambda cls: {"only": ""})}, "each split scheme needs one line"),
        ({"split_schemes": classmethod(lambda cls: {"any": "all"})}, "the default of data.split, 'only'"),
        ({"splits": lambda self: Splits("train", "test", ("test",))}, "a split has two roles"),
        (with_examples(), "splits without examples: test"),
        (with_examples(Example(("a",), ("a",), {"length": 1})), "sources that are also in train: {'test': 1}"),
        (with_examples(Example("xy", ("a",), {"length": 1})), "a source of 'test' is not a tuple"),
        (with_examples(Example(("x y",), ("a",), {"length": 1})), "non-empty strings without spaces, not 'x y'"),
        (with_examples(Example(("",), ("a",), {"length": 1})), "non-empty strings without spaces, not ''"),
        (with_examples(Example(("x",), ("a",), {}), Example(("y",), ("a",), {"n": 1})), "differ in their tags"),
        (with_examples(Example(("x",), ("a",), {"length": 1.5})), "strings or integers, not {'length': 1.5}"),
        (
            {"examples": lambda self, split: [Example((f"{split}{random.random()}",), ("a",), {})]},
            "two objects with the same config have other examples",
        ),
        ({"score": lambda self, predictions, examples: {"accuracy": 0.5}}, "accuracy of the targets themselves is 0.5"),
        ({"score": lambda self, predictions, examples: {"accuracy": 1.0}}, "accuracy of empty predictions is 1.0"),
        ({"at_length": lambda self, length: [Example(("a",), ("a",), {"length": 1})]}, "at_length(8) returns"),
        ({"by_length": lambda self: ("train",)}, "by_length() names a split that is not held out"),
        ({"splits": lambda self: 1 // 0}, "ZeroDivisionError"),
    ],
)  # fmt: skip
def test_a_fault_is_reported(fault, expected):
    with pytest.raises(AssertionError) as caught:
        check_task(type("Faulty", (Letters,), fault))
    assert "Faulty with split=" in str(caught.value)
    assert expected in str(caught.value)


def test_all_properties_that_fail_are_reported():
    with pytest.raises(AssertionError) as caught:
        check_task(type("Faulty", (Letters,), {"version": 0, "by_length": lambda self: ("train",)}))
    assert len(str(caught.value).splitlines()) == 2
