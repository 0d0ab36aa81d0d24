"""The properties of tasks and architectures: what lacks one is reported by its name.

`tests/models` checks those of the architectures of tfstudy.
"""

import random
import subprocess
import sys

import pytest

from tests.example_task import ARCHITECTURE, LETTERS, write
from tests.tasks.corpora import pairs_folder
from tfstudy import tasks
from tfstudy.tasks.base import Example, Splits
from tfstudy.testing import check_architecture, check_task, load_plugin
from tfstudy.testing.architecture_properties import PROPERTIES, ArchitectureVariant

SMALL = {"train_examples": 300, "eval_examples": 60}


@pytest.mark.parametrize("name", tasks.built_in())
def test_every_task_has_them(name, tmp_path):
    cls = tasks.find(name)
    small = {key: value for key, value in SMALL.items() if key in cls.Config.model_fields}
    check_task(cls, {"root": pairs_folder(tmp_path)} if name == "pairs" else small)


def with_examples(*examples):
    train = [Example(("a",), ("a",), {"length": 1})]
    return {"examples": lambda self, split: examples if split == "test" else train}


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"__init__": lambda self, config: None}, "its config is valid: an unknown split scheme is accepted"),
        ({"version": "1.0"}, "its config is valid: the version must be a whole number from 1, but is '1.0'"),
        ({"split_schemes": classmethod(lambda cls: {"only": ""})}, "each split scheme needs one line"),
        ({"split_schemes": classmethod(lambda cls: {"any": "all"})}, "the default of data.split, 'only'"),
        ({"splits": lambda self: Splits("train", "test", ("test",))}, "a split has two roles"),
        (with_examples(), "split 'test' has no examples"),
        (with_examples(Example(("a",), ("a",), {"length": 1})), "sources that are also in train: {'test': 1}"),
        (with_examples(Example(("x y",), ("a",), {"length": 1})), "non-empty strings without spaces, not 'x y'"),
        (
            {"examples": lambda self, split: [Example((f"{split}{random.random()}",), ("a",), {})]},
            "two objects with the same config have other examples",
        ),
        ({"score": lambda self, predictions, examples: {"accuracy": 0.5}}, "accuracy of the targets themselves is 0.5"),
        ({"score": lambda self, predictions, examples: {"accuracy": 1.0}}, "accuracy of empty predictions is 1.0"),
        ({"by_length": lambda self: ("train",)}, "by_length() names a split that is not held out"),
        ({"splits": lambda self: 1 // 0}, "ZeroDivisionError"),
    ],
)  # fmt: skip
def test_a_fault_of_a_task_is_reported(tmp_path, fault, expected):
    letters = load_plugin(write(tmp_path, "letters"))
    check_task(letters)
    with pytest.raises(AssertionError) as caught:
        check_task(type("Faulty", (letters,), fault))
    assert "Faulty with split=" in str(caught.value)
    assert expected in str(caught.value)


def test_faults_are_found_without_assertions_and_without_a_test_framework(tmp_path):
    path = write(tmp_path, "mine", LETTERS + "\n    version = 0\n")
    code = (
        "import sys, tfstudy.testing.architecture_properties\nfrom tfstudy.testing import check_task, load_plugin\n"
        f"assert False\ntry: check_task(load_plugin({str(path)!r}))\nfinally: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "its config is valid: the version must be a whole number from 1, but is 0" in done.stderr
    assert not {"pytest", "hypothesis"} & set(done.stdout.split())


def test_a_bag_of_words_lacks_order_and_dropout_and_says_so(tmp_path):
    cls = load_plugin(write(tmp_path, "bag", ARCHITECTURE))
    with pytest.raises(AssertionError) as caught:
        check_architecture(cls)
    lines = str(caught.value).splitlines()
    assert any(line.startswith("Bag: source order matters except to bags: the order of the source") for line in lines)
    assert any(line.startswith("Bag: dropout acts in training only: dropout changes nothing") for line in lines)
    assert not [line for line in lines if "padding" in line or "batch first" in line]


END, CLASS = "return self.output(x), state", "class Bag(PaddedModel):"
DECAY = f"{END}\n\n    def parameters_without_decay(self):\n        return [{{}}]\n"


@pytest.mark.parametrize(
    ("old", "new", "title", "message"),
    [
        ("self.source(source) * present", "self.source(source)", "padding changes nothing", "not close"),
        (END, "return self.output(x.flip(1)), state", "no logit depends on a later token", "not close"),
        (END, "return self.output(x).float(), state", "a model works in double precision", "have type torch.float64"),
        ("_vocab, config.dim)", "_vocab, config.dim).requires_grad_(False)", "gradients reach every parameter", "grad"),
        (CLASS, f"{CLASS}\n    widths = ('nothing',)", "what it declares is valid", "these are not: nothing"),
        (CLASS, f"{CLASS}\n    version = '1'", "what it declares is valid", "but is '1'"),
        (END, DECAY.format("self.output.weight"), "weight decay spares vectors", "must return, but does not: layers.0"),
        (END, DECAY.format("*self.parameters()"), "weight decay spares vectors", "returns: source.weight"),
        (END, DECAY.format("nn.Linear(1, 1).bias"), "weight decay spares vectors", "1 tensors that are no parameters"),
    ],
)  # fmt: skip
def test_a_fault_of_an_architecture_is_found(tmp_path, old, new, title, message):
    assert old in ARCHITECTURE
    [check] = [check for name, check in PROPERTIES.items() if name.startswith(title)]
    check(ArchitectureVariant(load_plugin(write(tmp_path, "bag", ARCHITECTURE)), ""))
    faulty = load_plugin(write(tmp_path, "faulty", ARCHITECTURE.replace(old, new)))
    with pytest.raises((AssertionError, RuntimeError), match=message):
        check(ArchitectureVariant(faulty, ""))
