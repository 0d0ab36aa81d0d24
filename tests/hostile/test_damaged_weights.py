"""No damaged or foreign `weights.safetensors` is loaded: bits, truncation, headers, shapes, types, and other runs."""

import json
import random
import struct

import pytest
import torch
from safetensors.torch import save

from tfstudy.errors import UserError
from tfstudy.training.checkpoints import ENTRY, MAX_HEADER, load_weights, save_weights

RUN = "a" * 64
WEIGHTS = {"layer.weight": torch.arange(300.0).reshape(20, 15), "layer.bias": torch.zeros(7), "count": torch.tensor(3)}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_weights(WEIGHTS, path, RUN)
    return path


def refused(path, expected=WEIGHTS, run=RUN) -> str:
    """The message of the refusal, which is one line."""
    with pytest.raises(UserError) as error:
        load_weights(path, expected, run)
    assert "\n" not in str(error.value)
    return str(error.value)


def with_header(path, header: bytes, length: int | None = None) -> None:
    """Replace the header of a file."""
    content = path.read_bytes()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    path.write_bytes(struct.pack("<Q", len(header) if length is None else length) + header + content[end:])


def header_of(path) -> dict:
    content = path.read_bytes()
    return json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])


def test_sound_weights_are_loaded_bit_by_bit_and_written_the_same_again(file, tmp_path):
    loaded = load_weights(file, WEIGHTS, RUN)
    assert {name: one.dtype for name, one in loaded.items()} == {name: one.dtype for name, one in WEIGHTS.items()}
    assert all(torch.equal(loaded[name], WEIGHTS[name]) for name in WEIGHTS)
    save_weights(loaded, tmp_path / "again", RUN)
    assert (tmp_path / "again").read_bytes() == file.read_bytes()


def test_tied_weights_are_written_for_each_of_their_names(tmp_path):
    tied = {"embedding": WEIGHTS["layer.bias"], "output": WEIGHTS["layer.bias"]}
    save_weights(tied, tmp_path / "tied", RUN)
    assert load_weights(tmp_path / "tied", tied, RUN).keys() == tied.keys()


def test_every_flipped_bit_of_300_is_found(file):
    content = file.read_bytes()
    generator = random.Random(0)
    for place in {generator.randrange(len(content)) for _ in range(300)} | set(range(60)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << generator.randrange(8)
        file.write_bytes(damaged)
        refused(file)


def test_weights_truncated_at_any_length_or_continued_are_refused(file):
    content = file.read_bytes()
    for end in [*range(0, len(content), 41), len(content) - 1]:
        file.write_bytes(content[:end])
        refused(file)
    file.write_bytes(content + b"\0")
    refused(file)


@pytest.mark.parametrize("length", [0, 1 << 20, 1 << 40, (1 << 64) - 1])
def test_a_header_that_claims_any_length_is_refused(file, length):
    with_header(file, b"{}", length)
    refused(file)


@pytest.mark.parametrize("header", [b"", b"[]", b"{", b"null", b'{"a":1}', b"[" * 5000, b"\xff\xfe{}"])
def test_a_header_that_is_no_table_of_weights_is_refused(file, header):
    with_header(file, header)
    refused(file)


def test_a_huge_file_is_refused_before_it_is_read(file):
    with file.open("r+b") as out:
        out.truncate(1 << 40)  # without a byte on the disk
    assert "bytes" in refused(file)
    with_small = {name: one[:1] if one.ndim else one for name, one in WEIGHTS.items()}
    file.write_bytes(b"\0" * (MAX_HEADER + 10_000))
    assert "bytes" in refused(file, with_small)


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"layer.bias": torch.zeros(7, 1)}, "shape ('layer.bias')"),
        ({"layer.bias": torch.zeros(7, dtype=torch.int32)}, "type ('layer.bias')"),
        ({"another": torch.zeros(1)}, "name ('another')"),
    ],
)
def test_weights_of_another_shape_type_or_name_are_refused(file, changes, fact):
    save_weights(WEIGHTS | changes, file, RUN)
    assert fact in refused(file)


def test_weights_of_another_run_are_refused(file):
    assert "belongs to another run (aaaaaaaa" in refused(file, run="b" * 64)
    file.write_bytes(save(WEIGHTS))
    assert "belongs to another run (unknown" in refused(file)
    file.write_bytes(save(WEIGHTS, metadata={ENTRY: RUN}))
    assert "damaged" in refused(file)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_neither_written_nor_loaded(file, value, monkeypatch):
    broken = WEIGHTS | {"layer.bias": torch.full((7,), value)}
    before = file.read_bytes()
    with pytest.raises(UserError, match=r"'layer\.bias'.*not finite"):
        save_weights(broken, file, RUN)
    assert file.read_bytes() == before
    with monkeypatch.context() as patch:
        patch.setattr("tfstudy.training.checkpoints._check_finite", lambda *_: None)
        save_weights(broken, file, RUN)
    assert "not finite" in refused(file)


def test_overlapping_weights_are_refused(file):
    header = header_of(file)
    header["layer.bias"]["data_offsets"] = [0, 28]
    with_header(file, json.dumps(header).encode())
    refused(file)


@pytest.mark.parametrize("kind", ["missing", "folder", "text"])
def test_what_is_no_file_of_weights_is_refused(kind, tmp_path):
    path = tmp_path / "weights.safetensors"
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("a" * 1300)
    assert str(path) in refused(path)
