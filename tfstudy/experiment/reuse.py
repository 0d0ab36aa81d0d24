"""Reuse trained weights: runs that differ only in decoding and evaluation are trained once."""

import io
import shutil
from pathlib import Path

import torch

from tasks.errors import UserError
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree
from tfstudy.runs.files import write_atomically
from tfstudy.runs.identity import Identity, identify, settings_of
from tfstudy.runs.reader import read_config, read_result
from tfstudy.runs.writer import RunFolder
from tfstudy.training.checkpoints import Checkpoints
from tfstudy.training.saved_weights import load_checkpoint


def training_settings(config: RunConfig) -> Tree:
    """Return the settings that determine the weights."""
    return {key: value for key, value in settings_of(config).items() if key not in ("decode", "eval")}


def find_reusable(record: RunFolder, config: RunConfig, identity: Identity, device: str, devices: int) -> Path | None:
    """Return the folder of a finished run with the same training settings, data, code versions and devices, or None.

    Only runs of the same study, test split and architecture are considered. They must still have their weights.
    """
    for path in sorted(record.path.parent.glob(f"s{config.seed}-????????")):
        try:
            other, result = resolve(read_config(path)), read_result(path)
        except UserError:
            continue
        same_code_and_data = identify(other, identity.data, identity.versions).hash == result.run
        same_devices = (result.device, result.devices) == (device, devices)
        has_weights = result.status == "finished" and (path / "checkpoints" / "last.ckpt").exists()
        same_training = training_settings(other) == training_settings(config)
        if path != record.path and has_weights and same_code_and_data and same_devices and same_training:
            return path
    return None


def reuse(record: RunFolder, source: Path) -> None:
    """Copy the checkpoints and training metrics of another run into this one, which becomes their owner.

    `last.ckpt`, which marks training as finished, is written last.
    """
    owner = read_result(source).run
    shutil.copyfile(source / "metrics.csv", record.metrics)
    for path in sorted((source / "checkpoints").glob("*.ckpt")):  # best, last
        checkpoint = load_checkpoint(path, owner)
        checkpoint["callbacks"][Checkpoints.state_key]["run"] = record.run
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        write_atomically(record.checkpoints / path.name, buffer.getvalue())
    record.log(f"weights reused from {source.name}")
