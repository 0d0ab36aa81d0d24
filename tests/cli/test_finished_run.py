"""`tfstudy predict`, `result` and `evaluate`: the commands for a finished run."""

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
import torch

from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import command
from tfstudy import load, tasks
from tfstudy.runs.reader import read_predictions, read_test_reads


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


@pytest.fixture
def finished(finished_run, capsys) -> Path:
    """A finished run."""
    run = finished_run()
    capsys.readouterr()
    return run


def test_predict_prints_words_of_the_task(finished, capsys):
    assert tfstudy("predict", finished, "a b") == 0
    assert set(capsys.readouterr().out.split()) <= {"a", "b", "c"}
    assert tfstudy("predict", finished.name[-8:-3], " a  b ") == 0


def test_predict_repeats_the_recorded_predictions(finished, capsys):
    for row in read_predictions(finished, "test")[:3]:
        assert tfstudy("predict", finished, row.source) == 0
        assert capsys.readouterr().out == row.prediction + "\n"


@pytest.mark.parametrize(
    ("source", "facts"),
    [
        ("a x", ["reverse", "'x'", "a, b, c"]),
        ("  ", ["at least one token"]),
        ("<pad>", ["'<pad>'", "a, b, c"]),
        ("a <eos>", ["'<eos>'", "a, b, c"]),
    ],
)
def test_predict_refuses_an_invalid_source(source, facts, finished, capsys):
    assert tfstudy("predict", finished, source) == 2
    error = capsys.readouterr().err
    assert all(fact in error for fact in facts)
    assert error.count("\n") == 1


def stdin(monkeypatch, content: bytes = b"", terminal: bool = False) -> None:
    """Standard input has this content; with `terminal` as typed."""
    stream = io.TextIOWrapper(io.BytesIO(content))
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stdin", stream)


@pytest.mark.parametrize("way", [["--file", "-"], ["-"], [], ["--file", "sources.txt"], ["a b", "c"]])
def test_predict_reads_several_sources_and_prints_a_line_for_each(finished, way, capsys, monkeypatch):
    content = b"a b\r\nc\n"
    Path("sources.txt").write_bytes(content)
    run = load(finished)
    first, second = run.predict(["a b", "c"])
    assert (first, second) == (run.predict("a b"), run.predict("c"))
    for words, expected in (([], [f"a b -> {first}", f"c -> {second}"]), (["--format", "lines"], [first, second])):
        stdin(monkeypatch, content)
        assert tfstudy("predict", finished, *words, *way) == 0
        assert capsys.readouterr().out.splitlines() == expected


def test_an_empty_output_is_shown_as_such_except_in_lines(finished, capsys, monkeypatch):
    monkeypatch.setattr("tfstudy.experiment.finished.FinishedRun.predict", lambda self, sources: [""] * len(sources))
    for words, expected in {
        ("a",): "(empty)\n",
        ("a", "b c"): "a -> (empty)\nb c -> (empty)\n",
        ("a", "b c", "--format", "lines"): "\n\n",
    }.items():
        assert tfstudy("predict", finished, *words) == 0
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize("words", [["a"], ["a", "b c"]])
def test_an_output_with_line_breaks_is_one_line(words, finished, capsys, monkeypatch):
    monkeypatch.setattr("tfstudy.experiment.finished.FinishedRun.predict", lambda self, got: ["x\r\ny\nz"] * len(got))
    for format_ in ("text", "lines"):
        assert tfstudy("predict", finished, *words, "--format", format_) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == len(words)
        assert all(line.endswith("x y z") for line in lines)


def test_the_byte_order_mark_of_a_file_is_no_part_of_its_first_source(finished, tmp_path, capsys):
    outputs = []
    for mark in ("", "\ufeff"):
        (tmp_path / "sources.txt").write_text(f"{mark}a b\n", encoding="utf-8")
        assert tfstudy("predict", finished, "--file", tmp_path / "sources.txt", "--format", "json") == 0
        outputs.append(json.loads(capsys.readouterr().out)["predictions"])
    assert outputs[0] == outputs[1]


def test_errors_of_a_run_folder_need_no_folder_of_results(finished, tmp_path, capsys, monkeypatch):
    run = finished.resolve()
    monkeypatch.chdir(tmp_path)
    assert tfstudy("errors", run) == 0
    assert "correct" in capsys.readouterr().out


def test_predictions_of_many_sources_are_those_recorded_and_printed_in_order(finished, capsys, monkeypatch):
    monkeypatch.setattr("tfstudy.cli.finished.CHUNK", 7)
    rows = read_predictions(finished, "test")
    stdin(monkeypatch, "\n".join(row.source for row in rows).encode())
    assert tfstudy("predict", finished, "--format", "lines") == 0
    assert capsys.readouterr().out.splitlines() == [row.prediction for row in rows]


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (b"a b\nc\na x\n", ["line 3", "'x'", "a, b, c"]),
        (b"a b\n\nc\n", ["line 2", "at least one token"]),
        (b"a \xff\n", ["UTF-8"]),
        (b"", ["no source"]),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_printed(finished, content, facts, capsys, monkeypatch):
    Path("sources.txt").write_bytes(content)
    for words in (["--file", "sources.txt"], []):
        stdin(monkeypatch, content)
        assert tfstudy("predict", finished, *words) == 2
        out, error = capsys.readouterr()
        assert out == ""
        assert all(fact in error for fact in [*facts, "sources.txt" if words else "standard input"])
        assert error.count("\n") == 1


