"""Searches and `tfstudy tune`: equal budgets, the best trials, and what separates trials from runs."""

import contextlib
import math
import shutil
from pathlib import Path

import pytest

from tests.commands import refused, tfstudy
from tests.example_records import edit_result
from tests.example_task import TASK, added
from tfstudy import tasks
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import merge, read_yaml
from tfstudy.errors import UserError
from tfstudy.experiment import run as experiment
from tfstudy.experiment.api import RunOptions, compose_config
from tfstudy.runs.find import find_runs, studies
from tfstudy.runs.store import open_run, read_result
from tfstudy.tuning.search import (
    NAME,
    Search,
    SearchRequest,
    Trial,
    TrialScore,
    best_trials,
    make_trial,
    plan_search,
    preset_yaml,
    run_search,
    save_presets,
    score,
    use_of,
)

pytestmark = pytest.mark.usefixtures("empty_folder")
ROOT = Path("results/tuning")
SMALL = ("train.validation_interval=10", "train.log_interval=5", "train.batch_size=8", "eval.max_examples=24")
WIDTHS = {"lstm": "lstm.model.hidden=16", "cnn": "cnn.model.channels=16"}


def request(*searches, **more) -> SearchRequest:
    """A search that takes seconds."""
    given = {"archs": ("lstm", "cnn"), "trials": 2, "budget": 20} | more
    small = (*SMALL, "model.dim=16", *(WIDTHS[arch] for arch in given["archs"]))
    return SearchRequest("reverse", searches=searches, assignments=small, **given)


def trials(plan: Search, root: Path = ROOT) -> list[TrialScore]:
    """The trials of a search, run in this process."""

    def executed(planned) -> bool:
        options = RunOptions(accelerator="cpu", tuning=True)
        for run in planned:
            experiment.run(run.config, root, "reverse", options, report=lambda _: None)
        return True

    return run_search(plan, root, "reverse", executed)


SEARCHED = ("train.learning_rate=1e-4..1e-2:log", "model.layers=1..2", "cnn.model.kernel=[3,5]")


@pytest.fixture(scope="module", autouse=True)
def _reverse(tmp_path_factory):
    with added(tasks, "reverse", TASK, tmp_path_factory.mktemp("tasks")):
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """The results of a search with two trials for each of two architectures."""
    folder = tmp_path_factory.mktemp("searched")
    with contextlib.chdir(folder):
        trials(plan_search(request(*SEARCHED)))
    return folder / "results"


@pytest.fixture
def scores(results) -> list[TrialScore]:
    """Its trials, in a copy of the results in the working folder."""
    shutil.copytree(results, "results")
    return trials(plan_search(request(*SEARCHED)))


def test_the_best_trial_has_the_lowest_loss_whatever_its_exact_match_then_the_first_name():
    given = [
        TrialScore(Trial(arch, 1, {}, {}, None), Path(name), "finished", exact, loss, 100)
        for arch, exact, loss, name in (
            ("lstm", 0.9, 0.1, "b"),
            ("lstm", 0.8, 0.1, "a"),
            ("lstm", 1.0, 0.3, "c"),
            ("lstm", 1.0, math.inf, "0"),
            ("cnn", 0.0, 3.0, "z"),
            ("gru", 1.0, math.inf, "never measured"),
        )
    ]
    for turn in range(len(given)):
        chosen = best_trials(given[turn:] + given[:turn])
        assert {arch: each.path.name for arch, each in chosen.items()} == {"lstm": "a", "cnn": "z"}


def test_every_architecture_has_the_same_budget_and_no_test_set_is_evaluated(scores):
    assert [each.trial.arch for each in scores] == ["lstm", "cnn"] * 2
    assert {each.trial.config.train.steps for each in scores} == {20}
    for key in ("train.learning_rate", "model.layers"):
        lstm, cnn = ([s.trial.values[key] for s in scores if s.trial.arch == arch] for arch in ("lstm", "cnn"))
        assert lstm == cnn
    for each in scores:
        result = read_result(each.path)
        assert result.tuning is True
        assert list(result.splits) == ["validation"]
        assert [path.name for path in (each.path / "predictions").iterdir()] == ["validation.jsonl.gz"]
        assert open_run(each.path).test_reads == {}
        assert math.isfinite(each.loss)


def test_a_trial_that_diverged_is_never_the_best(scores):
    best = best_trials(scores)["lstm"]
    edit_result(best.path, status="diverged", reason="the loss is not finite")
    assert best_trials(trials(plan_search(request(*SEARCHED))))["lstm"].path != best.path


def test_the_same_search_again_trains_nothing_and_can_be_extended(scores, monkeypatch):
    trained = []
    train = experiment.train
    monkeypatch.setattr(experiment, "train", lambda *given: trained.append(1) or train(*given))
    assert trials(plan_search(request(*SEARCHED))) == scores
    assert trained == []
    assert trials(plan_search(request(*SEARCHED, trials=3)))[:4] == scores
    assert len(trained) == 2


def test_the_preset_of_the_best_trial_gives_its_config(scores):
    given = plan_search(request(*SEARCHED))
    chosen = best_trials(scores)
    for text in ("a: 1", "a: 1", preset_yaml(given, chosen)):
        save_presets(Path("found.yaml"), text)
    assert Path("found.old-1.yaml").read_text() == "a: 1", "another file of this name is kept"
    assert not Path("found.old-2.yaml").exists()
    for arch, each in chosen.items():
        tree = preset("reverse", arch, f"found.yaml:{NAME}")
        named = {"task": "reverse", "arch": arch, "data": {"split": "short"}}
        assert resolve(merge(tree, named, {"eval": {"max_examples": 24}})) == each.trial.config
        assert "eval" not in tree, "how trials were judged is no setting of the architecture"
    assert use_of(given, {"cnn": chosen["cnn"]}).startswith(
        "tfstudy run reverse --split short --arch cnn --preset FILE:"
    )
    told = read_yaml(Path("found.yaml"))[NAME]["cnn"]["about"]
    for part in ("of 2 by random search, 20 steps each, 1 seed (0)", "model.kernel=[3, 5]", "0.0001..0.01:log"):
        assert part in told
    assert f"exact match {100 * chosen['cnn'].exact_match:.1f} %, loss {chosen['cnn'].loss:.4f}" in told


