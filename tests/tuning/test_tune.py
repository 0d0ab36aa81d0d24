"""`tfstudy tune` from the command line."""

from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_search import SMALL
from tests.example_task import TASK, added
from tfstudy import tasks
from tfstudy.runs.find import find_runs
from tfstudy.runs.reader import read_result


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def test_the_command_runs_trials_in_processes_and_saves_a_preset(capfd):
    small = ("data.train_examples=100", "data.test_length=11-12", *(text for text in SMALL if "model.dim" not in text))
    words = ["tune", "copying", "--arch", "lstm,cnn", "--trials", 1, "--budget", 20, "--match-params", 9000]
    words += [word for text in small for word in ("--set", text)]
    assert tfstudy(*words, "--accelerator", "cpu") == 0
    out = capfd.readouterr().out
    assert out.startswith("searched for lstm, cnn:\n  train.learning_rate=0.0001..0.01:log\n")
    assert "2 trials to start, 0 already finished" in out
    assert "[2/2]" in out
    text = Path("results/tuning/copying-copy/preset.yaml").read_text()
    data = "--set data.train_examples=100 --set data.test_length=11-12"
    assert f"next: tfstudy run copying {data} --arch lstm --preset results/tuning/copying-copy/preset.yaml:tuned" in out
    counts = [read_result(path).parameters for path in find_runs(Path("results/tuning"))]
    assert len(counts) == 2
    assert all(abs(count - 9000) <= 450 for count in counts)
    assert not list(Path("results/tuning").glob("**/test_reads.csv"))
    assert [path.name for path in Path("results").iterdir()] == ["tuning"]
    assert tfstudy(*words, "--accelerator", "cpu", "--out", "mine.yaml") == 0
    assert "0 trials to start, 2 already finished" in capfd.readouterr().out
    assert Path("mine.yaml").read_text() == text
    finals = ("--final-trials", 1, "--final-seeds", 2)
    assert tfstudy(*words, "--accelerator", "cpu", "--out", "mine.yaml", *finals) == 0
    out = capfd.readouterr().out
    assert "2 trials to start, 0 already finished" in out
    assert "judged by the mean loss over 2 seeds" in out
    assert "the best of 1 trials by mean loss over 2 seeds (0-1)" in Path("mine.yaml").read_text()


def test_trials_of_one_process_have_the_losses_of_trials_alone():
    small = ["data.train_examples=100", "data.test_length=11-12", *(text for text in SMALL if "dim" not in text)]
    words = ["tune", "copying", "--arch", "lstm", "--trials", 2, "--budget", 10, "--accelerator", "cpu", "--quiet"]
    words += [word for text in [*small, "model.dim=16", "model.hidden=16"] for word in ("--set", text)]
    words += ["--search", "model.dropout=0..0.3", "--search", "train.learning_rate=1e-4..1e-2:log"]
    losses = {}
    for study, more in {"together": ("--cohort", 2), "alone": ()}.items():
        assert tfstudy(*words, "--study", study, *more) == 0
        paths = find_runs(Path("results/tuning") / study)
        losses[study] = {path.name: read_result(path).splits["validation"].metrics for path in paths}
    assert len(losses["alone"]) == 2
    assert losses["together"] == losses["alone"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--trials 0", "--trials"),
        ("--trials 99999999999", "--trials must be from 1 to 10,000"),
        ("--study ../x", "--study must be the name of a folder"),
        ("--study -x", "--study must be the name of a folder"),
        ("--out .", "--out must be a file, but '.' is none"),
        ("--out /dev/null/x/preset.yaml", "--out: can't write '/dev/null/x/preset.yaml': Not a directory"),
        ("--arch lstm,,", "--arch must name at least one architecture"),
        ("--arch lstm,cnnn", "did you mean 'cnn'?"),
        ("--arch ,", "--arch must name at least one architecture"),
        ("--method optna", "did you mean 'optuna'?"),
        ("--split shrot", "did you mean 'short'?"),
        ("--split alone", "validation split"),
        ("--budget 0", "'train.steps'"),
        ("--budget 20", "--budget 20 is less than train.validation_interval 500"),
        ("--set train.steps=20", "train.steps 20 is less than train.validation_interval 500"),
        ("--final-seeds 3", "--final-seeds needs --final-trials"),
        ("--cohort some", "--cohort must be auto or a number from 1 to 64"),
        ("--final-trials 21", "--final-trials must be from 0 to --trials (20), but is 21"),
        ("--set lstm.train.steps=9", "train.steps must be the same"),
        ("--set lstm.data.seed=9", "data must be the same"),
        ("--set seed=9", "'seed'"),
        ("--search train.learning_rate=1e-2..1e-4", "1e-2..1e-4"),
        ("--search train.lerning_rate=1e-4..1e-2", "did you mean 'train.learning_rate'?"),
        ("--search model.kernel=1..3", "cnn (transformer, lstm)"),
        ("--arch transformer --search transformer.model.kernel=1..3", "belongs to the architecture cnn"),
        ("--search model.dropout=0..1.5", "'1.5'"),
        ("--search widht=1..2", "did you mean 'width'?"),
        ("--arch lstm --search cnn.model.kernel=1..3", "'cnn.model.kernel=1..3'"),
        ("--arch lstm,cnn --search cnn.model.kernel=1..3", "every --search is for another architecture (lstm)"),
        ("--search trian.gradient_clip_norm=1..2", "did you mean 'train'?"),
        ("--search train.steps=1..2", "'train.steps'"),
        ("--search data.seed=1..2", "'data.seed'"),
        ("--search model.dim=8..16 --match-params 9000", "--match-params"),
        ("--arch lstm --set model.hidden=16 --match-params 9000", "--set can't include 'model.hidden'"),
        ("--set cnn.model.channels=16 --match-params 9000", "--set can't include 'model.channels' (cnn)"),
        ("--search model.dim=8..16 --search width=1..2", "'width'"),
        ("--arch lstm --match-params 10", "no widths of lstm give 10 parameters"),
        ("--preset found.yaml:tuned", "No such file or directory"),
    ],
)
def test_invalid_input_is_one_line_with_exit_code_2_before_anything_starts(given, message, capsys):
    assert tfstudy("tune", "reverse", *given.split()) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not Path("results/tuning").exists()
