"""Searches: equal budgets, the best trials, and what separates trials from runs."""

import math
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_search import request, trials
from tests.example_task import TASK, added
from tfstudy import tasks
from tfstudy.config.files import read_yaml
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import merge
from tfstudy.console.tuning import show_trials
from tfstudy.errors import UserError
from tfstudy.experiment import run as experiment
from tfstudy.experiment.options import RunOptions
from tfstudy.runs.find import find_runs, studies
from tfstudy.runs.reader import read_result
from tfstudy.tuning.best_presets import NAME, best_trials, preset_text, save_presets, sections
from tfstudy.tuning.search import (
    IncompleteSearchError,
    Trial,
    TrialScore,
    make_trial,
    plan_search,
    run_search,
    score,
)


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def scored(arch: str, exact: float, loss: float, name: str, status: str = "finished") -> TrialScore:
    return TrialScore(Trial(arch, 1, {}, {}, None), Path(name), status, exact, loss, 100)


def test_the_best_trial_has_the_lowest_loss_whatever_its_exact_match_then_the_first_name():
    scores = [
        scored("lstm", 0.9, 0.1, "b"),
        scored("lstm", 0.8, 0.1, "a"),
        scored("lstm", 1.0, 0.3, "c"),
        scored("lstm", 1.0, math.inf, "0"),
        scored("lstm", 0.0, 0.0, "00", "diverged"),
        scored("cnn", 0.0, 3.0, "z"),
    ]
    for turn in range(len(scores)):
        chosen = best_trials(scores[turn:] + scores[:turn])
        assert {arch: each.path.name for arch, each in chosen.items()} == {"lstm": "a", "cnn": "z"}
    values = {each.path.name: each.value for each in scores[:5]}
    assert values["a"] == values["b"] > values["c"] > values["0"] == values["00"] == 0


def test_a_trial_without_a_loss_is_never_the_best():
    assert best_trials([scored("lstm", 1.0, math.inf, "a")]) == {}


def test_without_a_measured_trial_there_is_no_presets_file(capsys):
    given = plan_search(request(archs=("lstm",), trials=1))
    [one] = [scored("lstm", 0.0, math.inf, "a")]
    assert show_trials(given, [one], Path("preset.yaml")) == 1
    out, err = capsys.readouterr()
    assert err == "no trial of lstm has a validation loss, so it has no preset\n"
    assert "* 1" not in out
    assert not Path("preset.yaml").exists()


def test_an_architecture_whose_trials_all_diverged_has_no_best():
    assert best_trials([scored("lstm", 0.0, math.inf, "a", "diverged")]) == {}


def test_every_architecture_has_the_same_budget_and_no_test_set_is_evaluated():
    scores = trials(plan_search(request("train.learning_rate=1e-3..1e-2", "model.layers=1..2")))
    assert [each.trial.arch for each in scores] == ["lstm", "cnn"] * 2
    assert {each.trial.config.train.steps for each in scores} == {20}
    rates = [
        [s.trial.values["train.learning_rate"] for s in scores if s.trial.arch == arch] for arch in ("lstm", "cnn")
    ]
    assert rates[0] == rates[1]
    for each in scores:
        result = read_result(each.path)
        assert result.tuning is True
        assert result.test_reads == {}
        assert list(result.splits) == ["validation"]
        assert [path.name for path in (each.path / "predictions").iterdir()] == ["validation.jsonl.gz"]
        assert not (each.path / "test_reads.csv").exists()
        assert math.isfinite(each.loss)


def test_the_same_search_again_trains_nothing_and_can_be_extended(monkeypatch):
    first = trials(plan_search(request()))
    trained = []
    train = experiment.train
    monkeypatch.setattr(experiment, "train", lambda *given: trained.append(1) or train(*given))
    assert trials(plan_search(request())) == first
    assert trained == []
    assert trials(plan_search(request(trials=3)))[:4] == first
    assert len(trained) == 2


