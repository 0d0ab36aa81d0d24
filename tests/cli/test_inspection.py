"""`tfstudy attention`, `measure` and `logs`: tables, figures, JSON, and records saved with the runs."""

import json
import shutil
from pathlib import Path

import tfstudy as package
from tests.commands import tfstudy
from tests.example_study import planned, running_elsewhere, start_run
from tfstudy import instruments
from tfstudy.runs.measurement_record import read_measurement, saved_instruments
from tfstudy.runs.reader import read_test_reads
from tfstudy.runs.status import follow
from tfstudy.runs.writer import write_failure

FEW = ("--set", "examples=6", "-q")


def test_attention_shows_the_most_attended_source_token_of_each_output_token(finished, capsys):
    run = finished("transformer")
    reads = read_test_reads(run)
    assert tfstudy("measure", run, "attention", "a b", "--set", "target=b a") == 0
    title, head, *rows = capsys.readouterr().out.splitlines()
    assert title == "cross-attention: the token with the largest weight, mean of 4 heads"
    assert head.split() == ["output", "layer", "1", "layer", "2"]
    assert [row.split()[:2] for row in rows] == [["1", "b"], ["2", "a"], ["3", "<eos>"]]
    weights = package.load(run).attention("a b", "b a").weights["cross"][0].mean(0)[0]
    best = int(weights.argmax())
    assert rows[0].split()[2:5] == [str(best + 1), ["a", "b", "<eos>"][best], f"{weights[best]:.2f}"]
    assert read_test_reads(run) == reads


