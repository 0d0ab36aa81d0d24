"""No damaged checkpoint is loaded: single bits, truncation at every length, foreign bytes, and code within it."""

import random

import pytest
import torch

from tfstudy.errors import UserError
from tfstudy.training.checkpoints import STATE_KEY, DamagedError, load_checkpoint, save_checkpoint

RUN = "a" * 64


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint of some kilobytes, most of them weights."""
    state = {"model.weight": torch.arange(300.0), "model.bias": torch.zeros(7)}
    content = {"state_dict": state, "global_step": 10, "callbacks": {STATE_KEY: {"run": RUN, "best": 1.0}}}
    path = tmp_path / "last.ckpt"
    save_checkpoint(content, path)
    return path


def test_a_sound_checkpoint_is_loaded_by_us_and_by_others(checkpoint):
    loaded = load_checkpoint(checkpoint, RUN)
    assert torch.equal(loaded["state_dict"]["model.weight"], torch.arange(300.0))
    assert torch.load(checkpoint, weights_only=True)["global_step"] == 10


def test_every_flipped_bit_of_500_is_found(checkpoint):
    content = checkpoint.read_bytes()
    generator = random.Random(0)
    places = {generator.randrange(len(content)) for _ in range(500)} | set(range(len(content) - 100, len(content)))
    loaded = []
    for place in sorted(places):
        damaged = bytearray(content)
        damaged[place] ^= 1 << generator.randrange(8)
        checkpoint.write_bytes(damaged)
        try:
            load_checkpoint(checkpoint, RUN)
        except DamagedError:
            continue
        loaded.append(place)
    assert loaded == []


def test_a_checkpoint_truncated_at_any_length_is_found(checkpoint):
    content = checkpoint.read_bytes()
    for length in {*range(0, len(content), 37), *range(len(content) - 100, len(content))}:
        checkpoint.write_bytes(content[:length])
        with pytest.raises(DamagedError):
            load_checkpoint(checkpoint, RUN)


@pytest.mark.parametrize("extra", [b"\0", b"\0" * 4096, b"sha256:", b"x" * 71])
def test_bytes_after_the_end_are_found(checkpoint, extra):
    checkpoint.write_bytes(checkpoint.read_bytes() + extra)
    with pytest.raises(DamagedError):
        load_checkpoint(checkpoint, RUN)


def test_a_checkpoint_without_a_digest_is_damaged(checkpoint):
    torch.save(load_checkpoint(checkpoint, RUN), checkpoint)
    with pytest.raises(DamagedError):
        load_checkpoint(checkpoint, RUN)


class Command:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_code_in_a_checkpoint_does_not_run(checkpoint, tmp_path):
    save_checkpoint(load_checkpoint(checkpoint, RUN) | {"more": Command(tmp_path / "ran")}, checkpoint)
    with pytest.raises(UserError):
        load_checkpoint(checkpoint, RUN)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "content",
    [{}, [], 3, {"state_dict": {}}, {"callbacks": 5}, {"callbacks": {STATE_KEY: 1}, "state_dict": {}}],
    ids=str,
)
def test_a_checkpoint_of_other_software_is_refused_but_not_damaged(checkpoint, content):
    save_checkpoint(content, checkpoint)
    with pytest.raises(UserError, match="is not a checkpoint of a run") as error:
        load_checkpoint(checkpoint, RUN)
    assert not isinstance(error.value, DamagedError)


def test_a_missing_checkpoint_and_a_folder_in_its_place_are_refused(tmp_path):
    (tmp_path / "folder.ckpt").mkdir()
    for name in ("missing.ckpt", "folder.ckpt"):
        with pytest.raises(UserError, match="can't read") as error:
            load_checkpoint(tmp_path / name, RUN)
        assert not isinstance(error.value, DamagedError)
