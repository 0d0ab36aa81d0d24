"""Damaged and hostile records of runs: found, refused by name, and never run; the other runs of a study are shown."""

import gzip
import json
import os
import random
import shutil
import struct
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from safetensors.torch import save

from tests.commands import tfstudy
from tests.example_records import ENVIRONMENT, GOLD, edit_result, predict, result, rival, write
from tests.example_study import CONFIG, finish_run, planned
from tfstudy.analysis.frame import read_study
from tfstudy.errors import UserError
from tfstudy.runs import reader
from tfstudy.runs.reader import (
    broken_because,
    decode_result,
    is_finished,
    read_environments,
    read_failure,
    read_metrics,
    read_predictions,
    read_progress,
    read_test_reads,
)
from tfstudy.runs.schema import Environment, Prediction, Result
from tfstudy.runs.studyfile import BrokenError
from tfstudy.runs.writer import RunFolder
from tfstudy.training.checkpoints import (
    ENTRY,
    STATE_KEY,
    DamagedError,
    load_checkpoint,
    load_weights,
    save_checkpoint,
    save_weights,
)

RUN = "a" * 64
CONTROL = "\x1b[2J\x1b]0;title\x07"
DEEP = b"[" * 100_000
LINE = b'{"source":"a","target":"a","prediction":"a"}\n'  # of predictions
WEIGHTS = {"layer.weight": torch.arange(300.0).reshape(20, 15), "layer.bias": torch.zeros(7), "count": torch.tensor(3)}


def replaced(name, content):
    return lambda path: (path / name).write_bytes(content)


def result_with(**more):
    return lambda path: edit_result(path, **more)


def pipe(name):
    def change(path):
        (path / name).unlink(missing_ok=True)
        os.mkfifo(path / name)

    return change


