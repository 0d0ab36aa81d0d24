"""Damaged, edited and foreign files of a run are refused with one message, and kept."""

import shutil
from pathlib import Path

import pytest
import torch

from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import assert_same, at_row, command, folder, killed
from tfstudy import tasks
from tfstudy.errors import UserError
from tfstudy.runs.reader import read_result


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


ATTEMPT = ("env.json", "progress.json")  # every attempt adds to these


def files(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file() and file.name != ".lock"}


def interrupted(step: int = 15) -> Path:
    """A run that was killed at this step, with a checkpoint at 10."""
    killed(command(), at_row(step))
    return folder()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda _: b"",
        lambda _: b"garbage" * 99,
        lambda content: content[:2000] + bytes(500) + content[2500:],
    ],
    ids=["truncated", "empty", "garbage", "overwritten"],
)
def test_a_run_with_a_damaged_checkpoint_goes_back_to_the_one_before(damage, capsys, undisturbed):
    path = interrupted(25)
    checkpoint = path / "checkpoints/last.ckpt"
    damaged = damage(checkpoint.read_bytes())
    checkpoint.write_bytes(damaged)
    assert tfstudy(*command()) == 0
    err = capsys.readouterr().err
    assert f"{checkpoint} is damaged and is not used (kept as last.ckpt.damaged)" in err
    assert "resuming after step 10" in err
    assert checkpoint.with_name("last.ckpt.damaged").read_bytes() == damaged
    assert not checkpoint.with_name("previous.ckpt").exists(), "once the run is finished"
    assert_same(path, undisturbed(command()))


def test_a_run_whose_only_checkpoint_is_damaged_starts_again(capsys, undisturbed):
    path = interrupted(15)
    (path / "checkpoints/last.ckpt").write_bytes(b"garbage")
    assert tfstudy(*command()) == 0
    err = capsys.readouterr().err
    assert "last.ckpt is damaged" in err
    assert "resuming" not in err
    assert_same(path, undisturbed(command()))


def test_a_checkpoint_of_other_software_is_refused(capsys):
    path = interrupted()
    torch.save({"state_dict": {}}, path / "checkpoints/last.ckpt")
    assert tfstudy(*command()) == 2
    assert "last.ckpt is not a checkpoint of a run" in capsys.readouterr().err


def test_another_runs_checkpoint_is_refused_and_kept(capsys):
    killed(command("lstm", "--seed", "1"), at_row(15))
    foreign = folder() / "checkpoints/last.ckpt"
    content = foreign.read_bytes()
    other = folder()
    other.rename(other.with_name("other"))
    killed(command(), at_row(15))
    shutil.rmtree(other.with_name("other"))
    (folder() / "checkpoints/last.ckpt").write_bytes(content)
    before = files(folder())
    assert tfstudy(*command()) == 2
    assert "belongs to another run" in capsys.readouterr().err
    assert all(files(folder())[file] == text for file, text in before.items() if file.name not in ATTEMPT)
    assert tfstudy(*command("lstm", "--restart")) == 0


def test_a_run_without_its_checkpoint_is_trained_from_the_start(capsys, undisturbed):
    path = interrupted()
    shutil.rmtree(path / "checkpoints")
    assert tfstudy(*command()) == 0
    assert "resuming" not in capsys.readouterr().err
    assert_same(folder(), undisturbed(command()))


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("steps: 40", "steps: 50"),
        lambda text: text.replace("arch: lstm", "arch: cnn"),
        lambda _: "",
        lambda _: "- a list",
        lambda _: "a: [",
        lambda text: text + "extra: 1\n",
    ],
)
@pytest.mark.parametrize("finished", [False, True])
def test_an_edited_config_is_refused_and_nothing_is_changed(edit, finished, capsys):
    path = interrupted(40 if finished else 5)
    if finished:
        (path / "result.json").write_text("{}")
    config = path / "config.yaml"
    config.write_text(edit(config.read_text()))
    before = files(path)
    assert tfstudy(*command()) == 2
    assert f"{config} was edited" in capsys.readouterr().err
    assert files(path) == before


def test_a_comment_in_the_config_does_not_count_as_an_edit():
    path = interrupted(5)
    with (path / "config.yaml").open("a") as file:
        file.write("# looks good\n")
    assert tfstudy(*command()) == 0


def test_a_result_of_another_format_is_refused(tmp_path, capsys):
    path = interrupted(5)
    (path / "result.json").write_text('{"format": 99, "run": "x"}')
    with pytest.raises(UserError, match=r"result\.json.* format 99"):
        read_result(path)
    assert tfstudy(*command()) == 2
    assert "format 99" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", "[]", "\udcff", "3"])
def test_a_result_that_is_no_result_is_refused(text, tmp_path):
    (tmp_path / "result.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=r"result\.json"):
        read_result(tmp_path)


def test_of_a_run_that_has_not_finished_the_command_that_resumes_it_is_named(tmp_path):
    with pytest.raises(UserError, match="scan/scan-length/lstm/s0 has not finished; `tfstudy retry scan` resumes it"):
        read_result(Path("results/scan/scan-length/lstm/s0"))
    (tmp_path / "progress.json").write_text('{"steps": 10, "tuning": true}')
    with pytest.raises(UserError, match="has not finished; the `tfstudy tune` command of its search resumes it"):
        read_result(tmp_path)
