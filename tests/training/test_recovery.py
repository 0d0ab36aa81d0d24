"""From which checkpoint an interrupted run continues."""

import pytest
import torch

from tfstudy.errors import UserError
from tfstudy.training.checkpoints import STATE_KEY, load_checkpoint, resumable_checkpoint, save_checkpoint

RUN = "a" * 64


def save(folder, name, step, best_step, run=RUN, best=1.0):
    state = {"run": run, "best": best, "best_step": best_step}
    weights = {"model.weight": torch.full((50,), float(step))}
    save_checkpoint({"state_dict": weights, "global_step": step, "callbacks": {STATE_KEY: state}}, folder / name)


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def resumed(folder, best_needed=True):
    """The step of the checkpoint, 0 without one, and the lines that were reported."""
    lines = []
    checkpoint = resumable_checkpoint(folder, RUN, best_needed, lines.append)
    return checkpoint["global_step"] if checkpoint else 0, lines


@pytest.fixture
def folder(tmp_path):
    """The checkpoints of a run after step 30, whose best one was after step 10."""
    for name, step in (("last.ckpt", 30), ("previous.ckpt", 20), ("best.ckpt", 10)):
        save(tmp_path, name, step, best_step=10)
    return tmp_path


def test_a_run_without_checkpoints_starts_at_the_beginning(tmp_path):
    assert resumed(tmp_path) == (0, [])
    assert resumed(tmp_path / "missing") == (0, [])


def test_a_sound_run_continues_from_its_last_checkpoint(folder):
    assert resumed(folder) == (30, [])


def test_a_run_with_a_damaged_last_checkpoint_continues_from_the_one_before(folder):
    damage(folder / "last.ckpt")
    step, lines = resumed(folder)
    assert step == 20
    assert lines == [f"{folder / 'last.ckpt'} is damaged and is not used (kept as last.ckpt.damaged)"]
    assert load_checkpoint(folder / "last.ckpt", RUN)["global_step"] == 20
    assert (folder / "last.ckpt.damaged").exists()
    assert not (folder / "previous.ckpt").exists()
    assert resumed(folder) == (20, []), "also in a later attempt"


def test_a_run_with_two_damaged_checkpoints_starts_again(folder):
    damage(folder / "last.ckpt")
    damage(folder / "previous.ckpt")
    step, lines = resumed(folder)
    assert step == 0
    assert ["last.ckpt is damaged" in lines[0], "previous.ckpt is damaged" in lines[1]] == [True, True]
    assert resumed(folder) == (0, [])


def test_disk_use_stays_bounded_however_often_a_checkpoint_is_damaged(folder):
    for _ in range(5):
        save(folder, "last.ckpt", 30, 10)
        damage(folder / "last.ckpt")
        resumed(folder)
    assert len(list(folder.iterdir())) <= 4


def test_without_the_best_checkpoint_a_run_that_is_scored_with_it_starts_again(folder):
    damage(folder / "best.ckpt")
    step, lines = resumed(folder)
    assert step == 0
    assert "training starts again" in lines[-1]


def test_without_the_best_checkpoint_a_run_that_is_scored_with_its_last_one_continues(folder):
    damage(folder / "best.ckpt")
    assert resumed(folder, best_needed=False)[0] == 30
    assert not (folder / "best.ckpt").exists()


@pytest.mark.parametrize("best_needed", [True, False])
def test_a_damaged_best_checkpoint_is_restored_from_one_of_the_same_step(folder, best_needed):
    damage(folder / "best.ckpt")
    save(folder, "last.ckpt", 30, best_step=30)
    assert resumed(folder, best_needed)[0] == 30
    assert load_checkpoint(folder / "best.ckpt", RUN)["global_step"] == 30


def test_a_run_goes_back_to_the_previous_checkpoint_if_that_was_the_best(folder):
    damage(folder / "best.ckpt")
    save(folder, "last.ckpt", 30, best_step=20)
    save(folder, "previous.ckpt", 20, best_step=20)
    assert resumed(folder)[0] == 20
    assert load_checkpoint(folder / "best.ckpt", RUN)["global_step"] == 20


def test_a_run_that_never_had_a_best_checkpoint_needs_none(tmp_path):
    save(tmp_path, "last.ckpt", 30, best_step=0, best=float("inf"))
    assert resumed(tmp_path) == (30, [])


def test_another_runs_checkpoint_is_refused_and_kept(folder):
    save(folder, "last.ckpt", 30, 10, run="b" * 64)
    before = {path: path.read_bytes() for path in folder.glob("*.ckpt*")}
    with pytest.raises(UserError, match="belongs to another run"):
        resumed(folder)
    assert {path: path.read_bytes() for path in folder.glob("*.ckpt*")} == before
