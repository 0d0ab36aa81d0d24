"""Words of the command line and files that a user names, damaged or hostile: one line, exit code 2, nothing written."""

import contextlib
import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.commands import refused, tfstudy
from tests.example_records import edit_result, result, write
from tfstudy.config.trees import parse_yaml
from tfstudy.errors import UserError
from tfstudy.grids.expand import expand
from tfstudy.grids.spec import validated

CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")
ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b2J\u202e"
WORDS = {
    "many digits": "config scan --set train.batch_size=" + "9" * 5000,
    "a key of many points": "config scan --set " + "a." * 5000 + "a=1",
    "half of a character": "config scan --set \udcff=3",
    "control characters": f"config {ESCAPES}",
    "too many seeds": "grid --task copying --seed 0-999999999 --dry-run",
    "a study above": "grid --task copying --study ../x --dry-run",
    "results that are a file": "run copying --smoke --results /dev/null",
}
pytestmark = pytest.mark.usefixtures("empty_folder")


def refusal(capsys, *words: str | Path) -> str:
    """The one line by which a command refuses its input; it leaves no file in the working folder."""
    err = refused(capsys, *words)
    assert not CONTROLS.search(err)
    assert len(err) < 1000
    return err


def written(content: str | bytes, name: str = "mine.yaml") -> Path:
    path = Path(name)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_hostile_words_are_refused(words, capsys):
    refusal(capsys, *words.split(" "))
    assert not Path("/dev/null-smoke").exists()


def test_hostile_grids_and_baselines_and_what_is_no_file_or_too_large_are_refused(capsys):
    for axis in ("from: 1, to: .inf", "from: 1, to: 2, count: 99999999999"):
        grid = written(f"base: {{task: scan}}\naxes: {{train.learning_rate: {{{axis}}}}}")
        refusal(capsys, "grid", grid, "--dry-run", "--accelerator", "cpu")
    Path("results/study").mkdir(parents=True)
    for text in ("[" * 100_000, '{"rows": [3]}'):
        refusal(capsys, "check", "study", "--against", written(text, "baseline.json"))
    for path in ("nowhere.yaml", ".", "/dev/zero", "a" * 5000 + ".yaml"):
        refusal(capsys, "config", "scan", "--config", path)
    for content in ("train: !!python/object/apply:os.system [touch hacked]", 'train: {steps: "\\e]0;title\\a"}'):
        refusal(capsys, "config", "scan", "--config", written(content))
    with Path("mine.yaml").open("wb") as file:
        file.truncate(100_000_000)
    assert "too large" in refusal(capsys, "config", "scan", "--config", "mine.yaml")


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from(["scan", "lstm", "0-3"])
)
keys = st.sampled_from(["task", "arch", "train.steps", "model", "model.dim", "from", "to", "step", "count", ""])
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
parts = st.sampled_from(["about", "base", "axes", "per", "exclude", "seeds", "smoke", "tiers"])


@settings(max_examples=100, deadline=20_000)
@given(st.dictionaries(parts, trees, max_size=4))
def test_any_tree_is_a_grid_or_is_refused(tree):
    with contextlib.suppress(UserError):
        assert all(run.config.task for run in expand(validated({"base": {"task": "copying", "arch": "lstm"}, **tree})))


@settings(max_examples=300, deadline=20_000)
@given(st.text(st.sampled_from("[]{}:,-?*&!|>'\"#% \n\tab01.e~<="), max_size=60))
def test_any_text_is_yaml_or_is_refused(text):
    with contextlib.suppress(UserError):
        assert len(str(parse_yaml(text, "the text"))) < 1000


def test_names_of_others_control_no_terminal_spreadsheet_or_browser(capsys):
    hostile = "=HYPERLINK(1)<script>alert(1)</script>![x](http://example.org)$\\frac{$"
    study = write(Path("results/study"), *(result(seed, 0.5 + seed / 10, preset=hostile) for seed in range(3)))
    run, *others = study.glob("*/*/s*")
    for one in (run, *others):
        edit_result(one, signatures={"bleu": ESCAPES})
    (run / "train.log").write_text(f"step 1\n{ESCAPES}\n")
    shown = {}
    for format_ in ("text", "md", "csv", "tex", "html", "json"):
        assert tfstudy("table", "study", "--format", format_) == 0
        shown[format_] = capsys.readouterr().out
    [row] = csv.DictReader(io.StringIO(shown["csv"]))
    assert row["preset"].startswith("'=HYPERLINK")
    assert not any(re.match(r"[=+\-@\t\r]", cell) for cell in row.values() if not re.fullmatch(r"[-+.\de]*", cell))
    edit_result(run, status="diverged", reason=ESCAPES)
    for words in (["result", run, "--log"], ["result", run], ["list", "runs"], ["status", "study"], ["table", "study"]):
        assert tfstudy(*words) == 0
        shown[" ".join(map(str, words))] = capsys.readouterr().out
    assert r"\x1b]0;title\x07" in shown[f"result {run} --log"]
    assert not [name for name, text in shown.items() if CONTROLS.search(text)]
    assert tfstudy("report", "study", "--out", "out") == 0
    page = Path("out", "index.html").read_text()
    assert "HYPERLINK" in page
    assert "<script>alert" not in page