def test_predict_refuses_what_it_can_not_read(finished, capsys, monkeypatch):
    stdin(monkeypatch, terminal=True)
    refused = {
        "can't read 'missing.txt'": ["--file", "missing.txt"],
        "can't read '.'": ["--file", "."],
        "can't be combined": ["a", "--file", "missing.txt"],
        "did you mean 'json'? Expected one of: text, lines, json": ["a", "--format", "jsonl"],
        "--format json needs sources": ["--format", "json"],
    }
    for fact, words in refused.items():
        assert tfstudy("predict", finished, *words) == 2
        assert fact in capsys.readouterr().err


def test_on_a_terminal_predict_asks_for_sources_until_the_end_of_input(finished, capsys, monkeypatch):
    stdin(monkeypatch, b"a b\n\na x\nc\n", terminal=True)
    assert tfstudy("predict", finished) == 0
    captured = capsys.readouterr()
    run = load(finished)
    assert captured.out.replace("> ", "").split("\n")[:2] == [run.predict("a b"), run.predict("c")]
    assert "source tokens: a b c" in captured.err
    assert "unknown source token 'x'" in captured.err


def test_facts_are_printed_as_one_json_document(finished, capsys):
    def document(*words: object) -> dict:
        assert tfstudy(*words, "--format", "json") == 0
        return json.loads(capsys.readouterr().out)

    recorded = json.loads((finished / "result.json").read_text())
    shown = document("result", finished)
    assert Path(shown.pop("path")) == finished
    assert shown == recorded
    assert document("evaluate", finished)["splits"]["test"]["metrics"] == recorded["splits"]["test"]["metrics"]
    predicted = document("predict", finished, "a b", "c")
    assert [one["source"] for one in predicted["predictions"]] == ["a b", "c"]
    [errors] = document("errors", finished, "--examples", "1")["runs"]
    assert errors["n"] == sum(kind["n"] for kind in errors["kinds"].values()) == 24
    [example] = next(kind["examples"] for name, kind in errors["kinds"].items() if name != "correct")
    first = example["first_error"] - 1
    assert example["target"].split()[first : first + 1] != example["prediction"].split()[first : first + 1]
    assert tfstudy("result", finished, "--by", "length", "--format", "json") == 2


def test_errors_mark_the_first_wrong_token_within_80_columns(finished, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert tfstudy("errors", finished) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    marked = [number for number, line in enumerate(lines) if "^" in line]
    assert marked
    for number in marked:
        target, prediction, mark = (line[16:] for line in lines[number - 2 : number + 1])
        place = mark.index("^")
        assert target[:place] == prediction[:place]
        assert target[place:].split()[:1] != prediction[place:].split()[:1]


def test_weights_without_the_checkpoint_predict_the_same_bit_by_bit(finished, capsys):
    assert tfstudy("weights", finished) == 0
    assert "weights.safetensors" in capsys.readouterr().out
    with_checkpoint = load(finished)
    shutil.rmtree(finished / "checkpoints")
    shared = load(finished)
    assert (with_checkpoint.weights.suffix, shared.weights.name) == (".ckpt", "weights.safetensors")
    expected, weights = with_checkpoint.model.state_dict(), shared.model.state_dict()
    assert expected.keys() == weights.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    rows = read_predictions(finished, "test")
    assert shared.predict([row.source for row in rows]) == [row.prediction for row in rows]
    assert tfstudy("weights", finished, "--out", "copy.safetensors") == 0
    assert Path("copy.safetensors").read_bytes() == (finished / "weights.safetensors").read_bytes()
    assert tfstudy("weights", finished, "--out", "nowhere/copy.safetensors") == 2
    content = (finished / "weights.safetensors").read_bytes()
    (finished / "weights.safetensors").write_bytes(content[:-1])
    capsys.readouterr()
    assert tfstudy("predict", finished, "a b") == 2
    error = capsys.readouterr().err
    assert "weights.safetensors" in error
    assert error.count("\n") == 1


def test_predict_refuses_an_unfinished_run_and_an_outdated_one(finished, capsys, monkeypatch):
    (finished / "result.json").rename("result.json")
    assert tfstudy("predict", finished, "a") == 2
    assert "has not finished" in capsys.readouterr().err
    Path("result.json").rename(finished / "result.json")
    monkeypatch.setattr("tfstudy.experiment.code_versions._named_versions", lambda task, arch: (1, 3))
    assert tfstudy("predict", finished, "a") == 2
    assert "outdated" in capsys.readouterr().err


def test_evaluate_repeats_the_numbers_and_counts_each_reading_of_a_test_set(finished, capsys):
    before = {path: path.read_bytes() for path in finished.glob("predictions/*")}
    table = tfstudy("run", *command()[1:]), capsys.readouterr().out
    assert read_test_reads(finished) == {"test": 1}
    assert tfstudy("evaluate", finished) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["test"])
    assert row in table[1]
    assert {path: path.read_bytes() for path in finished.glob("predictions/*")} == before
    assert read_test_reads(finished) == {"test": 2}
    assert tfstudy("evaluate", finished, "--test-set", "validation") == 0
    assert "L90" not in capsys.readouterr().out, "the length thresholds are those of the test set"
    assert read_test_reads(finished) == {"test": 2}, "reading the validation split is not counted"
    assert (finished / "test_reads.csv").read_text().splitlines() == ["test,run", "test,evaluate"]


