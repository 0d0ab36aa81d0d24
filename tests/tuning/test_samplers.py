"""Methods that choose trials: random, or Optuna."""

import pytest

from tests.commands import tfstudy
from tests.example_search import request, trials
from tests.example_task import TASK, added
from tfstudy import tasks
from tfstudy.tuning import samplers, search, space
from tfstudy.tuning.search import plan_search
from tfstudy.tuning.space import parse


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch, capsys):
    monkeypatch.setattr(samplers, "find_spec", lambda name: None)
    assert tfstudy("tune", "reverse", "--method", "optuna") == 2
    assert capsys.readouterr().err.endswith("pip install optuna\n")


class Counting(samplers.Sampler):
    """Proposes values that depend on the number of scores."""

    def __init__(self, *_) -> None:
        self.scores: list[float] = []

    round_size = 2

    def ask(self, count):
        return [{"train.learning_rate": 1e-3 * (1 + len(self.scores) + i)} for i in range(count)]

    def tell(self, scores):
        self.scores += scores


def test_a_resumed_search_repeats_every_round_for_a_method_that_learns(monkeypatch):
    one = Counting()
    monkeypatch.setattr(search, "sampler", lambda *_: one)
    given = plan_search(request(archs=("lstm",), trials=5))
    first = trials(given)
    assert [each.trial.values["train.learning_rate"] for each in first] == [1e-3, 2e-3, 3e-3, 4e-3, 5e-3]
    assert one.scores == [each.value for each in first]
    one.scores = []
    assert trials(given) == first


def test_optuna_proposes_the_same_after_the_same_scores():
    pytest.importorskip("optuna")
    kinds = dict(map(parse, (*space.DEFAULT, "model.layers=1..3", "model.norm=[pre, post]")))
    rounds = []
    for _ in range(2):
        one = samplers.sampler("optuna", kinds, 3)
        for number in range(4):
            rounds.append(one.ask(4))
            one.tell([number + i / 10 for i in range(4)])
    assert rounds[:4] == rounds[4:]
    assert len({str(values) for several in rounds[:4] for values in several}) == 16
    for values in (values for several in rounds for values in several):
        assert 1e-4 <= values["train.learning_rate"] <= 1e-2
        assert values["model.layers"] in (1, 2, 3)
        assert values["model.norm"] in ("pre", "post")


def test_a_search_by_optuna_can_be_extended():
    pytest.importorskip("optuna")
    short = trials(plan_search(request(archs=("lstm",), trials=4, method="optuna")))
    assert trials(plan_search(request(archs=("lstm",), trials=6, method="optuna")))[:4] == short