UNSOUND = {  # these runs are left out of tables
    "deep slices": replaced("result.json", b'{"splits": {"test": {"slices": ' + b'{"a":' * 100_000),
    "another seed": result_with(seed=7),
    "another status": result_with(status=f"{CONTROL}done"),
    "a pipe as result": pipe("result.json"),
    "a large result": replaced("result.json", b" " * 200_001),
}
SOUND = {  # these runs are shown, with what can be read of them
    "a config with aliases": replaced("config.yaml", b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"),
    "code in the config": replaced("config.yaml", b"a: !!python/object/apply:os.system [touch ran]\n"),
    "control characters": result_with(preset=CONTROL, task="a\nb", splits={CONTROL: result()["splits"]["test"]}),
    "paths as names": result_with(arch="../../x", splits={"../../../x": result()["splits"]["test"]}),
    "no metrics": result_with(splits={"test": result()["splits"]["test"] | {"n": 0, "metrics": {}}}),
    "a deep environment": replaced("env.json", b'[{"settings": {"a":' + DEEP),
    "a bomb": replaced(
        "predictions/test.jsonl.gz", gzip.compress(b'{"source":"a","target":"a","prediction":"a"}\n' * 9999)
    ),
    "pipes": lambda path: [pipe(name)(path) for name in ("predictions/test.jsonl.gz", "train.log", "env.json")],
    "binary small files": lambda path: [
        replaced(name, bytes(range(256)) * 600)(path) for name in ("metrics.csv", "test_reads.csv", "progress.json")
    ],
}


@pytest.fixture
def study(tmp_path, monkeypatch) -> Path:
    """A study of two architectures with two seeds each, all with predictions and curves."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reader, "MAX_BYTES", 200_000)
    monkeypatch.setattr(reader, "MAX_PREDICTIONS", 200_000)
    records = [made for seed in (0, 1) for made in (result(seed, 0.2 + seed / 100), rival(seed, 0.8))]
    study = predict(write(Path("results/study"), *records), (GOLD, GOLD), (GOLD, "a b"))
    for path in study.glob("*/*/s*"):
        (path / "metrics.csv").write_text("step,metric,value\n5,train_loss,1.0\n10,train_loss,0.5\n")
    return study


def answers(capsys, *words) -> tuple[int, str, str]:
    """The exit code and output of a command, which must end, without a traceback or control characters."""
    code = tfstudy(*words)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert not {"\x1b", "\x07"} & set(out + err)
    return code, out, err


@pytest.mark.parametrize("name", [*UNSOUND, *SOUND])
def test_a_hostile_record_breaks_no_command(name, study, capsys):
    victim, other = sorted(study.glob("scan-length/cnn/s*"))
    (UNSOUND | SOUND)[name](victim)
    if name in UNSOUND:
        assert [path for path, _ in read_study(study).left_out] == [victim]
    code, out, _ = answers(capsys, "table", "study")
    assert (code, "left out" in out) == (0, name in UNSOUND)
    assert answers(capsys, "status", "study")[0] == 0
    code, out, _ = answers(capsys, "list", "runs")
    assert (code, str(victim) in out) == (0, True)
    for words in (
        ["result", victim, "--changes"],
        ["result", victim, other],
        ["result", victim],
        ["errors", victim],
        ["result", victim, "--log"],
    ):
        code, _, err = answers(capsys, *words)
        assert (code == 2) == (err.count("\n") == 1 and err.startswith("error: "))
    assert answers(capsys, "grid", "--resume", "study", "--dry-run")[0] in (0, 1)
    if name in ("deep slices", "control characters", "a bomb"):
        assert answers(capsys, "report", "study", "--out", "report")[0] == 0
    assert not Path("ran").exists()


@pytest.fixture
def finished(tmp_path) -> Path:
    """A finished run with a digest, and with predictions."""
    path = finish_run(tmp_path / "s0-abcd1234")
    folder = RunFolder(path, "")
    folder.write_predictions("test", [Prediction("a", "b", "b")])
    folder.finish(decode_result(path))
    return path


def test_a_damaged_result_is_found(finished):
    file = finished / "result.json"
    content, sound = file.read_bytes(), replace(decode_result(finished), digest="")
    for damaged in (b"", b"[]", content[:-1], content[:-50] + bytes(50), content.replace(b'"n": 10', b'"n": 11')):
        file.write_bytes(damaged)
        assert not is_finished(finished)
    generator = random.Random(0)
    for place in generator.sample(range(len(content)), 200):
        flipped = bytearray(content)
        flipped[place] ^= 1 << generator.randrange(8)
        file.write_bytes(flipped)
        with suppress(BrokenError):  # a flip in the key of the digest leaves a sound record without one
            assert replace(decode_result(finished), digest="") == sound, place


def test_the_predictions_of_another_run_are_refused(finished):
    assert len(read_predictions(finished, "test")) == 1
    RunFolder(finished, "").write_predictions("test", [Prediction("a", "b", "c")])
    with pytest.raises(UserError, match="not those that were scored"):
        read_predictions(finished, "test")


def test_a_broken_result_is_kept_and_its_run_goes_on_while_another_format_is_left_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = CONFIG | {"train": {"steps": 2, "validation_interval": 2, "log_interval": 2}, "model": {"dim": 8}}
    Path("grid.yaml").write_text(json.dumps({"base": small, "axes": {"seed": [0]}}))
    grid = ["grid", "grid.yaml", "--study", "study", "--accelerator", "cpu", "--quiet"]
    assert tfstudy(*grid) == 0
    [file] = Path("results/study").glob("*/*/s*/result.json")
    splits = json.loads(file.read_text())["splits"]
    file.write_bytes(file.read_bytes()[:-9])
    assert tfstudy("run", "--config", file.with_name("config.yaml"), "--study", "study") == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert all(fact in error for fact in ("--restart", "tfstudy grid --resume"))
    assert tfstudy(*grid) == 0
    assert file.with_name("result.broken-1.json").exists()
    assert json.loads(file.read_text())["splits"] == splits
    file.write_bytes(other := file.read_bytes().replace(b'"format": 2', b'"format": 3'))
    assert tfstudy(*grid) == 1
    assert file.read_bytes() == other


class Command:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_no_damaged_or_foreign_checkpoint_is_loaded_and_no_code_in_it_runs(tmp_path):
    path = tmp_path / "last.ckpt"
    content = {"state_dict": {"model.weight": torch.arange(300.0)}, "global_step": 10}
    sound = content | {"callbacks": {STATE_KEY: {"run": RUN, "best": 1.0}}}
    save_checkpoint(sound, path)
    assert torch.equal(load_checkpoint(path, RUN)["state_dict"]["model.weight"], torch.arange(300.0))
    data = path.read_bytes()
    generator = random.Random(0)
    places = [generator.randrange(len(data)) for _ in range(150)]
    damaged = [data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :] for place in places]
    for one in [*damaged, *(data[:length] for length in range(0, len(data), 200)), data + b"\0"]:
        path.write_bytes(one)
        with pytest.raises(DamagedError):
            load_checkpoint(path, RUN)
    for foreign in ({}, 3, {"callbacks": 5}, content, sound | {"more": Command(tmp_path / "ran")}):
        save_checkpoint(foreign, path)
        with pytest.raises(UserError) as error:
            load_checkpoint(path, RUN)
        assert not isinstance(error.value, DamagedError)
    save_checkpoint(sound, path)
    with pytest.raises(UserError, match="belongs to another run"):
        load_checkpoint(path, "b" * 64)
    assert not (tmp_path / "ran").exists()


def refused(path, run=RUN) -> str:
    """The message by which shared weights are refused, which is one line."""
    with pytest.raises(UserError) as error:
        load_weights(path, WEIGHTS, run)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_no_damaged_or_foreign_shared_weights_are_loaded(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_weights(WEIGHTS, path, RUN)
    loaded, data = load_weights(path, WEIGHTS, RUN), path.read_bytes()
    assert all(torch.equal(loaded[name], WEIGHTS[name]) for name in WEIGHTS)
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    header["layer.bias"]["data_offsets"] = [0, 28]  # overlaps another
    headers = (b"", b"null", DEEP[:5000], json.dumps(header).encode())
    damaged = [struct.pack("<Q", len(one)) + one + data[end:] for one in headers]
    damaged += [struct.pack("<Q", length) + data[8:] for length in (0, 1 << 40, (1 << 64) - 1)]
    places = [random.Random(place).randrange(len(data)) for place in range(100)]
    damaged += [data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :] for place in places]
    for one in [*damaged, *(data[:length] for length in range(0, len(data), 200)), data + b"\0"]:
        path.write_bytes(one)
        refused(path)
    for changes, fact in (
        ({"layer.bias": torch.zeros(7, 1)}, "shape ('layer.bias')"),
        ({"layer.bias": torch.zeros(7, dtype=torch.int32)}, "type ('layer.bias')"),
        ({"another": torch.zeros(1)}, "name ('another')"),
    ):
        save_weights(WEIGHTS | changes, path, RUN)
        assert fact in refused(path)
    path.write_bytes(save(WEIGHTS, metadata={ENTRY: RUN}))
    assert "damaged" in refused(path)
    assert "belongs to another run (aaaaaaaa" in refused(path, "b" * 64)
    with pytest.raises(UserError, match="not finite"):
        save_weights(WEIGHTS | {"layer.bias": torch.full((7,), float("nan"))}, path, RUN)
    with path.open("r+b") as file:
        file.truncate(1 << 40)  # without a byte on the disk
    assert "bytes" in refused(path)
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    assert "can't read" in refused(path)


def test_no_module_that_a_record_names_is_imported(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("payload.py").write_text("open('ran', 'w')\n")
    path = finish_run(Path(planned("0")[0].path))
    (path / "config.yaml").write_text(json.dumps(CONFIG))
    names = [
        "payload",
        "antigravity",
        "..x",
        "",
        "tasks.../payload",
        "tasks.payload\x00",
        "tasks.\x1b[2J",
        "os." * 5000,
    ]
    known = {"tfstudy.training.module": "0" * 16, "tasks.vanished": "0" * 16}
    entry = ENVIRONMENT | {"syntax_trees": dict.fromkeys(names, "0" * 16) | known}
    (path / "env.json").write_text(json.dumps([entry]))
    assert tfstudy("result", path, "--changes") == 0
    captured = capfd.readouterr()
    assert "the code of 2 modules has changed" in captured.out
    assert "tfstudy.tasks.vanished (no longer exists), tfstudy.training.module" in captured.out
    assert (captured.err, "\x1b[2J" in captured.out) == ("", False)
    assert not Path("ran").exists()
    assert not {"payload", "antigravity"} & set(sys.modules)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)
FIELDS = {kind: st.dictionaries(st.sampled_from(kind.__struct_fields__), VALUES) for kind in (Result, Environment)}
PROFILE = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@PROFILE
@given(more=FIELDS[Result], entries=st.lists(FIELDS[Environment], max_size=3) | VALUES)
def test_any_values_of_a_record_are_read_or_refused(tmp_path, more, entries):
    (tmp_path / "result.json").write_text(json.dumps(result() | more))
    broken = broken_because(tmp_path)
    assert broken.startswith("the result ") or decode_result(tmp_path).status in ("finished", "diverged")
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
