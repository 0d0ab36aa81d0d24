"""Files that a user names, damaged or hostile: configs, presets, grids and baselines."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile.refusals import refusal, time_limit
from tfstudy.config.files import parse_yaml
from tfstudy.errors import UserError
from tfstudy.grids.expand import expand
from tfstudy.grids.spec import validated

BOMB = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{previous}'] * 9)}]\n"
    for previous, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name} {{p: *{previous}, q: *{previous}, r: *{previous}}}\n"
    for previous, name in zip("abcdefghijklmn", "bcdefghijklmno", strict=True)
)
FILES = {
    "alias bomb": BOMB,
    "alias bomb as a value": f"{BOMB}train: {{steps: *i}}",
    "merge bomb": MERGE_BOMB,
    "recursive alias": "train: &a {steps: *a}",
    "nested lists": "train: " + "[" * 3000 + "]" * 3000,
    "nested mappings": "train: " + "{a: " * 3000 + "1" + "}" * 3000,
    "nested blocks": "".join(" " * i + "a:\n" for i in range(3000)),
    "nested dashes": "- " * 3000 + "a",
    "nested questions": "? " * 3000 + "a",
    "unclosed brackets": "[" * 100_000,
    "unclosed braces": "{" * 100_000,
    "many values": "a: [" + "1," * 200_000 + "]",
    "many digits": f"train: {{batch_size: {'9' * 5000}}}",
    "many hexadecimal digits": f"train: {{batch_size: 0x{'f' * 5000}}}",
    "a number of base 60": "train: {batch_size: 1" + ":59" * 5000 + "}",
    "a date that does not exist": "train: {batch_size: 2020-02-30}",
    "python object": "train: !!python/object/apply:os.system [touch hacked]",
    "python name": "train: !!python/name:os.system",
    "binary tag": "train: !!binary aGk=",
    "unknown tag": "train: !mine {}",
    "list as a key": "? [1, 2]\n: 3",
    "no string as a key": "{1: 2}",
    "two documents": "train: {steps: 3}\n---\ntrain: {steps: 4}",
    "other version": "%YAML 9.9\n---\ntrain: {}",
    "list": "[1, 2]",
    "text": "hello",
    "nothing": "",
    "null bytes": "\0" * 100,
    "not UTF-8": b"\xff\xfe\xfa",
    "control characters": "train: {steps: \x1b]0;x\x07}",
    "escaped control characters": 'train: {steps: "\\e]0;title\\a"}',
    "escaped key": '"\\e[2J\\u202e": 3',
    "long key": "a" * 100_000 + ": 1",
    "long value": "train: {steps: " + "a" * 100_000 + "}",
    "html": "'<script>alert(1)</script>': 3",
    "infinite": "train: {learning_rate: .inf}",
    "not a number": "train: {learning_rate: .nan}",
    "yes": "train: {steps: yes}",
    "section as a value": "train: {steps: {a: 1}}",
    "value as a section": "train: 3",
    "seed of 24 digits": "seed: 100000000000000000000000",
    "dimension of 30 digits": "model: {dim: 100000000000000000000000000000}",
}


def written(content: str | bytes, name: str = "mine.yaml") -> Path:
    path = Path(name)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_a_hostile_config_is_refused(content, capsys):
    refusal(capsys, "config", "scan", "--config", written(content))
    assert not Path("hacked").exists()


@pytest.mark.parametrize("content", [*list(FILES.values())[:36]], ids=list(FILES)[:36])
def test_a_hostile_grid_is_refused(content, capsys):
    if isinstance(content, bytes) or "2020-02-30" not in content:
        refusal(capsys, "grid", written(content), "--dry-run", "--accelerator", "cpu")


@pytest.mark.parametrize("name", ["alias bomb", "nested lists", "many digits", "python object", "text", "nothing"])
def test_a_hostile_file_of_presets_is_refused(name, capsys):
    refusal(capsys, "config", "scan", "--preset", f"{written(FILES[name])}:mine")


def test_a_large_file_is_refused(capsys):
    with Path("mine.yaml").open("wb") as file:
        file.truncate(100_000_000)
    assert "too large" in refusal(capsys, "config", "scan", "--config", "mine.yaml")
    assert "too large" in refusal(capsys, "grid", "mine.yaml")


@pytest.mark.parametrize("path", ["nowhere.yaml", ".", "/dev/null", "/dev/zero", "a" * 5000 + ".yaml", "/dev/full"])
def test_what_is_no_file_of_settings_is_refused(path, capsys):
    refusal(capsys, "config", "scan", "--config", path)


GRIDS = [
    "axes: {train.steps: {from: 1, to: .inf}}",
    "axes: {train.steps: {from: .nan, to: 2}}",
    "axes: {train.learning_rate: {from: 1.0e-320, to: 1.0, count: 3, scale: log}}",
    "axes: {train.learning_rate: {from: 0.0, to: 1.0, step: 1.0e-320}}",
    "axes: {train.steps: {from: 0, to: 99999999999}}",
    "axes: {train.steps: {from: 1, to: 2, count: 99999999999}}",
    "axes: {train.steps: {from: 3, to: 2}}",
    "axes: {train.steps: {from: 3, to: 5, step: 0}}",
    "axes: {train.steps: {from: 3, to: 5, step: 1, count: 2}}",
    "axes: {train.steps: {from: 3, to: 5, scale: [log]}}",
    "axes: {train.steps: {from: true, to: 5}}",
    "axes: {train.steps: 3}",
    "axes: {train.steps: []}",
    "axes: [3]",
    "axes: {1: [2]}",
    "axes: {'': [2]}",
    "axes: {..: [2]}",
    f"axes: {{{'a.' * 3000}a: [2]}}",
    "axes: {model: [3], model.dim: [8]}",
    "axes: {data: [{split: length}], data.split: [simple]}",
    "seeds: 100000000000000000000000",
    "seeds: 0-99999999999",
    "seeds: 4-0",
    "seeds: -1",
    "seeds: {a: 1}",
    "seeds: []",
    "seeds: yes",
    "seeds: 1.5",
    "base: [1]",
    "base: {task: 3}",
    "base: {task: [scan]}",
    "base: {task: scan, train: 3}",
    "exclude: {arch: lstm}",
    "exclude: [{arc: lstm}]",
    "exclude: [3]",
    "exclude: [{arch: [lstm, transformer, cnn]}]\naxes: {arch: [lstm]}",
    "per: {when: {arch: lstm}}",
    "per: [{when: {arch: lstm}, axis: {}}]",
    "per: [{when: 3}]",
    "tiers: {quick: 3}",
    "tiers: [quick]",
    "smoke: [1]",
    "axis: {}",
]


@pytest.mark.parametrize("text", GRIDS, ids=range(len(GRIDS)))
def test_a_grid_of_impossible_values_is_refused(text, capsys):
    text = text if "base:" in text else f"base: {{task: scan}}\n{text}"
    refusal(capsys, "grid", written(text), "--dry-run", "--accelerator", "cpu")


BASELINES = ["", "[]", "{", "3", "[" * 100_000, '{"a":' * 5000, "9" * 5000, '{"rows": 3}', '{"rows": [3]}', "\0", "NaN"]


@pytest.mark.parametrize("path", ["nowhere.json", ".", "/dev/null", "/dev/zero"])
def test_what_is_no_baseline_is_refused(path, capsys):
    Path("results/study").mkdir(parents=True)
    refusal(capsys, "check", "study", "--against", path)


@pytest.mark.parametrize("text", BASELINES, ids=range(len(BASELINES)))
def test_a_damaged_baseline_is_refused(text, capsys):
    Path("results/study").mkdir(parents=True)
    refusal(capsys, "check", "study", "--against", written(text, "baseline.json"))


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from(["scan", "lstm", "0-3"])
)
keys = st.sampled_from(["task", "arch", "train.steps", "model", "model.dim", "from", "to", "step", "count", ""])
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
parts = st.sampled_from(["about", "base", "axes", "per", "exclude", "seeds", "smoke", "tiers"])


@settings(max_examples=100)
@given(st.dictionaries(parts, trees, max_size=4))
def test_any_tree_is_a_grid_or_is_refused(tree):
    with time_limit():
        try:
            found = expand(validated({"base": {"task": "copying", "arch": "lstm"}, **tree}))
        except UserError:
            return
    assert all(run.config.task for run in found)


@settings(max_examples=300)
@given(st.text(st.sampled_from("[]{}:,-?*&!|>'\"#% \n\tab01.e~<="), max_size=60))
def test_any_text_is_yaml_or_is_refused(text):
    with time_limit(), contextlib.suppress(UserError):
        assert len(str(parse_yaml(text, "the text"))) < 1000
