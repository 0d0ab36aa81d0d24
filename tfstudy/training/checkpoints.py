"""The files of weights: checkpoints, from which training continues, and `weights.safetensors`, which can be shared.

A checkpoint is a zip archive of `torch.save`. The comment at its end holds the sha256 of all bytes before it: one file,
so that no crash can separate the two, and other programs read it as before.

`weights.safetensors` has the weights of a finished run only, and is loaded without pickle. Its metadata hold the hash
of the run and the sha256 of the weights, so that damage is found, and weights of another run are never used. Both are
one entry: the order of several would change from process to process.

This imports no Lightning, so that finished runs are ready quickly.
"""

import hashlib
import io
import json
import os
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from tfstudy.errors import UserError, quoted
from tfstudy.runs.files import read_file, write_atomically

LAST, PREVIOUS, BEST = "last.ckpt", "previous.ckpt", "best.ckpt"
STATE_KEY = "checkpoints"  # of the callback that writes them: the entry that names the run
PREFIX = b"sha256:"
COMMENT = len(PREFIX) + 64
ENTRY = "tfstudy"  # of the metadata of `weights.safetensors`: `RUN sha256:DIGEST`
MAX_HEADER = 1 << 20  # bytes: names, shapes and metadata


class DamagedError(UserError):
    """A checkpoint whose bytes are not those that were written."""


def save_checkpoint(checkpoint: dict[str, Any], path: Path) -> None:
    """Write a checkpoint with its digest; it appears complete or not at all."""
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    buffer.seek(-2, io.SEEK_END)  # the length of the comment, at the end of the archive
    buffer.write(struct.pack("<H", COMMENT))
    buffer.write(PREFIX + hashlib.sha256(buffer.getbuffer()).hexdigest().encode())
    write_atomically(path, buffer.getbuffer())


def metrics_digest(path: Path) -> tuple[int, str]:
    """Return the length and the sha256 of a file of metrics, which is on the disk afterwards; it may be missing."""
    if not path.exists():
        return 0, hashlib.sha256().hexdigest()
    with path.open("rb") as file:
        os.fsync(file.fileno())
        content = file.read()
    return len(content), hashlib.sha256(content).hexdigest()


def rewind_metrics(path: Path, checkpoint: dict[str, Any] | None) -> None:
    """Cut a file of metrics to what it was when the checkpoint was written; without a checkpoint remove it.

    `UserError` if it has been cut or edited since.
    """
    if checkpoint is None:
        return path.unlink(missing_ok=True)
    kept = checkpoint["callbacks"][STATE_KEY].get("metrics", ())
    content = read_file(path)[: kept[0] if kept else 0] if path.exists() else b""
    if (len(content), hashlib.sha256(content).hexdigest()) != tuple(kept):
        step = checkpoint["global_step"]
        raise UserError(f"{path} is damaged: it was changed after step {step} was saved; a restart runs it again")
    return write_atomically(path, content)


def load_checkpoint(path: Path, run: str = "") -> dict[str, Any]:
    """Load a checkpoint of this run, or of any, to the CPU, without running code that it may contain.

    `DamagedError` if its digest does not match; other `UserError` if it can't be read or belongs to another run.
    """
    try:
        content = read_file(path)
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    digest = hashlib.sha256(memoryview(content)[:-COMMENT]).hexdigest().encode()
    if content[-COMMENT:] != PREFIX + digest:
        raise DamagedError(f"{path} is damaged: its digest does not match; a restart runs it again")
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            if any(member.compress_type for member in archive.infolist()):  # a few bytes could fill the memory
                raise ValueError("it is compressed")
        checkpoint: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        owner, _, _ = checkpoint["callbacks"][STATE_KEY]["run"], checkpoint["state_dict"], checkpoint["global_step"]
    except MemoryError:
        raise
    except Exception as error:  # such as code instead of weights
        reason = str(error).split("\n")[0][:120] or type(error).__name__
        raise UserError(f"{path} is not a checkpoint of a run ({reason}); a restart runs it again") from None
    if run and owner != run:
        raise UserError(f"{path} belongs to another run ({str(owner)[:8]}, not {run[:8]}); a restart runs it again")
    return checkpoint


def model_weights(checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    """Return the weights of the `Model` in a checkpoint."""
    return {k.removeprefix("model."): v for k, v in checkpoint["state_dict"].items() if k.startswith("model.")}


def resumable_checkpoint(folder: Path, run: str) -> dict[str, Any] | None:
    """Load the newest sound checkpoint of a run, which is `last.ckpt` afterwards; None if training has to start again.

    A damaged checkpoint is reported on standard error, also with --quiet, and kept as `NAME.damaged`. `UserError` for a
    checkpoint of another run.
    """
    for path in filter(Path.exists, (folder / LAST, folder / PREVIOUS)):
        try:
            checkpoint = load_checkpoint(path, run)
        except DamagedError:
            kept = path.with_name(f"{path.name}.damaged")
            os.replace(path, kept)
            print(f"{path} is damaged and is not used (kept as {kept.name})", file=sys.stderr)
        else:
            os.replace(path, folder / LAST)
            return checkpoint
    return None


def save_weights(weights: Mapping[str, Tensor], path: Path, run: str) -> None:
    """Write the weights of a run to a file, which appears complete or not at all."""
    own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights.items()}  # tied ones twice
    write_atomically(path, save(own, metadata={ENTRY: f"{run} sha256:{_digest(own)}"}))


def load_weights(path: Path, expected: Mapping[str, Tensor], run: str) -> dict[str, Tensor]:
    """Return the weights of a run from a file, on the CPU.

    `expected` are the weights of the untrained model. `UserError` unless the file can be read, belongs to this run, and
    has weights of the same names, shapes and types as the model, whose sha256 is that of the metadata.
    """
    try:
        content = read_file(path, MAX_HEADER + sum(one.numel() * one.element_size() for one in expected.values()))
        weights = load(content)  # which checks the header: 8 bytes with its length, then JSON
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    except (SafetensorError, ValueError) as error:
        raise UserError(f"{path} is not a readable file of weights ({quoted(error, 120, '')})") from None
    owner, _, digest = header.get("__metadata__", {}).get(ENTRY, "").partition(" sha256:")
    if owner != run:
        raise UserError(f"{path} belongs to another run ({quoted(owner, 8, '') or 'unknown'}, not {run[:8]})")
    found, wanted = ({name: (one.shape, one.dtype) for name, one in each.items()} for each in (weights, expected))
    if wrong := sorted(name for name in found | wanted if found.get(name) != wanted.get(name)):
        raise UserError(f"{path} does not fit the model: {quoted(wrong[0])} differs in name, shape or type")
    if digest != _digest(weights):
        raise UserError(f"{path} is damaged: its digest does not match")
    return weights


def _digest(weights: Mapping[str, Tensor]) -> str:
    """Return the sha256 of the bytes of all weights, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(weights[name].contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