def test_an_architecture_without_a_preset_is_searched_at_the_size_that_a_run_gives_it():
    rate, given = ("train.learning_rate=1e-4..1e-2:log",), ("data.seed=1", *SMALL)
    search = plan_search(SearchRequest("reverse", ("mingru",), trials=1, budget=20, searches=rate, assignments=given))
    trial = make_trial(search, "mingru", 0)
    assert trial.config.model == compose_config("reverse", "mingru", "default", {"data": {"seed": 1}}).model
    assert "--set data.seed=1" in use_of(search, {"mingru": TrialScore(trial, Path(), "finished", 1.0, 0.1, 1)})


def test_trials_are_no_study_and_their_test_sets_stay_unread(scores, capsys):
    assert (studies(Path("results")), list(find_runs(Path("results")))) == ([], [])
    assert len(list(find_runs(ROOT))) == 4
    path = scores[0].path
    assert tfstudy("evaluate", path) == 0
    for words, fact in {
        ("run", "reverse", "--study", "tuning"): "'tuning'",
        ("table", "reverse", "--results", "results/tuning"): "trial",
        ("evaluate", path, "--test-set", "test"): "'test'",
    }.items():
        assert tfstudy(*words) == 2
        assert fact in capsys.readouterr().err
    assert open_run(path).test_reads == {}


def test_a_run_is_not_used_as_a_trial_nor_a_trial_as_a_run_and_a_failed_one_ends_the_search(scores):
    plain = RunOptions(accelerator="cpu")
    config = scores[0].trial.config
    with pytest.raises(UserError, match="trial"):
        experiment.run(config, ROOT, "reverse", plain)
    assert run_search(plan_search(request()), ROOT, "reverse", lambda _: False) == []
    experiment.run(config, Path("results"), "reverse", plain, report=lambda _: None)
    with pytest.raises(UserError, match="trial"):
        trials(plan_search(request(*SEARCHED)), Path("results"))
    [path] = find_runs(Path("results"))
    with pytest.raises(UserError, match="not a trial"):
        score(scores[0].trial, path)


def test_the_command_runs_trials_in_processes_and_saves_a_preset(capfd):
    small = ("data.train_examples=100", "data.test_length=11-12", *SMALL)
    words = ["tune", "copying", "--arch", "lstm,cnn", "--trials", 1, "--budget", 20, "--match-params", 9000]
    words += [word for text in small for word in ("--set", text)]
    assert tfstudy(*words, "--accelerator", "cpu") == 0
    out = capfd.readouterr().out
    assert out.startswith("searched for lstm, cnn:\n  train.learning_rate=0.0001..0.01:log\n")
    assert "2 runs to start, 0 already finished" in out
    assert "[2/2]" in out
    assert "--arch lstm --set data.train_examples=100 --set data.test_length=11-12 --preset results/tuning/" in out
    text = Path("results/tuning/copying-copy/preset.yaml").read_text()
    counts = [read_result(path).parameters for path in find_runs(ROOT)]
    assert len(counts) == 2
    assert all(abs(count - 9000) <= 450 for count in counts)
    assert [path.name for path in Path("results").iterdir()] == ["tuning"]
    assert tfstudy(*words, "--accelerator", "cpu", "--out", "mine.yaml") == 0
    assert "0 runs to start, 2 already finished" in capfd.readouterr().out
    assert Path("mine.yaml").read_text() == text


def test_invalid_input_is_one_line_with_exit_code_2_before_anything_starts(capsys):
    for given, message in {
        "--trials 99999999999": "--trials must be from 1 to 10,000",
        "--study ../x": "--study must be the name of a folder",
        "--out .": "--out must be a file, but '.' is none",
        "--out /dev/null/x/preset.yaml": "--out: can't write '/dev/null/x/preset.yaml': Not a directory",
        "--arch lstm,,": "--arch must name at least one architecture",
        "--split alone": "validation split",
        "--budget 20": "--budget 20 is less than train.validation_interval 500",
        "--set lstm.train.steps=9": "train.steps must be the same",
        "--set seed=9": "'seed'",
        "--search train.lerning_rate=1e-4..1e-2": "did you mean 'train.learning_rate'?",
        "--search model.kernel=1..3": "cnn (with transformer and 1 more)",
        "--arch lstm --search cnn.model.kernel=1..3": "'cnn.model.kernel=1..3'",
        "--arch lstm,cnn --search cnn.model.kernel=1..3": "every --search is for another architecture (with lstm)",
        "--search trian.gradient_clip_norm=1..2": "did you mean 'train'?",
        "--search train.steps=1..2": "'train.steps'",
        "--search model.dim=8..16 --match-params 9000": "--match-params",
        "--set cnn.model.channels=16 --match-params 9000": "--set can't include 'model.channels' (with cnn)",
        "--search model.dim=8..16 --search width=1..2": "'width'",
        "--arch lstm --match-params 10": "no widths of lstm give 10 parameters",
        "--preset found.yaml:tuned": "No such file or directory",
    }.items():
        assert message in refused(capsys, "tune", "reverse", *given.split())