def test_evaluate_takes_other_settings_of_decoding_and_leaves_the_record_as_it_is(finished, capsys):
    before = {path: path.read_bytes() for path in finished.glob("*.json")}
    words = ["evaluate", finished, "--test-set", "validation", "--set", "decode.method=beam", "--format", "json"]
    assert tfstudy(*words, "--set", "decode.beam_size=1") == 0
    beam = json.loads(capsys.readouterr().out)
    assert beam["decode"] | {"method": "beam", "beam_size": 1} == beam["decode"]
    recorded = json.loads((finished / "result.json").read_text())
    assert beam["splits"]["validation"]["metrics"] == recorded["splits"]["validation"]["metrics"], "one hypothesis"
    assert tfstudy(*words, "--set", "decode.max_length=500") == 0
    assert json.loads(capsys.readouterr().out)["generation_limit"] == {"per_source_token": 0.0, "constant": 500}
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["--set", "decode.beam_siz=8"], ["beam_siz", "'decode.beam_size'"]),
        (["--set", "decode.beam_size=0"], ["'decode.beam_size'", "1", "'0'"]),
        (["--set", "decode.max_length=1"], ["decode.max_length", "longest target"]),
        (["--set", "decode=8"], ["decode"]),
        (["--set", "model.dim=8"], ["'decode'", "'model'"]),
        (["--set", "decode.beam_size=8", "--extend"], ["--extend", "--set"]),
    ],
)
def test_evaluate_refuses_settings_that_are_impossible_or_not_of_decoding(words, facts, finished, capsys):
    assert tfstudy("evaluate", finished, "--quiet", *words) == 2
    error = capsys.readouterr().err
    assert all(fact in error for fact in facts)
    assert error.count("\n") == 1
    assert read_test_reads(finished) == {"test": 1}


def test_a_result_is_shown_by_a_tag_without_reading_a_test_set_again(finished, capsys):
    assert tfstudy("result", finished, "--by", "length") == 0
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    [test] = [number for number, row in enumerate(words) if row[:1] == ["test"]]
    assert [words[test][1], words[test + 1][0]] == ["all", "5"]
    assert read_test_reads(finished) == {"test": 1}


def test_an_unknown_test_set_or_tag_is_answered_with_the_nearest_match(finished, capsys):
    assert tfstudy("evaluate", finished, "--test-set", "tset") == 2
    assert "did you mean 'test'?" in capsys.readouterr().err
    assert tfstudy("result", finished, "--by", "lenght") == 2
    assert "did you mean 'length'?" in capsys.readouterr().err
    assert tfstudy("errors", finished, "--test-set", "tset") == 2
    assert "'tset'" in capsys.readouterr().err
    assert read_test_reads(finished) == {"test": 1}


def test_evaluate_extend_tries_longer_examples(capsys):
    few = ["--set", "data.train_examples=100", "--set", "data.eval_examples=10"]
    assert tfstudy("run", "copying", "--arch", "lstm", "--smoke", "--accelerator", "cpu", *few) == 0
    [run] = Path("results-smoke/runs/copying-copy/lstm").iterdir()
    before = {path: path.read_bytes() for path in run.glob("*.json")}
    capsys.readouterr()
    assert tfstudy("evaluate", run, "--extend", "--max-length", "12") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["length   11", "length   12"]
    assert lines[2] == "stopped: length 13 is above the maximum, 12"
    assert lines[3].startswith("L90 none, L50 none")
    assert max(map(len, lines)) <= 80
    found = json.loads((run / "extended.json").read_text())
    assert found["exact_match"]["12"]["n"] >= 100
    assert {path: path.read_bytes() for path in before} == before
    assert tfstudy("evaluate", run, "--extend") == 0
    assert "stopped: no correct prediction at 3 lengths in a row" in capsys.readouterr().out.splitlines()


def test_a_task_without_generated_lengths_can_not_be_extended(finished, capsys):
    assert tfstudy("evaluate", finished, "--extend") == 2
    error = capsys.readouterr().err
    assert "reverse" in error
    assert "5" in error
