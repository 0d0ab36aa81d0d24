"""Tuning: equal budgets, judged on the validation split alone, and found again by the same command."""

import math
from pathlib import Path
from statistics import median

import pytest
import torch

import tasks
from tasks.errors import UserError
from tests.commands import tfstudy
from tests.example_task import TASK, added
from tfstudy import models
from tfstudy.config.files import read_yaml
from tfstudy.config.presets import preset
from tfstudy.config.resolve import merge, resolve
from tfstudy.experiment import run as experiment
from tfstudy.experiment.options import RunOptions
from tfstudy.models.base import parameter_count
from tfstudy.runs.reader import find_runs, read_result
from tfstudy.tuning import samplers, search, space
from tfstudy.tuning.best_presets import NAME, best, keep, preset_text, sections
from tfstudy.tuning.space import Choice, Range, draw, parse

SMALL = (
    "train.validation_interval=10",
    "train.log_interval=5",
    "train.batch_size=8",
    "model.dim=16",
    "eval.max_examples=24",
)
WIDTHS = {"lstm": "lstm.model.hidden=16", "cnn": "cnn.model.channels=16"}


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def words(*searches, **more) -> search.Words:
    """A search of some seconds."""
    given = {"archs": ("lstm", "cnn"), "trials": 2, "budget": 20} | more
    small = (*SMALL, *(WIDTHS[arch] for arch in given["archs"]))
    return search.Words("reverse", searches=searches, assignments=small, **given)


def made(given: search.Search, root: Path = Path("results-tuning")) -> list[search.Score]:
    """The trials of a search, made in this process."""

    def work(planned) -> bool:
        options = RunOptions(accelerator="cpu", tuning=True)
        for cell, _ in planned:
            experiment.run(cell.config, root, "reverse", options, say=lambda _: None)
        return True

    return search.make(given, root, "reverse", work)


# The space


def test_a_search_is_said_as_a_range_or_a_list():
    assert parse("train.learning_rate=1e-4..1e-2:log") == ("train.learning_rate", Range(1e-4, 1e-2, True, False))
    assert parse("model.layers=1..4") == ("model.layers", Range(1, 4, False, True))
    assert parse("model.dropout=0..0.5") == ("model.dropout", Range(0, 0.5, False, False))
    assert parse("width=1..2") == ("width", Range(1, 2, False, False)), "a factor is no whole number"
    assert parse("train.gradient_clip_norm=[1e-3, 2]") == ("train.gradient_clip_norm", Choice((0.001, 2))), (
        "YAML takes 1e-3 for a word"
    )
    assert parse("model.norm=[pre, post, pre]") == ("model.norm", Choice(("pre", "post")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model.dim", "must be KEY=LOW..HIGH, KEY=LOW..HIGH:log or KEY=[A,B,...], but is 'model.dim'"),
        ("model.dim=[]", "must be KEY=LOW..HIGH"),
        ("model.dim=[[1]]", "must be KEY=LOW..HIGH"),
        ("=1..2", "must be KEY=LOW..HIGH"),
        ("model.dim=1..2:lin", "must be KEY=LOW..HIGH"),
        ("model.dim=1..two", "must range over numbers"),
        ("model.dim=1..inf", "must range over numbers"),
        ("model.dim=4..2", "the low end must be at most the high end, but is '4..2'"),
        ("train.learning_rate=0..1:log", "the low end must be above 0"),
        ("width=0..1", "the low end must be above 0"),
    ],
)
def test_what_is_no_search_is_refused(text, message):
    with pytest.raises(UserError) as error:
        parse(text)
    assert message in str(error.value)


def test_draws_are_a_pure_function_of_seed_index_and_key():
    one = dict(map(parse, space.DEFAULT))
    more = one | dict([parse("model.layers=1..4")])
    for index in range(20):
        values = draw(more, 3, index)
        assert {key: values[key] for key in one} == draw(one, 3, index)
        assert values != draw(more, 4, index)
        assert values != draw(more, 3, index + 1)


def test_draws_fill_their_range_on_its_scale_and_never_leave_it():
    kinds = dict(map(parse, ("a=1e-4..1e-2:log", "b=1..4", "c=[x,y]", "d=0.0..0.4", "e=1..100:log", "f=2..2")))
    rows = [draw(kinds, 0, i) for i in range(2000)]
    assert median(row["a"] for row in rows) == pytest.approx(1e-3, rel=0.15)
    assert median(row["e"] for row in rows) == pytest.approx(10, abs=2)
    assert {row["b"] for row in rows} == {1, 2, 3, 4}
    assert {row["c"] for row in rows} == {"x", "y"}
    assert {row["f"] for row in rows} == {2}
    for key, (low, high) in {"a": (1e-4, 1e-2), "d": (0, 0.4), "e": (1, 100)}.items():
        assert min(row[key] for row in rows) >= low
        assert max(row[key] for row in rows) <= high
    assert all(isinstance(row["b"], int) for row in rows), "a whole number stays one"


