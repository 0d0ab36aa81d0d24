"""These tests need a CUDA device; `make gpu` runs them. They use the small task of the tests of training."""

from pathlib import Path

import pytest
import torch

from tests.training.conftest import _reverse as _reverse


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))  # of another version
            if not torch.cuda.is_available():
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(autouse=True)
def _float32():
    """Convolutions and recurrent layers in float32: by default cuDNN rounds their inputs to ten bits."""
    kept, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
    yield
    torch.backends.cudnn.allow_tf32 = kept
