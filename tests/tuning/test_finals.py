"""The second round of a search: the best trials, judged on several seeds."""

import math
from pathlib import Path

import pytest

from tests.example_search import executed, request, trials
from tests.example_task import TASK, added
from tfstudy import tasks
from tfstudy.config.files import read_yaml
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import merge
from tfstudy.errors import UserError
from tfstudy.runs.reader import read_result
from tfstudy.tuning.best_presets import best_trials, preset_text
from tfstudy.tuning.finals import Finalist, best_finalists, check_finals, run_finals
from tfstudy.tuning.search import IncompleteSearchError, Trial, TrialScore, plan_search

ROOT = Path("results/tuning")


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def finalist(arch: str, name: str, *losses: float) -> Finalist:
    scores = [
        TrialScore(Trial(arch, 1, {}, {}, None), Path(name), "diverged" if loss < 0 else "finished", 1.0, loss, 9)
        for loss in losses
    ]
    return Finalist(scores[0], tuple(scores))


def test_the_mean_loss_over_seeds_decides_and_not_the_best_seed():
    lucky, steady, other = finalist("lstm", "a", 0.1, 0.9), finalist("lstm", "b", 0.2, 0.3), finalist("cnn", "c", 5.0)
    ordered = sorted([lucky, steady, other], key=lambda each: each.loss)
    assert {arch: one.trial.path.name for arch, one in best_finalists(ordered).items()} == {"lstm": "b", "cnn": "c"}
    assert steady.loss == pytest.approx(0.25)


def test_a_trial_that_diverged_with_one_seed_is_not_chosen():
    assert finalist("lstm", "a", 0.1, -1).loss == math.inf
    assert best_finalists([finalist("lstm", "a", 0.1, -1)]) == {}


def test_a_trial_without_a_loss_does_not_reach_the_second_round():
    search = plan_search(request(trials=1, final_trials=1, final_seeds=2, archs=("lstm",)))
    [unmeasured] = finalist("lstm", "a", math.inf).seeds
    assert run_finals(search, [unmeasured], ROOT, "reverse", lambda planned: True) == []


def test_every_architecture_has_the_same_number_of_trials_and_seeds_and_no_test_set_is_evaluated():
    search = plan_search(request(trials=3, final_trials=2, final_seeds=2, seed=4))
    scores = trials(search)
    finalists = run_finals(search, scores, ROOT, "reverse", executed)
    assert [each.trial.trial.arch for each in finalists] == ["lstm", "lstm", "cnn", "cnn"]
    for arch in ("lstm", "cnn"):
        ordered = sorted((one for one in scores if one.trial.arch == arch), key=lambda one: one.order)
        found = {each.trial.path for each in finalists if each.trial.trial.arch == arch}
        assert found == {one.path for one in ordered[:2]}
    for each in finalists:
        assert [one.trial.config.seed for one in each.seeds] == [4, 5]
        assert all(one.trial.config.model_copy(update={"seed": 4}) == each.trial.trial.config for one in each.seeds)
        results = [read_result(one.path) for one in each.seeds]
        assert all(result.tuning and not result.test_reads for result in results)
    assert not list(Path().glob("**/test_reads.csv"))


@pytest.mark.slow
def test_the_presets_name_the_seeds_and_equal_those_of_one_seed_but_for_the_choice():
    search = plan_search(request(final_trials=2, final_seeds=2))
    scores = trials(search)
    assert preset_text(search, best_trials(scores)) == preset_text(plan_search(request()), best_trials(scores))
    chosen = best_finalists(run_finals(search, scores, ROOT, "reverse", executed))
    text = preset_text(search, {arch: each.trial for arch, each in chosen.items()}, chosen)
    Path("found.yaml").write_text(text)
    for arch, each in chosen.items():
        about = read_yaml(Path("found.yaml"))["tuned"][arch]["about"]
        assert f"the best of 2 trials by mean loss over 2 seeds (0-1): {each.loss:.4f} " in about
        named = {"task": "reverse", "arch": arch, "data": {"split": "short"}, "eval": {"max_examples": 24}}
        assert resolve(merge(preset("reverse", arch, "found.yaml:tuned"), named)) == each.trial.trial.config


@pytest.mark.slow
def test_the_second_round_changes_no_trial_and_resumes():
    scores = trials(plan_search(request()))
    search = plan_search(request(final_trials=1, final_seeds=3))
    assert trials(search) == scores
    first = run_finals(search, scores, ROOT, "reverse", executed)
    before = {path: path.stat().st_mtime_ns for path in ROOT.glob("**/result.json")}
    assert len(before) == 4 + 2 * 2
    assert run_finals(search, scores, ROOT, "reverse", executed) == first
    assert {path: path.stat().st_mtime_ns for path in ROOT.glob("**/result.json")} == before


def test_a_failed_run_of_the_second_round_ends_the_search():
    search = plan_search(request(archs=("lstm",), final_trials=1))
    with pytest.raises(IncompleteSearchError):
        run_finals(search, trials(search), ROOT, "reverse", lambda _: False)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"final_trials": 3}, "--final-trials must be from 0 to --trials .2., but is 3"),
        ({"final_trials": 1, "final_seeds": 1}, "--final-seeds must be from 2 to 100, but is 1"),
    ],
)
def test_impossible_numbers_are_refused(numbers, message):
    with pytest.raises(UserError, match=message):
        check_finals(request(**numbers))
