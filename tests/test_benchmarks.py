"""Every benchmark still fits the code that it measures."""

import importlib.util
import sys
from pathlib import Path

import pytest

from benchmarks import gpu

FOLDER = Path(__file__).parent.parent / "benchmarks"
OWN = sorted(path for path in FOLDER.rglob("*.py") if not path.stem.endswith("_worker"))  # others run beside a peer


@pytest.mark.parametrize("path", OWN, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_benchmark_can_be_imported(path, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER.parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.__doc__


def test_a_part_of_the_gpu_benchmark_that_is_cut_short_keeps_what_it_measured(tmp_path):
    row = '{"group": "lstm", "way": "eager", "baseline": "eager", "examples/s": 200.0}'
    script = f"import time; print({row!r}, flush=True); time.sleep(60)"
    log = tmp_path / "gpu.log"
    records = [gpu.run(gpu.Part("training", (sys.executable, "-c", script), 0), log, tmp_path, 2.0)]
    records.append(gpu.run(gpu.Part("smoke", (sys.executable, "-c", "print('4 passed')"), 0), log, tmp_path, 20.0))
    assert [record["exit_code"] for record in records] == [None, 0]
    assert [len(record["measured"]) for record in records] == [1, 0]
    text = "\n".join(gpu.table(records))
    assert "| eager | 200 | 1.00 |" in text
    assert "passed; 4 passed" in text