def test_what_is_said_of_one_architecture_goes_to_it_alone():
    texts = ["model.dim=8", "cnn.model.kernel=5", "lstm.model.hidden=9"]
    assert space.own(texts, "cnn", ("lstm", "cnn")) == ["model.dim=8", "model.kernel=5"]
    assert space.own(texts, "lstm", ("lstm", "cnn")) == ["model.dim=8", "model.hidden=9"]


def test_named_widths_or_a_number_of_parameters_take_the_place_of_the_common_width():
    base = {"task": "reverse", "arch": "lstm", "data": {"split": "short"}}
    usual = {"train.learning_rate", "model.dropout"}
    assert set(space.space_of([], base, False)) == usual | {"width"}
    assert set(space.space_of(["model.hidden=8..16"], base, False)) == usual | {"model.hidden"}
    assert set(space.space_of([], base, True)) == usual
    assert space.space_of(["model.dropout=[0.5]"], base, True)["model.dropout"] == Choice((0.5,))


@pytest.mark.parametrize("arch", models.names())
@pytest.mark.parametrize("wanted", [50_000, 300_000])
def test_matched_models_have_the_wanted_parameters_within_5_per_cent(arch, wanted):
    config = resolve(merge(preset("copying", arch), {"task": "reverse", "arch": arch, "data": {"split": "short"}}))
    widths = space.matched(config, (12, 9), wanted)
    kind = models.find(arch)
    with torch.device("meta"):
        count = parameter_count(kind(kind.Config(**config.model.model_dump() | widths), 12, 9))
    assert abs(count - wanted) <= 0.05 * wanted


@pytest.mark.parametrize("factor", [0.5, 0.7, 1, 1.9])
def test_scaled_widths_fit_the_heads(factor):
    config = resolve({"task": "reverse", "arch": "transformer", "data": {"split": "short"}, "model": {"heads": 8}})
    widths = space.scaled(config, factor)
    assert widths["dim"] % 16 == 0
    assert widths["dim"] == pytest.approx(128 * factor, abs=8)
    assert widths["feedforward"] == pytest.approx(256 * factor, abs=2)


# The choice


def scored(arch: str, exact: float, loss: float, name: str, status: str = "finished") -> search.Score:
    return search.Score(search.Trial(arch, 1, {}, {}, None), Path(name), status, exact, loss, 100, 1.0)


def test_the_best_has_the_highest_exact_match_then_the_lowest_loss_then_the_first_name():
    scores = [
        scored("lstm", 0.9, 0.1, "d"),
        scored("lstm", 1.0, 0.3, "c"),
        scored("lstm", 1.0, 0.2, "b"),
        scored("lstm", 1.0, 0.2, "a"),
        scored("lstm", 1.0, math.inf, "0"),
        scored("lstm", 0.0, 0.0, "00", "diverged"),
        scored("cnn", 0.0, 3.0, "z"),
    ]
    for turn in range(len(scores)):
        chosen = best(scores[turn:] + scores[:turn])
        assert {arch: each.path.name for arch, each in chosen.items()} == {"lstm": "a", "cnn": "z"}
    ranks = sorted(scores[:6], key=lambda each: -each.value)
    assert [each.path.name for each in ranks] in (["b", "a", "c", "0", "d", "00"], ["a", "b", "c", "0", "d", "00"])


def test_an_architecture_whose_trials_all_diverged_has_no_best():
    assert best([scored("lstm", 0.0, math.inf, "a", "diverged")]) == {}


# A search, made


def test_every_architecture_has_the_same_budget_and_no_test_split_is_read():
    scores = made(search.search_of(words("model.layers=1..2")))
    assert [each.trial.arch for each in scores] == ["lstm", "cnn"] * 2
    assert {each.trial.config.train.steps for each in scores} == {20}
    rates = [
        [s.trial.values["train.learning_rate"] for s in scores if s.trial.arch == arch] for arch in ("lstm", "cnn")
    ]
    assert rates[0] == rates[1]
    for each in scores:
        result = read_result(each.path)
        assert result["tuning"] is True
        assert result["test_reads"] == {}
        assert list(result["splits"]) == ["validation"]
        assert [path.name for path in (each.path / "predictions").iterdir()] == ["validation.jsonl.gz"]
        assert not (each.path / "test_reads.csv").exists()
        assert math.isfinite(each.loss)


