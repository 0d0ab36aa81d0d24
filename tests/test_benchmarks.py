"""Every benchmark still fits the code that it measures."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
OWN = sorted(path for path in FOLDER.rglob("*.py") if not path.stem.endswith("_worker"))  # others run beside a peer


@pytest.mark.parametrize("path", OWN, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_benchmark_can_be_imported(path, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER.parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.__doc__