def test_the_preset_of_the_best_trial_gives_its_config(capsys):
    given = plan_search(request("train.learning_rate=1e-4..1e-2:log", "cnn.model.kernel=[3,5]"))
    chosen = best_trials(trials(given))
    save_presets(Path("found.yaml"), preset_text(given, chosen))
    assert list(read_yaml(Path("found.yaml"))) == [NAME]
    for arch, each in chosen.items():
        tree = preset("reverse", arch, f"found.yaml:{NAME}")
        named = {"task": "reverse", "arch": arch, "data": {"split": "short"}}
        assert resolve(merge(tree, named, {"eval": {"max_examples": 24}})) == each.trial.config
        assert "eval" not in tree, "how trials were judged is no setting of the architecture"
    told = read_yaml(Path("found.yaml"))[NAME]["cnn"]["about"]
    for part in ("of 2 by random search, 20 steps each, 1 seed (0)", "model.kernel=[3, 5]", "0.0001..0.01:log"):
        assert part in told
    assert f"exact match {100 * chosen['cnn'].exact_match:.1f} %, loss {chosen['cnn'].loss:.4f}" in told
    assert tfstudy("config", "reverse", "--arch", "cnn", "--preset", f"found.yaml:{NAME}") == 0
    assert f"kernel: {chosen['cnn'].trial.config.model.kernel} " in capsys.readouterr().out


def test_a_preset_keeps_data_and_evaluation_settings_of_its_base_preset(monkeypatch):
    told = {"default": {"lstm": {"data": {"seed": 3}, "eval": {"checkpoint": "best"}, "model": {"layers": 2}}}}
    monkeypatch.setattr("tfstudy.config.presets.presets", lambda task: told)
    given = plan_search(request(archs=("lstm",)))
    found = sections(given, make_trial(given, "lstm", 0, {"model.dropout": 0.3}))
    assert found["data"] == {"seed": 3}
    assert found["eval"] == {"checkpoint": "best"}
    assert (found["model"]["layers"], found["model"]["dropout"]) == (2, 0.3)
    assert found["train"]["steps"] == 20


def test_an_existing_preset_file_is_archived(capsys):
    for text in ("a: 1", "a: 1", "a: 2", "a: 3"):
        save_presets(Path("found.yaml"), text)
    assert [Path(f"found{part}.yaml").read_text() for part in (".old-1", ".old-2", "")] == ["a: 1", "a: 2", "a: 3"]


def test_diverged_trials_are_the_worst_and_do_not_stop_the_search():
    scores = trials(plan_search(request("train.learning_rate=[1e-3, 1e30]", archs=("lstm",), trials=5)))
    assert {each.status for each in scores} == {"finished", "diverged"}
    assert best_trials(scores)["lstm"].trial.values["train.learning_rate"] == 1e-3
    assert min(scores, key=lambda each: each.value).status == "diverged"


def test_a_search_with_a_failed_trial_has_no_best():
    with pytest.raises(IncompleteSearchError):
        run_search(plan_search(request()), Path("results/tuning"), "reverse", lambda _: False)


def test_trials_are_no_study_among_results(capsys):
    trials(plan_search(request(archs=("lstm",), trials=1)))
    assert (studies(Path("results")), list(find_runs(Path("results")))) == ([], [])
    assert len(list(find_runs(Path("results/tuning")))) == 1
    assert tfstudy("run", "reverse", "--study", "tuning") == 2
    assert "'tuning'" in capsys.readouterr().err


def test_tables_refuse_trials(capsys):
    trials(plan_search(request(archs=("lstm",), trials=1)))
    assert tfstudy("table", "reverse", "--results", "results/tuning") == 2
    assert "trial" in capsys.readouterr().err


def test_evaluate_refuses_the_test_sets_of_a_trial(capsys):
    [each] = trials(plan_search(request(archs=("lstm",), trials=1)))
    assert tfstudy("evaluate", each.path) == 0
    assert tfstudy("evaluate", each.path, "--test-set", "test") == 2
    assert "'test'" in capsys.readouterr().err
    assert tfstudy("evaluate", each.path, "--extend") == 2
    assert not (each.path / "test_reads.csv").exists()


def test_a_run_is_not_used_as_a_trial_nor_a_trial_as_a_run():
    [each] = trials(plan_search(request(archs=("lstm",), trials=1)))
    plain = RunOptions(accelerator="cpu")
    with pytest.raises(UserError, match="trial"):
        experiment.run(each.trial.config, Path("results/tuning"), "reverse", plain)
    experiment.run(each.trial.config, Path("results"), "reverse", plain, report=lambda _: None)
    with pytest.raises(UserError, match="trial"):
        trials(plan_search(request(archs=("lstm",), trials=1)), Path("results"))
    [path] = find_runs(Path("results"))
    with pytest.raises(UserError, match="not a trial"):
        score(each.trial, path)
