"""The trained runs that come with the source code work without a checkpoint, as in a fresh clone."""

import shutil
import subprocess

import pytest
import torch

from tests.commands import tfstudy
from tests.committed import ROOT
from tfstudy import load
from tfstudy.data.encoding import BOS, EOS
from tfstudy.errors import UserError
from tfstudy.models.tokens import Tokens
from tfstudy.runs.find import find_runs

FIRST = ROOT / "results" / "first"
RUNS = list(find_runs(FIRST))


@pytest.fixture
def _clone(tmp_path, monkeypatch):
    """A folder with the files of the study that git keeps."""
    monkeypatch.chdir(tmp_path)
    listed = subprocess.run(["git", "ls-files", "results/first"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split() if not listed.returncode else []
    for path in [ROOT / name for name in names] or (path for path in FIRST.rglob("*") if path.is_file()):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


@pytest.mark.usefixtures("_clone")
def test_the_first_prediction_works_in_a_fresh_clone(capsys):
    assert tfstudy("predict", "first/lstm", "jump twice and walk left") == 0
    assert capsys.readouterr().out == "I_JUMP I_JUMP I_TURN_LEFT I_WALK\n"
    assert [path.parent.name for path in RUNS] == ["cnn", "lstm", "transformer"]


@pytest.mark.usefixtures("_clone")
@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_the_shared_weights_give_the_recorded_predictions(path):
    run = load(path.relative_to(ROOT))
    assert run.weights.name == "weights.safetensors"
    assert {one.dtype for one in run.model.parameters()} == {torch.float32}
    some = run.predictions()[::200]
    assert run.predict([one.source for one in some]) == [one.prediction for one in some]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_logits_and_hidden_states_of_a_run_are_those_of_its_model_called_directly(path):
    run, source, output = load(path), "jump twice", "I_JUMP I_JUMP"
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
    if path.parent.name == "transformer":
        last = states["decoder", max(layer for kind, layer in states if kind == "decoder")]
        assert torch.equal(model.output(model.decoder.norm(last)), logits)
    with pytest.raises(UserError, match="target token 'I_JMP'"):
        run.logits(source, "I_JMP")
