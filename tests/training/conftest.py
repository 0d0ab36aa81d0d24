"""The small task of these tests, in a working folder of its own."""

import pytest


@pytest.fixture(autouse=True)
def _reverse(reverse):
    pass
