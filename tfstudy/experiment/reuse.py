"""Weights that another run has trained already: runs that differ in decoding and evaluation alone share them."""

import io
import shutil
from pathlib import Path

import torch

from tasks.errors import UserError
from tfstudy.config.files import read_yaml
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig, Tree
from tfstudy.runs.files import write_whole
from tfstudy.runs.identity import Identity, identify, without_places
from tfstudy.runs.reader import read_result
from tfstudy.runs.writer import RunFolder
from tfstudy.training.checkpoints import load_checkpoint


def training_part(config: RunConfig) -> Tree:
    """What decides the weights."""
    return {key: value for key, value in without_places(config).items() if key not in ("decode", "eval")}


def find_twin(record: RunFolder, config: RunConfig, identity: Identity, device: str, devices: int) -> Path | None:
    """The folder of a finished run beside this one that trained what this one is to train, on the same devices.

    It must have been made with the same data and versions of the code as are here now, which its hash proves.
    """
    for path in sorted(record.path.parent.glob(f"s{config.seed}-????????")):
        try:
            other, result = resolve(read_yaml(path / "config.yaml")), read_result(path)
        except UserError:
            continue
        same_code = identify(other, identity.data, identity.versions).hash == result["run"]
        same_devices = (result["device"], result["devices"]) == (device, devices)
        trained = result["status"] == "finished" and (path / "checkpoints" / "last.ckpt").exists()
        alike = training_part(other) == training_part(config)
        if path != record.path and trained and same_code and same_devices and alike:
            return path
    return None


def adopt(record: RunFolder, twin: Path) -> None:
    """The twin's checkpoints and training metrics as this run's own; `last.ckpt` comes last, and whole."""
    owner = read_result(twin)["run"]
    shutil.copyfile(twin / "metrics.csv", record.metrics)
    for path in sorted((twin / "checkpoints").glob("*.ckpt")):  # best, last
        checkpoint = load_checkpoint(path, owner)
        checkpoint["callbacks"]["Checkpoints"]["run"] = record.run
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        write_whole(record.checkpoints / path.name, buffer.getvalue())
    record.log(f"trained in {twin.name}")
