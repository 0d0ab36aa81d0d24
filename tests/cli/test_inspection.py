"""The commands that look into finished runs: `result`, `predict`, `errors`, `evaluate` and `measure`."""

import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.commands import refused, tfstudy
from tests.example_records import edit_result
from tfstudy import load
from tfstudy.runs.store import open_run, read_predictions, saved_instruments

TINY = {
    "model.dim": 16, "model.hidden": 16, "train.steps": 10, "train.warmup_steps": 2, "train.validation_interval": 10,
    "train.log_interval": 10, "train.batch_size": 2, "decode.max_length": 2,
}  # fmt: skip
FEW = ("--set", "examples=6", "-q")


@pytest.fixture
def run(finished) -> Path:
    return finished()


def stdin(monkeypatch, content: bytes) -> None:
    """Standard input has this content."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_sources_are_arguments_or_lines_of_standard_input_which_are_answered_line_by_line(run, capsys, monkeypatch):
    first, last = load(run).predict(["a b", "c"])
    assert tfstudy("predict", run, "a b", "c") == 0
    assert capsys.readouterr().out.splitlines() == [f"a b -> {first}", f"c -> {last}"]
    rows = read_predictions(run, "test")
    stdin(monkeypatch, "\n".join(row.source for row in rows).encode())
    assert tfstudy("predict", run.name[-8:-3]) == 0
    assert capsys.readouterr().out.splitlines() == [row.prediction for row in rows]
    unreadable = b"\xef\xbb\xbfa b\r\n\na x\n<pad>\nc\n"  # with a byte order mark
    stdin(monkeypatch, unreadable)
    assert tfstudy("predict", run) == 1
    out, error = capsys.readouterr()
    assert out.splitlines() == [first, "", "", "", last]
    assert [line.split(": ")[0] for line in error.splitlines()[:2]] == ["line 3", "line 4"]
    assert "unknown source token 'x'" in error
    stdin(monkeypatch, unreadable)
    assert tfstudy("predict", run, "--format", "json") == 1
    shown = json.loads(capsys.readouterr().out)["predictions"]
    assert [one["prediction"] for one in shown] == [first, None, None, None, last]
    for content, fact in {b"a \xff\n": "not text in UTF-8", b"\n": "has no source"}.items():
        stdin(monkeypatch, content)
        assert tfstudy("predict", run) == 2
        assert fact in capsys.readouterr().err
    assert tfstudy("predict", run, "a x") == 2


def test_a_word_that_a_corpus_lacks_in_train_is_read_as_unknown_and_cut_outputs_are_counted(capsys, monkeypatch):
    """As in its test sets: the sources of the test set, predicted, give the recorded predictions."""
    Path("data").mkdir()
    for name, pairs in {"train": "a b\tx y\nb\ty", "dev": "a\tx", "test": "a new\tx z\nb\ty"}.items():
        Path(f"data/{name}.tsv").write_text(f"{pairs}\n")
    words = [w for key, value in TINY.items() for w in ("--set", f"{key}={value}")]
    assert tfstudy("run", "pairs", "--arch", "lstm", "--set", "data.root=data", *words, "--accelerator", "cpu") == 0
    [run] = Path("results").glob("*/*/*/s*")
    rows = read_predictions(run, "test")
    capsys.readouterr()
    stdin(monkeypatch, "".join(f"{row.source}\n" for row in rows).encode())
    assert tfstudy("predict", run) == 0
    out, error = capsys.readouterr()
    assert out.splitlines() == [row.prediction for row in rows]
    assert "line 1: read as unknown: new" in error
    cut = sum(len(row.prediction.split()) == 2 for row in rows)
    assert cut
    assert f"{cut} of 2 outputs were cut at the maximum number of tokens" in error


def test_facts_are_printed_as_one_json_document(run, capsys):
    assert tfstudy("result", run, "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    recorded = json.loads((run / "result.json").read_text())
    assert shown == {"path": str(run)} | {key: value for key, value in recorded.items() if key != "sha256"}
    assert tfstudy("errors", run, "--examples", "1", "--format", "json") == 0
    [errors] = json.loads(capsys.readouterr().out)["runs"]
    assert errors["n"] == sum(kind["n"] for kind in errors["kinds"].values()) == 24
    [example] = next(kind["examples"] for name, kind in errors["kinds"].items() if name != "correct")
    assert example["target"] != example["prediction"]


def test_evaluate_repeats_the_numbers_with_other_settings_too_and_counts_each_reading_of_a_test_set(run, capsys):
    before = {path: path.read_bytes() for path in run.glob("predictions/*")}
    assert tfstudy("result", run, "--by", "length") == 0
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    [test] = [number for number, row in enumerate(words) if row[:1] == ["test"]]
    assert [words[test][1], words[test + 1][0]] == ["all", "5"], "a row for each value of the tag"
    assert open_run(run).test_reads == {"test": 1}
    recorded = json.loads((run / "result.json").read_text())["splits"]

    def evaluated(*settings: str, test_set: str = "validation") -> dict:
        given = [word for one in settings for word in ("--set", one)]
        assert tfstudy("evaluate", run, "--test-set", test_set, "--format", "json", *given) == 0
        return json.loads(capsys.readouterr().out)

    assert evaluated(test_set="test")["splits"]["test"]["metrics"] == recorded["test"]["metrics"]
    before |= {path: path.read_bytes() for path in run.glob("*.json")}
    beam = evaluated("decode.method=beam", "decode.beam_size=1")
    assert beam["decode"] | {"method": "beam", "beam_size": 1} == beam["decode"]
    assert beam["splits"]["validation"]["metrics"] == recorded["validation"]["metrics"], "one hypothesis"
    assert evaluated("decode.max_length=500")["generation_limit"] == {"per_source_token": 0.0, "constant": 500}
    assert {path: path.read_bytes() for path in before} == before
    assert open_run(run).test_reads == {"test": 2}, "reading the validation split is not counted"
    assert [event.reason for event in open_run(run).events if event.event == "test read"] == ["run", "evaluate"]


def test_impossible_settings_and_unknown_names_are_refused_and_read_no_test_set(run, capsys):
    for words, facts in {
        ("evaluate", "--set", "decode.beam_size=0"): ["'decode.beam_size'", "1", "'0'"],
        ("evaluate", "--set", "decode.max_length=1"): ["decode.max_length", "longest target"],
        ("evaluate", "--set", "decode.beam_size=8"): ["decode.method=beam"],
        ("evaluate", "--set", "model.dim=8"): ["'decode'", "'model'"],
        ("evaluate", "--set", "splits=test"): ["'splits'"],
        ("evaluate", "--test-set", "tset"): ["did you mean 'test'?"],
        ("result", "--by", "lenght"): ["did you mean 'length'?"],
    }.items():
        name, *rest = words
        error = refused(capsys, name, run, *rest)
        assert all(fact in error for fact in facts), words
    assert open_run(run).test_reads == {"test": 1}


# Attention and other measurements


def test_attention_shows_the_most_attended_source_token_of_each_output_token(finished, capsys):
    run = finished("transformer")
    reads = open_run(run).test_reads
    assert tfstudy("measure", run, "attention", "a b", "--set", "target=b a") == 0
    title, head, *rows = capsys.readouterr().out.splitlines()
    assert title == "cross attention: the largest weight of each token, mean over heads"
    assert head.split() == ["output", "layer", "1", "layer", "2"]
    assert [row.split()[:2] for row in rows] == [["1", "b"], ["2", "a"], ["3", "<eos>"]]
    found = []
    for layer in load(run).attention("a b", "b a").weights["cross"]:
        best = int((weights := layer.mean(0)[0]).argmax())
        found += [f"{weights[best]:.2f}", str(best + 1), ["a", "b", "<eos>"][best]]
    assert rows[0].split()[2:] == found
    assert open_run(run).test_reads == reads


def test_a_study_is_measured_saved_and_drawn_and_a_run_without_weights_is_left_out(finished, capsys):
    runs = [finished(arch, study="mine") for arch in ("transformer", "lstm")]
    assert tfstudy("measure", "mine", "entropy", *FEW, "--save", "--out", "entropy.png") == 0
    out, err = capsys.readouterr()
    lines = [line.split() for line in out.splitlines()]
    assert out.startswith("entropy: entropy / log T, split=validation, examples=6\n")
    assert {tuple(line[:3]) for line in lines[2:-2]} >= {("lstm", "cross", "1"), ("transformer", "encoder", "2")}
    assert err == ""
    assert Path("entropy.png").read_bytes().startswith(b"\x89PNG")
    assert [saved_instruments(run) for run in runs] == [["entropy"]] * 2
    shutil.rmtree(runs[0] / "checkpoints")
    assert tfstudy("measure", "mine", "entropy", "--set", "examples=5", "-q") == 0
    out, err = capsys.readouterr()
    assert out.startswith("lstm, entropy: ")
    assert err.startswith(f"left out: {runs[0]} has no weights")


def test_a_wrong_request_to_measure_is_one_message_and_writes_nothing(finished, capsys, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # of the plug-in
    run = finished("transformer")
    Path("wrong.py").write_text(
        "from tfstudy.instruments.base import Chart, Instrument\n\n\nclass Wrong(Instrument):\n"
        "    summary = 'wrong'\n    chart = Chart('line', x='layer', y='nrom')\n\n"
        "    def measure(self, subject):\n        return [{'layer': 1, 'norm': 1.0}]\n"
    )
    for words, fact in {
        ("entropie", "--save"): "did you mean 'entropy'?",
        ("entropy", "--save", "--set", "example=3"): "did you mean 'examples'?",
        ("entropy", "--save", "--set", "split=tset"): "did you mean 'test'?",
        ("entropy", "--save", "--out", "figure.gif"): "unknown file type '.gif'",
        ("wrong", "--save", "--plugin", "wrong.py"): "did you mean 'norm'?",
        ("attention", "a x"): "source token 'x'",
        ("attention", "a", "--set", "kind=corss"): "did you mean 'cross'?",
        ("attention", "a", "--set", "layer=3"): "layer must be one of 1, 2, but is 3",
        ("attention", "a", "--set", "laier=1"): "did you mean 'layer'?",
    }.items():
        assert fact in refused(capsys, "measure", run, *words, "-q")
    assert saved_instruments(run) == []


def test_a_saved_measurement_is_shown_without_weights_and_other_settings_are_measured(run, capsys):
    for examples in (5, 6):
        assert tfstudy("measure", run, "entropy", "--set", f"examples={examples}", "-q", "--save") == 0
        out, err = capsys.readouterr()
        assert err == ""
    table = out.splitlines()[:-1]
    shutil.rmtree(run / "checkpoints")
    assert tfstudy("measure", run, "entropy", *FEW) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == table
    assert err.splitlines()[-1] == "measured before: 1 of 1; --save measures again"
    for words in (["--save", *FEW], ["--set", "examples=5"], ["--set", "split=test", *FEW]):
        assert tfstudy("measure", run, "entropy", *words) == 2
        assert "no weights" in capsys.readouterr().err


def test_without_a_validation_split_the_saved_measurement_is_that_of_the_test_set(run, capsys):
    assert tfstudy("measure", run, "entropy", "--set", "split=test", *FEW, "--save") == 0
    reads = open_run(run).test_reads
    edit_result(run, splits={"test": json.loads((run / "result.json").read_text())["splits"]["test"]})
    assert tfstudy("measure", run, "entropy", *FEW) == 0
    assert "measured before: 1 of 1" in capsys.readouterr().err
    assert open_run(run).test_reads == reads


def test_measurements_are_one_json_document_and_reading_a_test_set_is_counted(run, capsys):
    before = open_run(run).test_reads["test"]
    assert tfstudy("measure", run, "entropy", "--set", "split=test", *FEW, "--format", "json") == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["instrument"], found["settings"]) == ("entropy", {"split": "test", "examples": 6})
    assert open_run(run).test_reads["test"] == before + 1
    assert found["columns"] == load(run).measure("entropy", split="test", examples=6).columns
    load(run).measure("attention", split="test", source="a b")
    assert open_run(run).test_reads["test"] == before + 2, "a source of one's own is no example"
