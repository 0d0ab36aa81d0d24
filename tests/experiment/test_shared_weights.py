"""The trained runs that come with the source code work without a checkpoint, as in a fresh clone."""

import shutil
import subprocess

import pytest
import torch

from tests.committed import ROOT
from tfstudy import load
from tfstudy.data.encoding import BOS, EOS
from tfstudy.errors import UserError
from tfstudy.models.tokens import Tokens
from tfstudy.runs.find import find_runs

FIRST = ROOT / "results" / "first"
RUNS = {path.parent.name: path for path in find_runs(FIRST)}
each = pytest.mark.parametrize("arch", ["cnn", "lstm", "transformer"])


@each
def test_the_shared_weights_give_the_recorded_predictions_in_a_fresh_clone(arch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed = subprocess.run(["git", "ls-files", "results/first"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split() if not listed.returncode else []
    for path in [ROOT / name for name in names] or (path for path in FIRST.rglob("*") if path.is_file()):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    run = load(RUNS[arch].relative_to(ROOT))
    assert run.weights.name == "weights.safetensors"
    assert {one.dtype for one in run.model.parameters()} == {torch.float32}
    some = run.predictions()[::200]
    assert run.predict([one.source for one in some]) == [one.prediction for one in some]


@each
def test_logits_and_hidden_states_of_a_run_are_those_of_its_model_called_directly(arch):
    run, source, output = load(RUNS[arch]), "jump twice", "I_JUMP I_JUMP"
    data, model = run.prepared.data, run.model
    target = data.target_vocab.encode(output.split())
    ids = torch.tensor([[*data.source_vocab.encode(source.split()), EOS]])
    with torch.no_grad():
        logits = model(Tokens.of(ids), Tokens.of(torch.tensor([[BOS, *target]])))
    assert torch.equal(run.logits(source, output), logits)
    assert torch.equal(run.logits(source), logits), "the model writes this output itself"
    assert run.logits(source).argmax(1).tolist() == [*target, EOS]
    states = run.hidden_states(source)
    assert {kind for kind, _ in states} == {"encoder", "decoder"}
    assert all(len(rows) == 3 for rows in states.values())
    if arch == "transformer":
        last = states["decoder", max(layer for kind, layer in states if kind == "decoder")]
        assert torch.equal(model.output(model.decoder.norm(last)), logits)
    with pytest.raises(UserError, match="target token 'I_JMP'"):
        run.logits(source, "I_JMP")
