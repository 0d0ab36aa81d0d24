"""A new task or architecture is one file; one that breaks its contract is refused with one message before training."""

import json
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_task import ARCHITECTURE, LETTERS, write

TINY = ("train.steps=2", "train.warmup_steps=1", "train.batch_size=4", "model.dim=8")
RUN = ("run", "--accelerator", "cpu", *(word for one in TINY for word in ("--set", one)))
pytestmark = pytest.mark.usefixtures("empty_folder")


def refused(words, capsys) -> str:
    assert tfstudy(*words) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert not Path("results").exists()
    return error


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ('"test": "ij"', '"test": ""', "task mine: split 'test' has no examples"),
        ('"train", None', '"train", "validation"', "task mine: split 'validation' has no examples"),
        ("((a,), (a,)", "(a, (a,)", "split 'train': source must be a tuple of tokens, but is a str"),
        (
            '{"length": 1}',
            '{"length": [1]}',
            "a tag must be an integer or text of at most 200 characters",
        ),
        ('{"length": 1}', "{a: 1}", "split 'train': one example has the tags ['a'], another ['b']"),
    ],
)
def test_splits_that_no_run_can_use_are_refused(old, new, fact, tmp_path, capsys):
    changed = LETTERS.replace(old, new).replace('"test": "ij"}', '"test": "ij", "validation": ""}')
    plugin = write(tmp_path, "mine", changed)
    for command in (RUN, ("grid", "--seed", "0-1", "--task")):
        assert fact in refused([*command, "mine", "--plugin", plugin], capsys)


def test_a_misspelt_method_is_named(tmp_path, capsys):
    for name, text, method, words in (
        ("mine", LETTERS, "examples", ("mine",)),
        ("bag", ARCHITECTURE, "decode_padded", ("copying", "--arch", "bag")),
    ):
        plugin = write(tmp_path, name, text.replace(f"def {method}(", "def misspelt("))
        assert f"in {plugin} must define {method}" in refused([*RUN, *words, "--plugin", plugin], capsys)


@pytest.mark.parametrize(
    ("output", "fact"),
    [
        ("self.output(x)", "but returned a tensor of shape (2, 2, "),
        ("x, state", "but returned a tensor of shape (2, 2, 8) and BagState"),
        ("None", "but returned NoneType"),
    ],
)
def test_what_decode_must_return_is_said_when_it_returns_something_else(output, fact, tmp_path, capsys):
    plugin = write(tmp_path, "bag", ARCHITECTURE.replace("return self.output(x), state", f"return {output}"))
    sizes = ("--set", "data.train_examples=20", "--set", "data.eval_examples=5")
    message = refused([*RUN, "copying", "--arch", "bag", *sizes, "--plugin", plugin], capsys)
    assert "logits of shape (rows, length, target_vocab)" in message
    assert "tfstudy.testing.check_architecture" in message
    assert fact in message


@pytest.mark.parametrize("state", ["{'mean': state.mean}", "BagState(state.mean.T)"])
def test_a_state_that_generation_could_not_continue_is_refused_before_training(state, tmp_path, capsys):
    plugin = write(tmp_path, "bag", ARCHITECTURE.replace("self.output(x), state", f"self.output(x), {state}"))
    message = refused([*RUN, "copying", "--arch", "bag", "--plugin", plugin], capsys)
    assert "architecture bag: the state that decode_padded returned cannot be continued with its last row" in message


def test_test_sources_that_are_also_in_train_are_a_warning_on_screen_in_the_log_and_in_tables(tmp_path, capsys):
    remarks = '    def remarks(self):\n        return ["left out of train: 2 letters"]\n\n    def examples('
    text = LETTERS.replace('"test": "ij"', '"test": "aij"').replace("    def examples(", remarks)
    leak = write(tmp_path, "leak", text)
    assert tfstudy(*RUN, "leak", "--arch", "lstm", "--set", "model.hidden=8", "--plugin", leak) == 0
    warning = "WARNING: 1 of 3 examples of test have a source that is also in train"
    assert warning in capsys.readouterr().err
    [log] = Path("results").glob("runs/*/*/*/train.log")
    assert warning in log.read_text()
    assert "left out of train: 2 letters\n" in log.read_text()
    assert tfstudy("table", "runs", "--format", "md", "--plugin", leak) == 0
    assert "WARNING: held-out examples whose source occurs in training: 1" in capsys.readouterr().out


def test_a_score_of_its_own_is_the_main_metric_and_exact_match_stands_beside_it(tmp_path, capsys):
    score = (
        "def score(self, predictions, examples):\n        return {'ended': sum(len(p) < 3 for p in predictions) / 2}"
    )
    mine = write(tmp_path, "mine", f"{LETTERS}\n    {score}\n")
    assert tfstudy(*RUN, "mine", "--arch", "lstm", "--set", "model.hidden=8", "--plugin", mine) == 0
    assert "ended" in capsys.readouterr().out
    for more, metric in (((), "ended"), (("--metric", "exact_match"), "exact_match")):
        assert tfstudy("table", "runs", "--plugin", mine, "--format", "json", *more) == 0
        [row] = json.loads(capsys.readouterr().out)["rows"]
        assert row["metric"] == metric
        assert row["mean"] is not None
