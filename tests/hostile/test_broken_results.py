"""A run is finished if its result is readable, undamaged and its own; all commands say the same."""

import json
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.commands import tfstudy
from tests.example_jobs import numbers_of
from tfstudy.analysis.collection import read_study
from tfstudy.errors import UserError
from tfstudy.runs.reader import decode_result, is_finished, read_predictions
from tfstudy.runs.status import run_status
from tfstudy.runs.studyfile import BrokenError

GRID = """
base:
  task: copying
  data: {train_examples: 40, eval_examples: 8}
  arch: lstm
  model: {dim: 8}
  train: {steps: 4, validation_interval: 2, log_interval: 1, batch_size: 8, warmup_steps: 1}
  eval: {max_examples: 8}
axes: {seed: [0, 1]}
"""
RUN = ["run", "copying", "--arch", "lstm", "--accelerator", "cpu", "--study", "grid", "--set", "model.dim=8"]
RUN += [w for s in ("steps=4", "validation_interval=2", "log_interval=1", "batch_size=8", "warmup_steps=1")
        for w in ("--set", f"train.{s}")]  # fmt: skip
RUN += ["--set", "eval.max_examples=8", "--set", "data.train_examples=40", "--set", "data.eval_examples=8"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The results of two finished runs."""
    folder = tmp_path_factory.mktemp("finished")
    for seed in ("0", "1"):
        assert tfstudy(*RUN, "--seed", seed, "--results", folder / "results") == 0
    return folder / "results"


@pytest.fixture
def runs(finished, tmp_path, monkeypatch) -> list[Path]:
    """The folders of copies of them, in `results/grid`."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, "results")
    Path("grid.yaml").write_text(GRID)
    return sorted(Path("results").glob("grid/*/*/s*"))


def edit(change):
    return lambda content: json.dumps(change(json.loads(content)), indent=1).encode()


DAMAGES = {
    "empty": lambda _: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "without its end": lambda content: content[:-1],
    "binary": lambda _: bytes(range(256)) * 9,
    "NULs": lambda content: bytes(len(content)),
    "a tail of NULs": lambda content: content[:-50] + bytes(50),
    "a list": lambda _: b"[]",
    "nothing of a result": lambda _: b"{}",
    "deep": lambda _: b'{"format": 2, "data_notes": ' + b"[" * 100_000,
    "deep slices": lambda content: content.replace(b'"slices": {', b'"slices": ' + b'{"a":' * 100_000 + b"{", 1),
    "a changed digit": lambda content: content.replace(b'"step": 4', b'"step": 5', 1),
    "an edited metric": edit(lambda r: r | {"train_tokens": 1.0}),
    "an added key": edit(lambda r: r | {"note": "x"}),
    "another seed": edit(lambda r: r | {"seed": 7, "digest": ""}),
    "another run": edit(lambda r: r | {"run": "f" * 64, "digest": ""}),
    "no metrics": edit(lambda r: r | {"splits": {}, "digest": ""}),
    "unknown status": edit(lambda r: r | {"status": "\x1b[2Jdone", "digest": ""}),
}


def damage(path: Path, name: str) -> bytes:
    damaged = DAMAGES[name]((path / "result.json").read_bytes())
    assert damaged != (path / "result.json").read_bytes()
    (path / "result.json").write_bytes(damaged)
    return damaged


@pytest.mark.parametrize("name", DAMAGES)
def test_all_commands_agree_that_a_run_with_a_broken_result_is_not_finished(name, runs, capsys):
    damage(runs[0], name)
    assert not is_finished(runs[0])
    assert run_status(runs[0]).state == "failed"
    assert [run.path for run in read_study(Path("results/grid")).runs] == runs[1:]
    assert tfstudy("status", "grid") == 0
    assert "1 failed" in " ".join(capsys.readouterr().out.split())
    assert tfstudy("list", "runs") == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if str(runs[0]) in line]
    assert line.startswith("failed")
    assert tfstudy("why", runs[0]) == 0
    out = capsys.readouterr().out
    assert "failed" in out.splitlines()[1]
    assert "up to date" not in out
    assert tfstudy("table", "grid") == 0
    assert "left out" in capsys.readouterr().out
    assert tfstudy("grid", "grid.yaml", "--dry-run", "--accelerator", "cpu") == 0
    assert "1 finished" in capsys.readouterr().out
    assert tfstudy("result", runs[0]) == 2
    assert tfstudy("predict", runs[0], "a b") == 2
    assert tfstudy(*RUN) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert ["--restart" in errors[2], "tfstudy retry" in errors[2], "\x1b" in errors[2]] == [True, True, False]


@pytest.mark.parametrize("command", [["grid", "grid.yaml", "--accelerator", "cpu"], ["retry", "grid"]])
def test_grid_and_retry_keep_a_broken_result_and_run_again(command, runs, finished):
    damaged = damage(runs[0], "truncated")
    assert tfstudy(*command) == 0
    assert (runs[0] / "result.broken-1.json").read_bytes() == damaged
    assert "kept as result.broken-1.json" in (runs[0] / "train.log").read_text()
    assert is_finished(runs[0])
    assert numbers_of(runs[0] / "result.json") == numbers_of(finished.parent / runs[0] / "result.json")


def test_a_grid_leaves_a_result_of_another_format_alone(runs):
    path = runs[0] / "result.json"
    content = path.read_bytes().replace(b'"format": 2', b'"format": 3')
    path.write_bytes(content)
    assert tfstudy("grid", "grid.yaml", "--accelerator", "cpu") == 1
    assert path.read_bytes() == content


def test_every_flipped_bit_of_a_result_is_found_or_harmless(runs):
    path = runs[0] / "result.json"
    content, sound = path.read_bytes(), replace(decode_result(runs[0]), digest="")
    generator = random.Random(0)
    wrong = []
    for place in generator.sample(range(len(content)), 400):
        damaged = bytearray(content)
        damaged[place] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        with suppress(BrokenError):  # a flip in the key of the digest leaves a sound record without one
            if replace(decode_result(runs[0]), digest="") != sound:
                wrong.append(place)
    assert wrong == []


def test_a_result_truncated_at_any_length_is_found(runs):
    path = runs[0] / "result.json"
    content = path.read_bytes()
    for length in range(0, len(content), 29):
        path.write_bytes(content[:length])
        assert not is_finished(runs[0])


def test_the_predictions_of_another_run_are_refused(runs):
    name = "predictions/test.jsonl.gz"
    assert len(read_predictions(runs[0], "test")) == 8
    shutil.copy(runs[1] / name, runs[0] / name)
    with pytest.raises(UserError, match="not those that were scored"):
        read_predictions(runs[0], "test")
