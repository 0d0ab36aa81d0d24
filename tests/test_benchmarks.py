"""Every benchmark still fits the code that it measures."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_a_benchmark_can_be_imported(name, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = importlib.import_module(name)
    assert Path(module.__file__).parent == FOLDER
