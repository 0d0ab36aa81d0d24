"""Runs that differ only in decoding or evaluation reuse trained weights; all other runs are trained."""

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import command
from tfstudy import tasks
from tfstudy.experiment import reuse
from tfstudy.experiment.reuse import INDEX, KEY, index_weights
from tfstudy.runs.reader import read_config

BEAM = ["--set", "decode.method=beam", "--set", "decode.beam_size=3"]
REUSED = "reusing the weights of"


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def results() -> dict[str, dict]:
    return {str(path.parent): json.loads(path.read_text()) for path in Path().glob("results/runs/*/*/*/result.json")}


def new_run(before: dict[str, dict]) -> tuple[Path, dict]:
    [(path, result)] = [item for item in results().items() if item[0] not in before]
    return Path(path), result


def test_reused_weights_give_the_same_records_as_training(finished_run, capsys):
    finished_run()
    first = results()
    capsys.readouterr()
    assert tfstudy(*command(), *BEAM) == 0
    assert REUSED in capsys.readouterr().err
    path, result = new_run(first)
    assert [result["reused_from"]] == [Path(name).name for name in first]
    shared = {name: (path / name).read_bytes() for name in ("metrics.csv", "predictions/test.jsonl.gz")}
    assert tfstudy(*command(), *BEAM, "--restart") == 0
    assert REUSED not in capsys.readouterr().err
    assert {name: (path / name).read_bytes() for name in shared} == shared
    assert json.loads((path / "result.json").read_text())["reused_from"] is None
    assert tfstudy("predict", path, "a b c") == 0


def test_damaged_weights_are_neither_reused_nor_used(finished_run, capsys):
    finished_run()
    first = results()
    [path] = map(Path, first)
    for name in ("last.ckpt", "best.ckpt"):
        content = bytearray((path / "checkpoints" / name).read_bytes())
        content[len(content) // 2] ^= 1
        (path / "checkpoints" / name).write_bytes(content)
    capsys.readouterr()
    for words in (["predict", path, "a b"], ["evaluate", path]):
        assert tfstudy(*words) == 2
        assert "last.ckpt is damaged: its digest does not match" in capsys.readouterr().err
    assert tfstudy(*command(), *BEAM) == 0
    err = capsys.readouterr().err
    assert f"the weights of {path.name} can't be reused" in err
    assert REUSED not in err
    assert new_run(first)[1]["reused_from"] is None


@pytest.mark.parametrize(
    "other", [["--seed", "1"], ["--set", "train.gradient_clip_norm=2"], ["--set", "data.seed=1"]], ids=str
)
def test_a_run_with_other_training_settings_is_trained(finished_run, other, capsys):
    finished_run()
    assert tfstudy(*command(), *BEAM, *other) == 0
    assert REUSED not in capsys.readouterr().err


def test_weights_of_another_version_of_the_code_are_not_reused(finished_run, monkeypatch, capsys):
    finished_run()
    monkeypatch.setattr("tfstudy.training.version.VERSION", 99)
    assert tfstudy(*command(), *BEAM) == 0
    assert REUSED not in capsys.readouterr().err


def test_a_run_that_has_lost_its_weights_is_not_reused(finished_run, capsys):
    finished_run()
    [path] = map(Path, results())
    (path / "checkpoints" / "last.ckpt").unlink()
    assert tfstudy(*command(), *BEAM) == 0
    assert REUSED not in capsys.readouterr().err


def test_weights_are_reused_although_rounding_and_code_have_changed(finished_run, monkeypatch, capsys):
    finished_run()
    monkeypatch.setattr("tfstudy.runs.environment.code_digest", lambda module: "other code")
    assert tfstudy(*command(), *BEAM) == 0
    assert REUSED in capsys.readouterr().err


def neighbours(path: Path, count: int) -> None:
    """Copies of a run under other names, with other keys in the index."""
    for number in range(count):
        name = f"s3-{number:08x}"
        shutil.copytree(path, path.with_name(name))
        index_weights(path.with_name(name), f"{number:0{KEY}x}")


@pytest.fixture
def read(monkeypatch):
    """The names of the runs whose records are read in search of weights."""
    names: list[str] = []
    monkeypatch.setattr(reuse, "read_config", lambda path: names.append(path.name) or read_config(path))
    return names


def test_only_the_run_that_the_index_names_is_read(finished_run, capsys, read):
    finished_run()
    first = results()
    [path] = map(Path, first)
    neighbours(path, 5)
    assert tfstudy(*command(), *BEAM) == 0
    assert f"{REUSED} {path}" in capsys.readouterr().err
    assert read == [path.name]
    assert tfstudy(*command(), *BEAM, "--set", "train.gradient_clip_norm=2") == 0
    assert read == [path.name]


def test_an_index_that_names_another_run_is_not_believed(capsys, read):
    assert tfstudy(*command(), "--set", "train.gradient_clip_norm=2") == 0
    [other] = map(Path, results())
    assert tfstudy(*command()) == 0
    [same] = {Path(name) for name in results()} - {other}
    [entry] = (same.parents[2] / INDEX).glob(f"*-{same.name}")
    entry.rename(entry.with_name(f"{entry.name[:KEY]}-{other.name}"))
    shutil.rmtree(same)
    assert tfstudy(*command(), *BEAM) == 0
    assert REUSED not in capsys.readouterr().err
    assert read == [other.name]


def test_records_of_older_code_are_added_to_the_index_when_they_are_first_read(finished_run, capsys, read):
    finished_run()
    [path] = map(Path, results())
    index = sorted((path.parents[2] / INDEX).iterdir())
    shutil.rmtree(path.parents[2] / INDEX)
    other = ["--set", "train.gradient_clip_norm=2"]
    assert tfstudy(*command(), *other) == 0
    assert read == [path.name]
    assert index[0] in (path.parents[2] / INDEX).iterdir()
    assert tfstudy(*command(), *BEAM) == 0
    assert REUSED in capsys.readouterr().err
    assert read == [path.name] * 2


def test_an_index_that_cannot_be_written_changes_nothing(finished_run, capsys):
    finished_run()
    [path] = map(Path, results())
    shutil.rmtree(path.parents[2] / INDEX)
    (path.parents[2] / INDEX).write_text("")
    assert tfstudy(*command(), *BEAM) == 0
    assert REUSED in capsys.readouterr().err
