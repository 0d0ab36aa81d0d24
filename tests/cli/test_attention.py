"""`tfstudy attention`: a summary, a figure and JSON."""

import json
import shutil
from pathlib import Path

import pytest

import tfstudy as package
from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import command
from tfstudy import tasks
from tfstudy.runs.reader import read_test_reads


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


@pytest.fixture
def finished(undisturbed, tmp_path, capsys):
    """`finished(arch, *more)`: the folder of a finished run, a copy for the test."""

    def finished(arch: str = "transformer", *more: str) -> Path:
        run = undisturbed(command(arch, *more))
        capsys.readouterr()
        return Path(shutil.copytree(run, tmp_path / run.name))

    return finished


def test_the_table_has_the_most_attended_source_token_of_each_output_token(finished, capsys):
    run = finished()
    reads = read_test_reads(run)
    assert tfstudy("attention", run, "a b", "--target", "b a") == 0
    title, head, *rows = capsys.readouterr().out.splitlines()
    assert title == "cross-attention: the token with the largest weight, mean of 4 heads"
    assert head.split() == ["output", "layer", "1", "layer", "2"]
    assert [row.split()[:2] for row in rows] == [["1", "b"], ["2", "a"], ["3", "<eos>"]]
    weights = package.load(run).attention("a b", "b a").weights["cross"][0].mean(0)[0]
    best = int(weights.argmax())
    assert rows[0].split()[2:5] == [str(best + 1), ["a", "b", "<eos>"][best], f"{weights[best]:.2f}"]
    assert read_test_reads(run) == reads


def test_the_default_output_is_the_prediction(finished, capsys):
    run = finished("lstm")
    assert tfstudy("predict", run, "a b c") == 0
    predicted = capsys.readouterr().out.split()
    assert tfstudy("attention", run, "a b c", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["output"] in (predicted, [*predicted, "<eos>"])
    assert found["source"] == ["a", "b", "c", "<eos>"]
    assert [(m["kind"], m["layer"], m["head"]) for m in found["maps"]] == [("cross", 1, 1)]


def test_a_figure_is_drawn(finished, capsys):
    assert tfstudy("attention", finished(), "a b", "--kind", "encoder", "--head", "2", "--out", "maps.svg") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "maps.svg"
    assert "Encoder self-attention" in Path("maps.svg").read_text()


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["a x"], ["source token 'x'", "a, b, c"]),
        (["a", "--target", "a y"], ["target token 'y'", "a, b, c"]),
        (["a", "--kind", "corss"], ["'corss'", "did you mean 'cross'?"]),
        (["a", "--layer", "3"], ["layer must be one of 1, 2, but is 3"]),
        (["a", "--head", "9"], ["head must be one of 1, 2, 3, 4, but is 9"]),
        (["a", "--out", "maps.jpg"], ["'.jpg'", ".png, .svg, .pdf"]),
        (["a", "--format", "yaml"], ["'yaml'", "text, json"]),
    ],
)
def test_bad_input_is_answered_in_one_line(finished, words, facts, capsys):
    run = finished()
    assert tfstudy("attention", run, *words) == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if "loading" not in line]
    assert all(fact in line for fact in facts)


def test_a_kind_that_the_architecture_lacks_is_answered_with_those_that_it_has(finished, capsys):
    assert tfstudy("attention", finished("lstm"), "a", "--kind", "decoder") == 2
    assert "no decoder attention, only cross" in capsys.readouterr().err


def test_a_model_without_attention_is_answered_in_one_line(finished, capsys):
    run = finished("lstm", "--set", "model.attention=none")
    assert tfstudy("attention", run, "a b", "--out", "maps.png") == 2
    assert "needs attention" in capsys.readouterr().err
    assert not Path("maps.png").exists()
