"""No damaged checkpoint is loaded: single bits, truncation at every length, foreign bytes, and code within it."""

import io
import pickle
import random

import pytest
import torch

from tfstudy.errors import UserError
from tfstudy.training.saved_weights import STATE_KEY, DamagedError, load_checkpoint, save_checkpoint

RUN = "a" * 64


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint of some kilobytes, most of them weights."""
    state = {"model.weight": torch.arange(300.0), "model.bias": torch.zeros(7)}
    content = {"state_dict": state, "global_step": 10, "callbacks": {STATE_KEY: {"run": RUN, "best": 1.0}}}
    path = tmp_path / "last.ckpt"
    save_checkpoint(content, path)
    return path


def without_digest(path):
    """Rewrite a checkpoint as older code wrote it."""
    buffer = io.BytesIO()
    torch.save(load_checkpoint(path, RUN), buffer)
    path.write_bytes(buffer.getvalue())


def test_a_sound_checkpoint_is_loaded_by_us_and_by_others(checkpoint, capsys):
    loaded = load_checkpoint(checkpoint, RUN)
    assert torch.equal(loaded["state_dict"]["model.weight"], torch.arange(300.0))
    assert torch.load(checkpoint, weights_only=True)["global_step"] == 10
    assert capsys.readouterr().err == ""


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


def test_a_checkpoint_without_a_digest_is_loaded_with_one_note(checkpoint, capsys):
    without_digest(checkpoint)
    for _ in range(3):
        assert load_checkpoint(checkpoint, RUN)["global_step"] == 10
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"{checkpoint} was written by older code without a digest" in err


def test_a_truncated_checkpoint_without_a_digest_is_found(checkpoint):
    without_digest(checkpoint)
    content = checkpoint.read_bytes()
    for length in range(0, len(content), 101):
        checkpoint.write_bytes(content[:length])
        with pytest.raises(DamagedError):
            load_checkpoint(checkpoint, RUN)


class Command:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("write", [torch.save, lambda content, path: path.write_bytes(pickle.dumps(content))])
@pytest.mark.parametrize("with_digest", [False, True])
def test_code_in_a_checkpoint_does_not_run(checkpoint, tmp_path, write, with_digest):
    content = load_checkpoint(checkpoint, RUN) | {"more": Command(tmp_path / "ran")}
    if with_digest:
        save_checkpoint(content, checkpoint)
    else:
        write(content, checkpoint)
    with pytest.raises(UserError):
        load_checkpoint(checkpoint, RUN)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "content",
    [{}, [], 3, {"state_dict": {}}, {"callbacks": 5}, {"callbacks": {STATE_KEY: 1}, "state_dict": {}}],
    ids=str,
)
def test_a_checkpoint_of_other_software_is_refused_but_not_damaged(checkpoint, content):
    torch.save(content, checkpoint)
    with pytest.raises(UserError, match="is not a checkpoint of a run") as error:
        load_checkpoint(checkpoint, RUN)
    assert not isinstance(error.value, DamagedError)


def test_a_missing_checkpoint_and_a_folder_in_its_place_are_refused(tmp_path):
    (tmp_path / "folder.ckpt").mkdir()
    for name in ("missing.ckpt", "folder.ckpt"):
        with pytest.raises(UserError, match="can't read") as error:
            load_checkpoint(tmp_path / name, RUN)
        assert not isinstance(error.value, DamagedError)
