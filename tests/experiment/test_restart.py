"""The same command again: a finished run is left alone, `--restart` archives it, a running one is safe.

Runs that differ only in decoding or evaluation reuse trained weights; all other runs are trained.
"""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import assert_same, at_row, command, folder, forked
from tfstudy import tasks
from tfstudy.runs.store import read_result

BEAM = ["--set", "decode.method=beam", "--set", "decode.beam_size=3"]
REUSED = "reusing the weights of"


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def test_the_same_command_twice_does_no_work_and_says_so(finished_run, capsys):
    finished_run()
    before = {path: path.stat().st_mtime_ns for path in folder().rglob("*") if path.is_file() and path.name != ".lock"}
    capsys.readouterr()
    assert tfstudy(*command()) == 0
    out, err = capsys.readouterr()
    assert f"{folder()}" in out
    assert "already finished" in err
    assert "a restart runs it again" in err
    assert "reverse short, lstm" in out, "the result is shown again"
    after = {path: path.stat().st_mtime_ns for path in folder().rglob("*") if path.is_file() and path.name != ".lock"}
    assert after == before


def test_restart_archives_the_whole_run_and_runs_it_again(finished_run, capsys):
    finished_run()
    old = {path.relative_to(folder()): path.read_bytes() for path in folder().rglob("*") if path.is_file()}
    capsys.readouterr()
    for number in (1, 2):
        assert tfstudy(*command("lstm", "--restart")) == 0
        archived = folder().with_name(f"{folder().name}.old-{number}")
        assert (archived / "result.json").exists()
        assert archived.name in capsys.readouterr().err
    archived = folder().with_name(f"{folder().name}.old-1")
    for name, content in old.items():
        assert name.name == ".lock" or (archived / name).read_bytes() == content
    assert_same(folder(), archived)
    assert json.loads((folder() / "result.json").read_text())["test_reads"] == {"test": 1}


def test_a_run_of_another_process_is_refused_until_that_has_died(undisturbed, capsys):
    process = forked(command(), at_row(15, signal.pause))
    try:
        deadline = time.monotonic() + 60
        while not list(Path("results").glob("runs/*/*/*/metrics.csv")) and time.monotonic() < deadline:
            time.sleep(0.01)
        for more in ([], ["--restart"]):
            assert tfstudy(*command("lstm", *more)) == 2
            err = capsys.readouterr().err
            assert f"process {process} on " in err
        assert tfstudy(*command("lstm", "--seed", "1", "--results", "others")) == 0
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    assert tfstudy(*command()) == 0
    assert_same(folder(), undisturbed(command()))
    assert not list(folder().parent.glob("*.old-*"))


def test_reused_weights_give_the_same_records_as_training(finished_run, capsys):
    first = finished_run()
    capsys.readouterr()
    assert tfstudy(*command(), *BEAM) == 0
    assert REUSED in capsys.readouterr().err
    [path] = set(first.parent.glob("s*")) - {first}
    assert read_result(path).reused_from == first.name
    shared = {name: (path / name).read_bytes() for name in ("metrics.csv", "predictions/test.jsonl.gz")}
    assert tfstudy(*command(), *BEAM, "--restart") == 0
    assert REUSED not in capsys.readouterr().err
    assert {name: (path / name).read_bytes() for name in shared} == shared
    assert read_result(path).reused_from is None
    assert tfstudy("predict", path, "a b c") == 0


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_damaged_weights_are_neither_reused_nor_used(finished_run, capsys):
    path = finished_run()
    for name in ("last.ckpt", "best.ckpt"):
        damage(path / "checkpoints" / name)
    for words in (["predict", path, "a b"], ["evaluate", path]):
        assert tfstudy(*words) == 2
        assert "last.ckpt is damaged: its digest does not match" in capsys.readouterr().err
    assert tfstudy(*command(), *BEAM) == 0
    err = capsys.readouterr().err
    assert f"the weights of {path.name} can't be reused" in err
    assert REUSED not in err


@pytest.mark.parametrize("other", ["train.gradient_clip_norm=2", "data.seed=1", "version", "lost"])
def test_a_run_with_other_training_settings_code_or_lost_weights_is_trained(finished_run, other, capsys, monkeypatch):
    path = finished_run()
    if other == "version":
        monkeypatch.setattr("tfstudy.training.VERSION", 99)
    if other == "lost":
        (path / "checkpoints" / "last.ckpt").unlink()
    assert tfstudy(*command(), *BEAM, *(["--set", other] if "=" in other else [])) == 0
    assert REUSED not in capsys.readouterr().err
