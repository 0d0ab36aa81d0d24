"""Words of the command line and names in records, damaged or hostile: each is refused or shown as it is."""

import csv
import io
import re
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_records import edit_result, result, write
from tests.hostile.refusals import CONTROLS, refusal
from tfstudy.cli.app import was_interrupted
from tfstudy.errors import UserError

ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b2J\u202e"
WORDS = {
    "brackets": "config scan --set model.dim=" + "[" * 5000,
    "braces": "config scan --set model.dim=" + "{" * 5000,
    "balanced brackets": "config scan --set model.dim=" + "[" * 5000 + "]" * 5000,
    "digits": "config scan --set train.batch_size=" + "9" * 5000,
    "hexadecimal digits": "config scan --set train.batch_size=0x" + "f" * 5000,
    "digits of a fraction": "config scan --set train.learning_rate=" + "9" * 5000 + ".0",
    "points of a key": "config scan --set " + "a." * 5000 + "a=1",
    "only points": "config scan --set ...=1",
    "alias": "config scan --set train.steps=*a",
    "recursive alias": "config scan --set train.steps=&a[*a]",
    "tag": "config scan --set train.steps=!!python/name:os.system",
    "surrogate as a key": "config scan --set \udcff=3",
    "surrogate as a value": "config scan --set train.steps=\udcff",
    "control characters of a key": f"config scan --set {ESCAPES}=3",
    "control characters of a value": f"config scan --set train.steps={ESCAPES}",
    "control characters of a task": f"config {ESCAPES}",
    "control characters of a preset": f"config scan --preset {ESCAPES}",
    "control characters of a file": f"config scan --config {ESCAPES}",
    "control characters of a command": ESCAPES,
    "control characters of an option": f"config scan --{ESCAPES}",
    "long task": "config " + "a" * 100_000,
    "long preset": "config scan --preset " + "a" * 100_000,
    "long file": "config scan --config " + "a" * 100_000,
    "long command": "a" * 100_000,
    "yes": "config scan --set train.steps=yes",
    "one for true": "config scan --set train.compile=1",
    "inf": "config scan --set train.learning_rate=.inf",
    "seed of 24 digits": "config scan --seed 100000000000000000000000",
    "seed of 5,000 digits": "config scan --seed " + "9" * 5000,
    "no seed": "config scan --seed -1",
    "seed of a grid": "grid --task copying --seed 100000000000000000000000 --dry-run",
    "contradiction": "grid --task copying --arch lstm --set arch=cnn --dry-run",
    "repetition": "grid --task copying --set train.steps=1 --set train.steps=2 --dry-run",
    "nested axis": "grid --task copying --set train.steps=[[[[[1]]]]] --dry-run",
    "too many seeds": "grid --task copying --seed 0-999999999 --dry-run",
    "shard": "grid --task copying --shard 1/0 --dry-run",
    "shard of many digits": f"grid --task copying --shard 1/{'9' * 5000} --dry-run",
    "shard of other digits": "grid --task copying --shard ٣/٣ --dry-run",
    "per device": "grid --task copying --per-device ² --dry-run",
    "devices": "grid --task copying --devices 9999 --accelerator cpu --dry-run",
    "devices of many digits": f"grid --task copying --devices {'9' * 5000} --dry-run",
    "study above": "grid --task copying --study ../x --dry-run",
    "study like an option": "grid --task copying --study=-x --dry-run",
    "long study": f"grid --task copying --study {'a' * 5000} --dry-run",
    "study of control characters": f"grid --task copying --study {ESCAPES} --dry-run",
    "results that are a file": "run copying --smoke --results /dev/null",
    "empty results": "status --results=",
    "no results": "status --results /nowhere",
    "no results of a table": "table --results /nowhere",
    "no results of claims": "claims --results /nowhere",
    "no results of a list": "list runs --results /nowhere",
    "no results of a run": "result x --results /nowhere",
    "empty names": "table --results . --by arch,,",
    "only a comma": "table --results . --columns ,",
    "empty path of a plot": "plot --results . --out=",
    "empty path of a report": "report --results . --out=",
    "empty config": "config scan --config=",
    "long run": "result --results . " + "a" * 300,
    "long target": f"measure --results . {'a' * 300} entropy",
    "long grid": "grid " + "a" * 300,
    "long output file": f"plot --results . --out {'a' * 300}.png",
    "long folder of a report": "report --results . --out " + "a" * 300,
    "long folder of results": "table --results " + "a" * 300,
    "trials": "tune copying --trials 99999999999",
    "trials of many digits": f"tune copying --trials {'9' * 5000}",
    "search of nothing": "tune copying --search train.learning_rate=1e-320..1:log",
    "search of infinity": "tune copying --search train.learning_rate=1..1e999",
    "search of many digits": f"tune copying --search train.learning_rate=1..{'9' * 5000}",
    "study of tune": "tune copying --study ../x",
    "folder as a preset file": "tune copying --out .",
    "preset file within a file": "tune copying --out /dev/null/x",
    "preset file of a long name": f"tune copying --out {'a' * 5000}",
}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_hostile_words_are_refused(words, capsys):
    refusal(capsys, *words.split(" "))