def test_the_same_search_again_trains_nothing_and_more_trials_go_on(monkeypatch):
    first = made(search.search_of(words()))
    trained = []
    train = experiment.train
    monkeypatch.setattr(experiment, "train", lambda *given: trained.append(1) or train(*given))
    assert made(search.search_of(words())) == first
    assert trained == []
    assert made(search.search_of(words(trials=3)))[:4] == first
    assert len(trained) == 2


def test_the_preset_that_is_found_is_the_config_of_its_trial(capsys):
    given = search.search_of(words("cnn.model.kernel=[3,5]"))
    chosen = best(made(given))
    keep(Path("found.yaml"), preset_text(given, chosen))
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
    assert tfstudy("show", "reverse", "--arch", "cnn", "--preset", f"found.yaml:{NAME}") == 0
    assert f"kernel: {chosen['cnn'].trial.config.model.kernel} " in capsys.readouterr().out


def test_a_preset_keeps_what_its_own_preset_says_of_data_and_evaluation(monkeypatch):
    told = {"default": {"lstm": {"data": {"seed": 3}, "eval": {"checkpoint": "best"}, "model": {"layers": 2}}}}
    monkeypatch.setattr("tfstudy.config.presets.presets", lambda task: told)
    given = search.search_of(words(archs=("lstm",)))
    found = sections(given, search.trial_of(given, "lstm", 0, {"model.dropout": 0.3}))
    assert found["data"] == {"seed": 3}
    assert found["eval"] == {"checkpoint": "best"}
    assert (found["model"]["layers"], found["model"]["dropout"]) == (2, 0.3)
    assert found["train"]["steps"] == 20


def test_another_file_of_presets_that_is_there_is_set_aside(capsys):
    for text in ("a: 1", "a: 1", "a: 2", "a: 3"):
        keep(Path("found.yaml"), text)
    assert [Path(f"found{part}.yaml").read_text() for part in (".old-1", ".old-2", "")] == ["a: 1", "a: 2", "a: 3"]


def test_trials_that_diverge_are_the_worst_and_do_not_end_the_search():
    scores = made(search.search_of(words("train.learning_rate=[1e-3, 1e30]", archs=("lstm",), trials=5)))
    assert {each.status for each in scores} == {"finished", "diverged"}
    assert best(scores)["lstm"].trial.values["train.learning_rate"] == 1e-3
    assert min(scores, key=lambda each: each.value).status == "diverged"


def test_a_search_whose_run_could_not_be_made_chooses_nothing():
    with pytest.raises(search.UnequalError):
        search.make(search.search_of(words()), Path("results-tuning"), "reverse", lambda _: False)


# Trials and results are kept apart


def test_tables_refuse_trials(capsys):
    made(search.search_of(words(archs=("lstm",), trials=1)))
    assert tfstudy("table", "reverse", "--results", "results-tuning") == 2
    assert "left out, a trial of tuning" in capsys.readouterr().err


def test_evaluate_reads_no_test_split_of_a_trial(capsys):
    [each] = made(search.search_of(words(archs=("lstm",), trials=1)))
    assert tfstudy("evaluate", each.path) == 0
    assert tfstudy("evaluate", each.path, "--split", "test") == 2
    assert "'test'; expected one of: validation" in capsys.readouterr().err
    assert tfstudy("evaluate", each.path, "--extend") == 2
    assert not (each.path / "test_reads.csv").exists()


def test_a_run_does_not_pass_for_a_trial_nor_a_trial_for_a_run():
    [each] = made(search.search_of(words(archs=("lstm",), trials=1)))
    plain = RunOptions(accelerator="cpu")
    with pytest.raises(UserError, match="is a trial of tuning"):
        experiment.run(each.trial.config, Path("results-tuning"), "reverse", plain)
    experiment.run(each.trial.config, Path("results"), "reverse", plain, say=lambda _: None)
    with pytest.raises(UserError, match="is no trial of tuning"):
        made(search.search_of(words(archs=("lstm",), trials=1)), Path("results"))
    [path] = find_runs(Path("results"))
    with pytest.raises(UserError, match="it was scored on test splits"):
        search.score(each.trial, path)


# The command


