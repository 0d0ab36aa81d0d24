"""A run records its limits, its peak memory and the trivial systems of its task, and shows the progress."""

import pytest

from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import command, folder
from tfstudy import tasks
from tfstudy.evaluation.breakdown import summarize_errors
from tfstudy.runs.store import read_predictions, read_result

BASELINES = """
    def baselines(self, split):
        return {"copy": [e.source for e in self.examples(split)], "answers": [e.target for e in self.examples(split)]}
"""


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK + BASELINES, tmp_path / "more"):
        yield


def test_trivial_systems_and_kinds_of_errors_are_recorded():
    assert tfstudy(*command()) == 0
    test = read_result(folder()).splits["test"]
    assert test.n == 24, "a sample"
    assert test.baselines["answers"] == {"exact_match": 1.0, "token_accuracy": 1.0}
    copied = test.baselines["copy"]["exact_match"]
    assert 0 <= copied < 0.5
    assert round(24 * copied, 6) % 1 == 0, "a share of 24 examples"
    for split, scores in read_result(folder()).splits.items():
        assert scores.errors == summarize_errors(read_predictions(folder(), split))
        assert sum(kind.n for kind in scores.errors.values()) == scores.n > 0


def test_the_limit_and_the_peaks_are_recorded(capsys):
    assert tfstudy(*command("lstm", "--set", "decode.limit=source", "--set", "decode.method=beam")) == 0
    result = read_result(folder())
    assert (result.generation_limit.per_source_token, result.generation_limit.constant) == (1.0, 16)
    assert all(20 < peak < 100_000 for peak in (result.train_peak_mib, result.evaluate_peak_mib))
    assert all(0 <= scores.limit_hits <= scores.n for scores in result.splits.values())
    capsys.readouterr()
    assert tfstudy("result", folder()) == 0
    out = capsys.readouterr().out
    assert "outputs of at most 1 x source length + 16 tokens" in out
    assert "oracle length is decoded greedily, all else by beam search of size 4" in out
