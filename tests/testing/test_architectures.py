"""The properties of architectures: what lacks one is reported by its name. `tests/models` checks those of tfstudy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.example_plugins import write
from tests.example_task import ARCHITECTURE
from tfstudy.testing import check_architecture, load_plugin
from tfstudy.testing.architecture_properties import PROPERTIES, ArchitectureVariant

DECAY = "    def parameters_without_decay(self):\n        return [{}]\n"  # a method of an architecture


def failing(path: Path, *names: str) -> list[str]:
    """Those of these properties that an architecture lacks."""
    variant, found = ArchitectureVariant(load_plugin(path), ""), []
    for name in names:
        try:
            PROPERTIES[name](variant)
        except (AssertionError, RuntimeError):
            found.append(name)
    return found


def test_a_bag_of_words_lacks_order_and_says_so(tmp_path):
    """It has no dropout either."""
    cls = load_plugin(write(tmp_path, "bag", ARCHITECTURE))
    with pytest.raises(AssertionError) as caught:
        check_architecture(cls)
    lines = str(caught.value).splitlines()
    assert [
        line for line in lines if line.startswith("Bag: source order matters except to bags: the order of the source")
    ]
    assert [line for line in lines if line.startswith("Bag: dropout acts in training only: dropout changes nothing")]
    assert not [line for line in lines if "padding" in line or "batch first" in line]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("self.source(source) * present", "self.source(source)"), "padding changes nothing"),
        (("return self.output(x), state", "return self.output(x.flip(1)), state"), "no logit depends on a later token"),
        (("return self.output(x), state", "return self.output(x).float(), state"), "a model works in double precision"),
        (("_vocab, config.dim)", "_vocab, config.dim).requires_grad_(False)"), "gradients reach every parameter"),
        (("class Bag(Model):", "class Bag(Model):\n    widths = ('nothing',)"), "what it declares is valid"),
    ],
)  # fmt: skip
def test_a_fault_is_found(tmp_path, change, expected):
    assert change[0] in ARCHITECTURE
    path = write(tmp_path, "bag", ARCHITECTURE)
    assert failing(path, expected) == []
    faulty = write(tmp_path, "faulty", ARCHITECTURE.replace(*change))
    assert failing(faulty, expected) == [expected]


@pytest.mark.parametrize(
    ("change", "title", "message"),
    [
        (("class Bag(Model):", "class Bag(Model):\n    version = '1'"), "what it declares is valid", "but is '1'"),
        (("class Bag(Model):", "class Bag(Model):\n    bags = ('no',)"), "what it declares is valid", "are not: no"),
        (
            ("return self.output(x), state", "return self.output(x), state\n\n" + DECAY.format("self.output.weight")),
            "weight decay spares vectors and no weight of a layer",
            "vectors that parameters_without_decay() must return, but does not: layers.0.bias, output.bias",
        ),
        (
            ("return self.output(x), state", "return self.output(x), state\n\n" + DECAY.format("*self.parameters()")),
            "weight decay spares vectors and no weight of a layer",
            "weights of layers that parameters_without_decay() returns: source.weight",
        ),
        (
            ("return self.output(x), state", "return self.output(x), state\n\n" + DECAY.format("nn.Linear(1, 1).bias")),
            "weight decay spares vectors and no weight of a layer",
            "parameters_without_decay() returns 1 tensors that are no parameters of the model",
        ),
    ],
)  # fmt: skip
def test_the_message_says_what_was_expected_and_what_was_found(tmp_path, change, title, message):
    cls = load_plugin(write(tmp_path, "bag", ARCHITECTURE.replace(*change)))
    with pytest.raises(AssertionError) as caught:
        PROPERTIES[title](ArchitectureVariant(cls, ""))
    assert message in str(caught.value)


def test_checking_needs_no_test_framework(tmp_path):
    code = "import sys, tfstudy.testing.architecture_properties, tfstudy.testing.task_properties; print(*sys.modules)"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert not {"pytest", "hypothesis"} & set(done.stdout.split())
