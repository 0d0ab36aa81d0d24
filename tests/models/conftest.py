"""Shapes in signatures are checked in all tests of models."""

import pytest


@pytest.fixture(autouse=True)
def checked(shapes: None) -> None:
    """`shapes` for every test of this folder."""
