"""Every benchmark can be imported, compares what it says, and gives yoyodyne the same sizes and examples."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tfstudy.models.tokens import Tokens

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path for path in (ROOT / "benchmarks").rglob("*.py") if not path.stem.endswith("_worker"))


@pytest.fixture(autouse=True)
def _repository(monkeypatch):
    """Benchmarks are imported from the root of the repository."""
    monkeypatch.syspath_prepend(str(ROOT))


def module_of(path):
    return importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def test_every_benchmark_can_be_imported():
    assert [path for path in SCRIPTS if not module_of(path).__doc__] == []


def test_the_usual_cnn_computes_the_same_with_convolutions_of_torch(monkeypatch):
    """They had been set under a name that our layer did not use, so that both sides of the comparison were ours."""
    usual, timing = (module_of(ROOT / "benchmarks" / f"{name}.py") for name in ("against_plain_lightning", "timing"))
    model, called, conv1d = timing.scan("cnn", steps=1).model.eval(), [], torch.nn.functional.conv1d
    monkeypatch.setattr("torch.nn.functional.conv1d", lambda *given: called.append(given) or conv1d(*given))
    tokens = Tokens.of(torch.tensor([[4, 5, 6], [7, 4, 5]]))
    with torch.no_grad():
        ours, before = model(tokens, tokens), len(called)
        theirs = usual.with_usual_layers(model)(tokens, tokens)
    assert (before, len(called)) == (0, 4)
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_part_of_the_gpu_benchmark_that_is_cut_short_keeps_what_it_measured(tmp_path, monkeypatch):
    gpu, log = module_of(ROOT / "benchmarks" / "gpu.py"), tmp_path / "gpu.log"
    script = "import time; print('  eager   200   1.00', flush=True); time.sleep(60)"
    scripts = {"training": script, "tests": "print('4 passed')"}
    monkeypatch.setattr(gpu, "command", lambda part, dry: (sys.executable, "-c", scripts[part]))
    done = [gpu.run("training", True, log, 2.0), gpu.run("tests", True, log, 20.0)]
    assert [one.code for one in done] == [None, 0]
    text = gpu.report(done)
    assert "## training: out of time, 2 s\n\n```text\neager   200   1.00\n```" in text
    assert "## tests: passed, " in text
    assert text.endswith("Left out or cut short: training, decoding, together, threads, compiled, more tests.\n")


@pytest.mark.parametrize("arch", ["transformer", "lstm"])
def test_yoyodyne_gets_our_sizes_and_the_same_examples(arch, tmp_path):
    yoyodyne = module_of(ROOT / "benchmarks" / "peers" / "yoyodyne.py")
    prepared = module_of(ROOT / "benchmarks" / "timing.py").scan(arch, steps=7)
    settings = yoyodyne.settings_of(prepared, SimpleNamespace(threads=1, sources=3), tmp_path)
    assert settings["steps"] == 7
    assert settings["hidden"] == (256 if arch == "transformer" else 144)
    assert settings["heads"] == (4 if arch == "transformer" else None)
    examples = prepared.task.examples("train")
    lines = Path(settings["train"]).read_text(encoding="utf-8").splitlines()
    assert [tuple(line.partition("\t")[2].split(" ")) for line in lines] == [example.target for example in examples]
    assert settings["longest"] == 1 + max(len(example.target) for example in examples)
    assert len(Path(settings["test"]).read_text(encoding="utf-8").splitlines()) == 3
