"""One hostile record breaks no command: it is left out by name, and the other runs of the study are shown."""

import gzip
import io
import json
import os
import signal
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.commands import tfstudy
from tests.example_records import ENVIRONMENT, GOLD, edit_result, predict, result, rival, write
from tfstudy.analysis.collection import read_study
from tfstudy.runs.find import find_runs
from tfstudy.runs.reader import (
    BrokenError,
    broken_because,
    decode_result,
    read_environments,
    read_failure,
    read_metrics,
    read_progress,
    read_test_reads,
)
from tfstudy.runs.schema import Environment, Result

LIMIT = 20  # seconds that a command may take
CONTROL = "\x1b[2J\x1b]0;title\x07"
DEEP = b"[" * 100_000
NAMES = "abcdefghi"
ALIASES = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise(NAMES)
)


def bomb() -> bytes:
    """Predictions of 2 MB that unpack to 450 MB."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1) as file:
        lines = b'{"source":"a","target":"a","prediction":"a"}\n' * 100_000
        for _ in range(100):
            file.write(lines)
    return buffer.getvalue()


def replaced(name, content):
    return lambda path: (path / name).write_bytes(content() if callable(content) else content)


def result_with(**more):
    return lambda path: edit_result(path, **more)


def environment_with(**more):
    return replaced("env.json", json.dumps([ENVIRONMENT | more]).encode())


def predictions(*rows):
    return replaced("predictions/test.jsonl.gz", gzip.compress(b"\n".join(rows)))


def pipe(name):
    def change(path):
        (path / name).unlink(missing_ok=True)
        os.mkfifo(path / name)

    return change


DIGITS = {"length": {"1" * 5000: {"n": 3, "metrics": {"exact_match": 1}}}}
RESULTS = {  # these runs are left out of tables
    "deep notes": replaced("result.json", b'{"format": 2, "data_notes": {"a": ' + DEEP),
    "deep slices": replaced("result.json", b'{"splits": {"test": {"slices": ' + b'{"a":' * 100_000),
    "control characters": result_with(preset=CONTROL),
    "a long preset": result_with(preset="x" * 100_000),
    "a task with a newline": result_with(task="a\nb"),
    "a split with a control": result_with(splits={CONTROL: result()["splits"]["test"]}),
    "a huge number": result_with(parameters=10**400),
    "infinite seconds": result_with(train_seconds=1e300),
    "a negative seed": result_with(seed=-1),
    "text for a number": result_with(parameters="many"),
    "a pipe": pipe("result.json"),
    "lengths that are none": result_with(lengths={"longest_tested": 5, "exact_match": {"x": {"n": 1}, "-5": {}}}),
    "a length without scores": result_with(lengths={"longest_tested": 5, "exact_match": {"5": {}}}),
    "a tag of 5,000 digits": result_with(splits={"test": result()["splits"]["test"] | {"slices": DIGITS}}),
    "64 MB of spaces": replaced("result.json", lambda: b" " * ((1 << 26) + 1)),
}
OTHERS = {  # these runs are shown, with what can be read of them; the config also stands in the other run's folder
    "a config of aliases": replaced("config.yaml", ALIASES.encode()),
    "a deep config": replaced("config.yaml", b"a: " + DEEP),
    "a config deep by lines": replaced("config.yaml", b"".join(b" " * n + b"a:\n" for n in range(1000))),
    "a large config": replaced("config.yaml", b"a: b\n" + b"# comment\n" * 200_000),
    "code in the config": replaced("config.yaml", b"a: !!python/object/apply:os.system [touch ran]\n"),
    "a binary config": replaced("config.yaml", bytes(range(256))),
    "a formula in the preset": result_with(preset="$\\frac{$"),
    "markup in the preset": result_with(preset="[bold]x[/nope] <script>"),
    "odd times": result_with(started="x", finished="9999999-99"),
    "an unknown task": result_with(task="nothing"),
    "a path as architecture": result_with(arch="../../x"),
    "a path as split": result_with(splits={"../../../x": result()["splits"]["test"]}),
    "slices without metrics": result_with(
        splits={"test": result()["splits"]["test"] | {"slices": {"length": {"5": {"n": 3}}, "x": {"y": {"n": 3}}}}}
    ),
    "versions: 5": environment_with(versions=5),
    "code_versions: [1]": environment_with(code_versions=[1]),
    "code_versions of 10^30": environment_with(code_versions={"model": 10**30}),
    "arguments: ['{']": environment_with(arguments=["{"]),
    "odd settings": environment_with(settings={"train": 5, "model": {"dim": [1]}, CONTROL: 1}),
    "a deep environment": replaced("env.json", b'[{"settings": {"a":' + DEEP),
    "a pipe as environment": pipe("env.json"),
    "a zip bomb": replaced("predictions/test.jsonl.gz", bomb),
    "predictions without target": predictions(b'{"source": "a", "prediction": "b"}'),
    "predictions of numbers": predictions(b'{"source": 1, "target": 2, "prediction": 3}'),
    "deep predictions": predictions(b'{"source":"a","target":"a","prediction":"b","tags":{"a":' + DEEP),
    "empty predictions": predictions(b'{"source":"","target":"","prediction":""}'),
    "odd tags": predictions(b'{"source":"a","target":"a","prediction":"b","tags":{"length":{"a":[1]},"x":null}}'),
    "a pipe as predictions": pipe("predictions/test.jsonl.gz"),
    "a pipe as log": pipe("train.log"),
    "plain text as predictions": replaced("predictions/test.jsonl.gz", b"hello"),
    "binary metrics": replaced("metrics.csv", bytes(range(256))),
    "binary test reads": replaced("test_reads.csv", bytes(range(256)) * 600),
    "deep progress": replaced("progress.json", b'{"steps":' + DEEP),
    "a failure with controls": replaced("failed.json", json.dumps({"reason": CONTROL}).encode()),
}


@pytest.fixture
def study(tmp_path, monkeypatch) -> Path:
    """A study of two architectures with two seeds each, all with predictions and curves."""
    monkeypatch.chdir(tmp_path)
    records = [made for seed in (0, 1) for made in (result(seed, 0.2 + seed / 100), rival(seed, 0.8))]
    study = predict(write(Path("results/study"), *records), (GOLD, GOLD), (GOLD, "a b"))
    for path in study.glob("*/*/s*"):
        (path / "metrics.csv").write_text("step,metric,value\n5,train_loss,1.0\n10,train_loss,0.5\n")
    return study


def answers(capsys, *words) -> tuple[int, str, str]:
    """The exit code and output of a command, which must end in time, without a traceback or control characters."""

    def late(*_):
        raise TimeoutError(f"{words} did not end in {LIMIT} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    try:
        code = tfstudy(*words)
    finally:
        signal.alarm(0)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert not {"\x1b", "\x07"} & set(out + err)
    return code, out, err


@pytest.mark.parametrize("name", [*RESULTS, *OTHERS])
def test_a_hostile_record_breaks_no_command(name, study, capsys):
    victim, other = sorted(study.glob("scan-length/cnn/s*"))
    (RESULTS | OTHERS)[name](victim)
    found = read_study(study)
    if name in RESULTS:
        assert [run.path.name for run in found.runs] == ["s1-cnn1", *[f"s{n}-{n:064d}" for n in (0, 1)]]
        assert [path for path, _ in found.left_out] == [victim]
    code, out, _ = answers(capsys, "table", "study")
    assert code == 0
    assert ("left out" in out) == (name in RESULTS)
    assert answers(capsys, "status", "study")[0] == 0
    code, out, _ = answers(capsys, "list", "runs")
    assert code == 0
    assert str(victim) in out
    for words in (["why", victim], ["diff", victim, other], ["result", victim], ["errors", victim], ["logs", victim]):
        code, _, err = answers(capsys, *words)
        assert code in (0, 2)
        assert (code == 2) == (err.count("\n") == 1 and err.startswith("error: "))
    assert answers(capsys, "retry", "study", "--dry-run")[0] in (0, 1)
    assert not Path("ran").exists()


@pytest.mark.parametrize("name", ["a zip bomb", "deep notes", "slices without metrics", "a tag of 5,000 digits"])
def test_a_report_and_plots_are_made_in_spite_of_a_hostile_record(name, study, capsys):
    victim = min(study.glob("scan-length/cnn/s*"))
    (RESULTS | OTHERS)[name](victim)
    OTHERS["a formula in the preset"](max(study.glob("scan-length/lstm/s*")))
    assert answers(capsys, "report", "study", "--out", "report")[0] == 0
    code, _, err = answers(capsys, "plot", "study", "--kind", "errors", "--out", "errors.svg")
    assert code == 0
    assert (f"left out: {victim} has no readable predictions" in err) == (name == "a zip bomb")


def test_a_pipe_as_the_lock_of_an_unfinished_run_is_not_waited_for(study, capsys):
    victim = min(study.glob("scan-length/cnn/s*"))
    (victim / "result.json").unlink()
    pipe(".lock")(victim)
    assert answers(capsys, "status", "study")[0] == 0


def test_a_pipe_is_no_run(study):
    victim = min(study.glob("scan-length/cnn/s*"))
    pipe("config.yaml")(victim)
    assert victim not in list(find_runs(study))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)
FIELDS = {kind: st.dictionaries(st.sampled_from(kind.__struct_fields__), VALUES) for kind in (Result, Environment)}
PROFILE = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@PROFILE
@given(more=FIELDS[Result])
def test_any_values_of_a_result_are_read_or_refused(tmp_path, more):
    (tmp_path / "result.json").write_text(json.dumps(result() | more))
    broken = broken_because(tmp_path)
    assert broken.startswith("the result ") or decode_result(tmp_path).status in ("finished", "diverged")


@PROFILE
@given(entries=st.lists(FIELDS[Environment], max_size=3) | VALUES)
def test_any_values_of_an_environment_are_read_or_ignored(tmp_path, entries):
    (tmp_path / "env.json").write_text(json.dumps(entries))
    assert all(isinstance(entry.versions, dict) for entry in read_environments(tmp_path))


@PROFILE
@given(
    content=st.binary(max_size=200)
    | st.text(alphabet='{}[]",:0123456789eE.-\n\x00stepvalu', max_size=80).map(str.encode)
)
def test_any_bytes_in_the_small_files_are_read_or_ignored(tmp_path, content):
    for name in ("env.json", "progress.json", "failed.json", "test_reads.csv", "metrics.csv", "result.json"):
        (tmp_path / name).write_bytes(content)
    read_environments(tmp_path), read_progress(tmp_path), read_metrics(tmp_path)
    assert read_failure(tmp_path) is not None
    assert all(count > 0 for count in read_test_reads(tmp_path).values())
    with pytest.raises(BrokenError):
        decode_result(tmp_path)