def test_the_command_makes_trials_in_processes_of_their_own_and_leaves_a_preset(capfd):
    small = ("data.examples=100", "data.test_length=11-12", *SMALL, *WIDTHS.values())
    words = ["tune", "copying", "--arch", "lstm,cnn", "--trials", 1, "--budget", 20, "--match-params", 9000]
    words += [word for text in small for word in ("--set", text)]
    assert tfstudy(*words, "--accelerator", "cpu") == 0
    out = capfd.readouterr().out
    assert "2 trials to make, 0 done already" in out
    assert "[2/2]" in out
    text = Path("results-tuning/copying-copy/preset.yaml").read_text()
    assert text in out
    counts = [read_result(path)["parameters"] for path in find_runs(Path("results-tuning"))]
    assert len(counts) == 2
    assert all(abs(count - 9000) <= 450 for count in counts)
    assert not list(Path("results-tuning").glob("**/test_reads.csv"))
    assert not Path("results").exists()
    assert tfstudy(*words, "--accelerator", "cpu", "--out", "mine.yaml") == 0
    assert "0 trials to make, 2 done already" in capfd.readouterr().out
    assert Path("mine.yaml").read_text() == text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--trials 0", "--trials must be at least 1, but is 0"),
        ("--arch lstm,cnnn", "did you mean 'cnn'?"),
        ("--arch ,", "--arch must name at least one architecture"),
        ("--method optna", "tuning method 'optna'; expected one of: random, optuna; did you mean 'optuna'?"),
        ("--split shrot", "did you mean 'short'?"),
        ("--split alone", "tuning needs a validation split, but this experiment has none"),
        ("--budget 0", "'train.steps' must be greater than or equal to 1, but is '0'"),
        ("--set lstm.train.steps=9", "train.steps must be the same for every architecture, but is"),
        ("--set lstm.data.seed=9", "data must be the same for every architecture, but is"),
        ("--set seed=9", "--set can't give 'seed' here"),
        ("--search train.learning_rate=1e-2..1e-4", "the low end must be at most the high end"),
        ("--search train.lerning_rate=1e-4..1e-2", "'train.lerning_rate'; did you mean 'train.learning_rate'?"),
        ("--search model.kernel=1..3", "it belongs to the architecture cnn (transformer, lstm)"),
        ("--search transformer.model.kernel=1..3", "it belongs to the architecture cnn (transformer)"),
        ("--search model.dropout=0..1.5", "'model.dropout' must be less than 1, but is '1.5'"),
        ("--search widht=1..2", "did you mean 'width'?"),
        ("--arch lstm --search cnn.model.kernel=1..3", "'cnn.model.kernel=1..3' is of an architecture that --arch"),
        ("--search trian.gradient_clip_norm=1..2", "did you mean 'train'?"),
        ("--search train.steps=1..2", "--search can't range over 'train.steps'"),
        ("--search data.seed=1..2", "--search can't range over 'data.seed'"),
        ("--search model.dim=8..16 --match-params 9000", "--match-params decides the widths"),
        ("--search model.dim=8..16 --search width=1..2", "over 'width' or over single widths"),
        ("--arch lstm --match-params 10", "--match-params 10: no width of this lstm is within 5 % of it"),
        ("--preset found.yaml:tuned", "can't read found.yaml: No such file or directory"),
    ],
)
def test_a_mistake_is_one_line_with_exit_code_2_before_anything_starts(given, message, capsys):
    assert tfstudy("tune", "reverse", *given.split()) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not Path("results-tuning").exists()


# Optuna


def test_without_optuna_its_method_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(samplers, "find_spec", lambda name: None)
    assert tfstudy("tune", "reverse", "--method", "optuna") == 2
    assert capsys.readouterr().err == (
        "error: --method optuna: not installed here; install it with: pip install 'tfstudy[tune]'\n"
    )


class Counting(samplers.Sampler):
    """Proposes what depends on all that it was told."""

    def __init__(self, *_) -> None:
        self.told: list[float] = []

    round = 2

    def ask(self, count):
        return [{"train.learning_rate": 1e-3 * (1 + len(self.told) + i)} for i in range(count)]

    def tell(self, scores):
        self.told += scores


def test_a_method_that_learns_is_told_every_round_in_order_again(monkeypatch):
    one = Counting()
    monkeypatch.setattr(search, "sampler", lambda *_: one)
    given = search.search_of(words(archs=("lstm",), trials=5))
    first = made(given)
    assert [each.trial.values["train.learning_rate"] for each in first] == [1e-3, 2e-3, 3e-3, 4e-3, 5e-3]
    assert one.told == [each.value for each in first]
    one.told = []
    assert made(given) == first


def test_optuna_told_the_same_proposes_the_same():
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


def test_a_search_by_optuna_goes_on_where_it_was():
    pytest.importorskip("optuna")
    short = made(search.search_of(words(archs=("lstm",), trials=4, method="optuna")))
    assert made(search.search_of(words(archs=("lstm",), trials=6, method="optuna")))[:4] == short