def test_attention_of_the_models_own_output_is_one_json_document(finished, capsys):
    run = finished()
    assert tfstudy("predict", run, "a b c") == 0
    predicted = capsys.readouterr().out.split()
    assert tfstudy("measure", run, "attention", "a b c", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["output"] in (predicted, [*predicted, "<eos>"])
    assert found["source"] == ["a", "b", "c", "<eos>"]
    assert [(m["kind"], m["layer"], m["head"]) for m in found["maps"]] == [("cross", 1, 1)]


def test_attention_is_drawn(finished, capsys):
    words = ("--set", "kind=encoder", "--set", "head=2", "--out", "maps.svg")
    assert tfstudy("measure", finished("transformer"), "attention", "a b", *words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "maps.svg"
    assert "Encoder self-attention" in Path("maps.svg").read_text()


def test_attention_that_is_not_there_is_answered_in_one_line(finished, capsys):
    run = finished("transformer")
    for words, facts in {
        ("a x",): ["source token 'x'", "a, b, c"],
        ("a", "--set", "target=a y"): ["target token 'y'", "a, b, c"],
        ("a", "--set", "kind=corss"): ["'corss'", "did you mean 'cross'?"],
        ("a", "--set", "layer=3"): ["layer must be one of 1, 2, but is 3"],
        ("a", "--set", "head=9"): ["head must be one of 1, 2, 3, 4, but is 9"],
        ("a", "--set", "head=0"): ["head must be a whole number from 1"],
        ("a", "--set", "laier=1"): ["did you mean 'layer'?"],
        ("a", "--out", "maps.jpg"): ["'.jpg'", ".png, .svg, .pdf"],
    }.items():
        assert tfstudy("measure", run, "attention", *words, "-q") == 2
        [line] = capsys.readouterr().err.splitlines()
        assert all(fact in line for fact in facts)
    assert tfstudy("measure", finished("lstm"), "attention", "a", "--set", "kind=decoder") == 2
    assert "no decoder attention, only cross" in capsys.readouterr().err
    blind = finished("lstm", "--set", "model.attention=none")
    assert tfstudy("measure", blind, "attention", "a b", "--out", "maps.png") == 2
    assert "needs attention" in capsys.readouterr().err
    assert not Path("maps.png").exists()


def test_a_study_is_measured_saved_and_drawn(finished, capsys):
    runs = [finished(arch, study="mine") for arch in ("transformer", "lstm")]
    assert tfstudy("measure", "mine", "entropy", *FEW, "--save", "--out", "entropy.png") == 0
    out, err = capsys.readouterr()
    lines = [line.split() for line in out.splitlines()]
    assert out.startswith("entropy: entropy / log T, mean over heads, split=validation, examples=6\n")
    assert {tuple(line[:3]) for line in lines[2:-2]} >= {("lstm", "cross", "1"), ("transformer", "encoder", "2")}
    assert err == ""
    assert Path("entropy.png").read_bytes().startswith(b"\x89PNG")
    assert [saved_instruments(run) for run in runs] == [["entropy"]] * 2


def test_measurements_have_every_row_as_json_and_reading_a_test_set_is_counted(finished, capsys):
    run = finished()
    before = read_test_reads(run).get("test", 0)
    assert tfstudy("measure", run, "entropy", "--set", "split=test", *FEW, "--format", "json") == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["instrument"], found["settings"]) == ("entropy", {"split": "test", "examples": 6})
    assert found["examples"] == 6
    assert found["columns"]["length"] == [6]  # five words and the end of the sequence
    assert read_test_reads(run)["test"] == before + 1
    assert saved_instruments(run) == []
    again = package.load(run).measure("entropy", save=True, split="test", examples=6)
    assert again.columns == found["columns"]
    assert read_measurement(run, "entropy") == again


def test_a_wrong_request_to_measure_is_one_message_and_writes_nothing(finished, capsys):
    run = finished()
    Path("wrong.py").write_text(
        "from tfstudy.instruments.base import Chart, Instrument\n\n\nclass Wrong(Instrument):\n"
        "    summary = 'wrong'\n    chart = Chart('bar', x='layer', y='nrom')\n\n"
        "    def measure(self, subject):\n        return [{'layer': 1, 'norm': 1.0}]\n"
    )
    for words, fact in {
        ("entropie",): "did you mean 'entropy'?",
        ("entropy", "--set", "example=3"): "did you mean 'examples'?",
        ("entropy", "--set", "examples=0"): "'examples' must be greater than or equal to 1",
        ("entropy", "--set", "split=tset"): "did you mean 'test'?",
        ("entropy", "--out", "figure.gif"): "unknown file type '.gif'",
        ("wrong", "--plugin", "wrong.py"): "did you mean 'norm'?",
    }.items():
        assert tfstudy("measure", run, *words, "--save", "-q") == 2
        assert fact in capsys.readouterr().err
    assert saved_instruments(run) == []


def test_runs_that_can_not_be_measured_are_left_out_with_the_reason(finished, capsys):
    runs = [finished(arch, study="mine") for arch in ("transformer", "lstm")]
    assert tfstudy("measure", "mine", "entropy", "--set", "split=tst", *FEW) == 2
    assert "(and 1 more run for the same reason)" in (error := capsys.readouterr().err)
    assert error.count("did you mean 'test'?") == 1
    shutil.rmtree(runs[0] / "checkpoints")
    assert tfstudy("measure", "mine", "entropy", *FEW) == 0
    out, err = capsys.readouterr()
    assert out.startswith("lstm, entropy: ")
    assert err.startswith(f"left out: {runs[0]} has a result but no weights")
    assert tfstudy("measure", runs[0], "entropy", *FEW) == 2


def test_a_saved_measurement_is_shown_without_weights_and_other_settings_are_measured(finished, capsys):
    run = finished()
    for examples, replaced in (
        (5, ""),
        (6, "replaced: entropy with split=validation, examples=5, in 1 run\n"),
        (6, ""),
    ):
        assert tfstudy("measure", run, "entropy", "--set", f"examples={examples}", "-q", "--save") == 0
        out, err = capsys.readouterr()
        assert err == replaced
    table = out.splitlines()[:-1]
    shutil.rmtree(run / "checkpoints")
    assert tfstudy("measure", run, "entropy", *FEW) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == table
    assert err.splitlines()[-1] == "measured before: 1 run; --save measures again"
    for words in (["--save", *FEW], ["--set", "examples=5"], ["--set", "split=test", *FEW]):
        assert tfstudy("measure", run, "entropy", *words) == 2
        assert "no weights" in capsys.readouterr().err


def test_the_list_of_instruments_has_a_line_for_each(capsys):
    assert tfstudy("list", "instruments", "--format", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == instruments.names()
    assert all(row["about"] for row in rows)


def test_logs_print_the_end_and_the_reason_of_a_failure(capsys):
    path = start_run(planned()[0])
    for words in ([], ["--follow"]):
        assert tfstudy("result", path, "--log", *words) == 2
        assert capsys.readouterr() == ("", f"error: {path} has no log\n")
    (path / "train.log").write_text("".join(f"line {i}\n" for i in range(50)))
    write_failure(path, "out of memory", 1)
    assert tfstudy("result", path, "--log", "--follow") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:20] == [f"line {number}" for number in range(30, 50)]
    assert "out of memory" in lines[20]


def test_following_a_log_ends_with_the_process_of_the_run():
    path = start_run(planned()[0])
    (path / "train.log").write_text("old\n")
    with running_elsewhere(path):
        added = follow(path, 4, interval=0.01)
        with (path / "train.log").open("a") as log:
            log.write("new\n")
        assert next(added) == "new\n"
    (path / "train.log").open("a").close()
    assert list(added) == []
