"""Write and read checkpoints with a digest. This imports no Lightning, so that finished runs are ready quickly.

A checkpoint is a zip archive of `torch.save`. The comment at its end holds the sha256 of all bytes before it: one file,
so that no crash can separate the two, and other programs read it as before.
"""

import hashlib
import io
import struct
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfstudy.errors import UserError
from tfstudy.runs.files import write_atomically

STATE_KEY = "checkpoints"  # of the callback that writes them: the entry that names the run
PREFIX = b"sha256:"
COMMENT = len(PREFIX) + 64
END, END_SIZE = b"PK\5\6", 22  # the end record of a zip archive without a comment; its last two bytes: comment's length


class DamagedError(UserError):
    """A checkpoint whose bytes are not those that were written."""


def save_checkpoint(checkpoint: dict[str, Any], path: Path) -> None:
    """Write a checkpoint with its digest; it appears complete or not at all."""
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    buffer.seek(-2, io.SEEK_END)
    buffer.write(struct.pack("<H", COMMENT))
    buffer.write(PREFIX + hashlib.sha256(buffer.getbuffer()).hexdigest().encode())
    write_atomically(path, buffer.getbuffer())


def load_checkpoint(path: Path, run: str) -> dict[str, Any]:
    """Load a checkpoint of this run to the CPU, without running code that it may contain.

    `DamagedError` if its digest does not match; other `UserError` if it can't be read or belongs to another run.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    verified = _verified(path, content)
    try:
        checkpoint: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can fail anywhere in the reader
        unreadable = UserError if verified else DamagedError
        raise unreadable(f"{path} is not a readable checkpoint ({_reason(error)}); --restart runs it again") from None
    try:
        owner = checkpoint["callbacks"][STATE_KEY]["run"]
        checkpoint["state_dict"], checkpoint["global_step"]
    except (KeyError, TypeError) as error:
        raise UserError(f"{path} is not a checkpoint of a run ({_reason(error)}); --restart runs it again") from None
    if owner != run:
        raise UserError(f"{path} belongs to another run ({str(owner)[:8]}, not {run[:8]}); --restart runs it again")
    if not verified:
        _report_unverified(path)
    return checkpoint


def _verified(path: Path, content: bytes) -> bool:
    """Whether the digest matches; False for a checkpoint of older code, which has none. `DamagedError` otherwise."""
    body, comment = memoryview(content)[:-COMMENT], content[-COMMENT:]
    if comment == PREFIX + hashlib.sha256(body).hexdigest().encode():
        return True
    if content[-END_SIZE:][:4] == END and content.endswith(b"\0\0"):
        return False
    raise DamagedError(f"{path} is damaged: its digest does not match; --restart runs it again")


@cache
def _report_unverified(path: Path) -> None:
    print(f"note: {path} was written by older code without a digest, so damage can't be excluded", file=sys.stderr)


def _reason(error: Exception) -> str:
    return str(error).split("\n")[0][:120] or type(error).__name__


def model_weights(checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    """Return the weights of the `Model` in a checkpoint."""
    return {k.removeprefix("model."): v for k, v in checkpoint["state_dict"].items() if k.startswith("model.")}