def test_smoke_runs_of_a_results_file_write_nowhere_else(capsys):
    refusal(capsys, "run", "copying", "--smoke", "--results", "/dev/null")
    assert not Path("/dev/null-smoke").exists()


HOSTILE = "=HYPERLINK(1)<script>alert(1)</script>![x](http://example.org)$\\frac{$"


@pytest.fixture
def results():
    """A study whose preset has a name that a spreadsheet, a browser and matplotlib would execute."""
    write(Path("results/study"), *(result(seed, 0.5 + seed / 10, preset=HOSTILE) for seed in range(3)))
    return Path("results/study")


@pytest.mark.parametrize("format_", ["text", "md", "csv", "tex", "html", "json"])
def test_no_table_controls_the_terminal(results, format_, capsys):
    for run in results.glob("*/*/s*"):
        edit_result(run, signatures={"bleu": ESCAPES})
    assert tfstudy("table", "study", "--format", format_) == 0
    out = capsys.readouterr().out
    assert "lstm" in out
    assert not CONTROLS.search(out)


def test_a_cell_of_csv_is_no_formula(results, capsys):
    assert tfstudy("table", "study", "--format", "csv") == 0
    [row] = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["preset"].startswith("'=HYPERLINK")
    assert float(row["mean"]) == 60.0
    assert not any(re.match(r"[=+\-@\t\r]", cell) for cell in row.values() if not re.fullmatch(r"[-+.\de]*", cell))


def test_markdown_of_a_report_has_no_html_and_no_foreign_image(results, capsys):
    assert tfstudy("report", "study", "--out", "out") == 0
    text = Path("out/report.md").read_text()
    assert "HYPERLINK" in text
    assert "<script" not in text
    assert "](http" not in text
    assert not CONTROLS.search(text)
    page = Path("out/index.html").read_text()
    assert "<script>alert" not in page


def test_a_table_in_markdown_has_no_html_and_no_foreign_image(results, capsys):
    assert tfstudy("table", "study", "--columns", "arch,preset,result", "--format", "md") == 0
    out = capsys.readouterr().out
    assert "&lt;script>" in out
    assert r"]\(http" in out


@pytest.mark.parametrize("kind", ["split", "learning"])
def test_a_name_that_looks_like_mathematics_is_drawn_as_it_is(results, kind, capsys):
    code = tfstudy("plot", "study", "--kind", kind, "--out", "a.svg")
    assert (code, Path("a.svg").exists()) in ((0, True), (2, False))
    assert "Traceback" not in capsys.readouterr().err


def test_the_reason_of_a_diverged_run_does_not_control_the_terminal(results, capsys):
    [run, *_] = results.glob("*/*/s0*")
    edit_result(run, status="diverged", reason=ESCAPES)
    for words in (("result", str(run)), ("list", "runs"), ("status", "study"), ("table", "study")):
        assert tfstudy(*words) == 0
        assert not CONTROLS.search(capsys.readouterr().out)


def test_the_log_of_a_run_does_not_control_the_terminal(results, capsys):
    [run, *_] = results.glob("*/*/s0*")
    (run / "train.log").write_text(f"step 1\n{ESCAPES}\n")
    assert tfstudy("logs", str(run)) == 0
    out = capsys.readouterr().out
    assert r"\x1b]0;title\x07" in out
    assert not CONTROLS.search(out)


def test_a_failed_plot_creates_no_folder(results, capsys):
    refusal(capsys, "plot", "study", "--kind", "learning", "--out", "new/folder/a.svg")
    refusal(capsys, "plot", "study", "--out", "new/folder/a.xyz")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), SystemError("x")])
def test_an_import_that_ctrl_c_ended_counts_as_interrupted(interruption):
    error = ImportError("can't import numpy")
    error.__cause__ = interruption
    assert was_interrupted(error) == isinstance(interruption, KeyboardInterrupt)


def test_data_of_a_record_come_from_the_network_only_with_online(results, capsys, monkeypatch):
    asked = []

    def from_hub(*words):
        asked.append(words)
        raise UserError("no such data set")

    monkeypatch.setattr("tfstudy.tasks.translation.text.from_hub", from_hub)
    [run, *_] = results.glob("*/*/s0*")
    (run / "config.yaml").write_text("task: translation\narch: lstm\ndata: {split: corpus, hub: them/corpus}\n")
    (run / "env.json").write_text('[{"data": "d"}]')
    assert tfstudy("why", str(run)) == 0
    assert "its data were not compared (its data come from the network" in capsys.readouterr().out
    refusal(capsys, "predict", str(run), "jump")
    assert asked == []
    assert tfstudy("why", str(run), "--online") in (0, 2)
    assert asked
