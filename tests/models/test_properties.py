"""Every architecture, in each of its variants, has the properties of `tfstudy.testing`. It is found by its name."""

import pytest
import torch

from tests.conftest import VARIANTS
from tfstudy import models
from tfstudy.models.base import select_rows
from tfstudy.testing.architecture_properties import PROPERTIES, ArchitectureVariant

ARCHS = models.built_in()
# In `make check` each architecture has every property, and each variant these; in `make slow` each variant has all.
CORE = ("decoding in pieces", "no logit depends", "padding changes", "gradients reach", "select rows")
CASES = [
    pytest.param(name, check, id=f"{name}-{label}", marks=() if core or name in ARCHS else pytest.mark.slow)
    for name in VARIANTS
    for label, check in PROPERTIES.items()
    for core in [label.startswith(CORE)]
]


@pytest.mark.parametrize(("name", "check"), CASES)
def test_the_property_holds(name, check):
    arch = VARIANTS[name][0]
    check(ArchitectureVariant(models.find(arch), name.removeprefix(arch).removeprefix("-")))


def test_select_rows_refuses_what_is_no_tensor():
    with pytest.raises(TypeError, match="list"):
        select_rows((torch.zeros(2), [1]), torch.tensor([0]))
