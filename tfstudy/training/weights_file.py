"""Write and read `weights.safetensors`: the weights of a finished run, which can be shared and loaded without pickle.

The metadata of the file hold the hash of the run and the sha256 of the weights, so that damage is found, and weights
of another run are never used. Both are one entry: the order of several would change from process to process.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from tfstudy.errors import UserError, quoted
from tfstudy.runs.files import write_atomically

ENTRY = "tfstudy"  # of the metadata: `RUN sha256:DIGEST`
MAX_HEADER = 1 << 20  # bytes: names, shapes and metadata
SHOWN = 3  # names that a message lists


def save_weights(weights: Mapping[str, Tensor], path: Path, run: str) -> None:
    """Write the weights of a run to a file, which appears complete or not at all; `UserError` if one is not finite."""
    own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights.items()}  # tied ones twice
    _check_finite(own, path)
    write_atomically(path, save(own, metadata={ENTRY: f"{run} sha256:{_digest(own)}"}))


def load_weights(path: Path, expected: Mapping[str, Tensor], run: str) -> dict[str, Tensor]:
    """Return the weights of a run from a file, on the CPU.

    `expected` are the weights of the untrained model. `UserError` unless the file can be read, belongs to this run,
    and has finite weights of the same names, shapes and types as the model, whose sha256 is that of the metadata.
    """
    _check_size(path, expected)
    try:
        with safe_open(path, framework="pt") as file:
            owner, _, digest = (file.metadata() or {}).get(ENTRY, "").partition(" sha256:")
            _check_owner(path, owner, run)
            _check_shapes(file, path, expected)
            weights = {name: file.get_tensor(name) for name in expected}
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is not a readable file of weights ({quoted(error, 120, '')})") from None
    _check_fits(path, [name for name, one in weights.items() if one.dtype != expected[name].dtype], "type")
    if digest != _digest(weights):
        raise UserError(f"{path} is damaged: its digest does not match")
    _check_finite(weights, path)
    return weights


def _check_size(path: Path, expected: Mapping[str, Tensor]) -> None:
    if not path.is_file():
        raise UserError(f"can't read {path}: not a file")
    size, needed = path.stat().st_size, sum(one.numel() * one.element_size() for one in expected.values())
    if not needed < size <= needed + MAX_HEADER:
        raise UserError(f"{path} has {size:,} bytes, but the weights of the model have {needed:,}")


def _check_owner(path: Path, owner: str, run: str) -> None:
    if owner != run:
        raise UserError(f"{path} belongs to another run ({quoted(owner, 8, '') or 'unknown'}, not {run[:8]})")


def _check_shapes(file: Any, path: Path, expected: Mapping[str, Tensor]) -> None:
    """Raise `UserError` if an open file has other names or shapes than the model."""
    names = set(file.keys())
    _check_fits(path, sorted(names ^ set(expected)), "name")
    shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
    _check_fits(path, [name for name, shape in shapes.items() if shape != tuple(expected[name].shape)], "shape")


def _check_fits(path: Path, differing: list[str], what: str) -> None:
    if differing:
        shown = ", ".join(quoted(name) for name in differing[:SHOWN]) + (" ..." if len(differing) > SHOWN else "")
        raise UserError(f"{path} does not fit the model: {len(differing)} weights differ in {what} ({shown})")


def _check_finite(weights: Mapping[str, Tensor], path: Path) -> None:
    if broken := [name for name, one in weights.items() if one.is_floating_point() and not one.isfinite().all()]:
        raise UserError(f"{path}: the weights {quoted(broken[0])} have values that are not finite")


def _digest(weights: Mapping[str, Tensor]) -> str:
    """Return the sha256 of the bytes of all weights, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(weights[name].contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
