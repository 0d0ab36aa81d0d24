"""Every architecture, in each of its variants, has the properties of `tfstudy.testing`. It is found by its name."""

import pytest
import torch

from tests.conftest import VARIANTS
from tfstudy import models
from tfstudy.models.base import select_rows
from tfstudy.testing.architecture_properties import PROPERTIES, ArchitectureVariant

ARCHS = models.built_in()
# Memorising takes most of the time: in `make check` only each architecture does it, in `make slow` each variant.
CASES = [
    pytest.param(name, check, id=f"{name}-{label}", marks=pytest.mark.slow if trains and name not in ARCHS else ())
    for name in VARIANTS
    for label, check in PROPERTIES.items()
    for trains in ["memorised" in label]
]


@pytest.mark.parametrize(("name", "check"), CASES)
def test_the_property_holds(name, check):
    arch = VARIANTS[name][0]
    check(ArchitectureVariant(models.find(arch), name.removeprefix(arch).removeprefix("-")))


def test_select_rows_refuses_what_is_no_tensor():
    with pytest.raises(TypeError, match="list"):
        select_rows((torch.zeros(2), [1]), torch.tensor([0]))
