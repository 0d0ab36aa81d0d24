"""Reuse trained weights: runs that differ only in decoding and evaluation are trained once."""

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tasks.errors import UserError
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree
from tfstudy.runs.identity import Identity, identify, settings_of
from tfstudy.runs.reader import read_config, read_result
from tfstudy.runs.writer import RunFolder
from tfstudy.training.recovery import BEST, LAST
from tfstudy.training.saved_weights import STATE_KEY, DamagedError, load_checkpoint, save_checkpoint


def training_settings(config: RunConfig) -> Tree:
    """Return the settings that determine the weights."""
    return {key: value for key, value in settings_of(config).items() if key not in ("decode", "eval")}


def find_reusable(record: RunFolder, config: RunConfig, identity: Identity, device: str, devices: int) -> Path | None:
    """Return the folder of a finished run with the same training settings, data, code versions and devices, or None.

    Only runs of the same study, test split and architecture are considered. They need undamaged weights.
    """
    needed = {LAST, f"{config.eval.checkpoint}.ckpt"}
    for path in sorted(record.path.parent.glob(f"s{config.seed}-????????")):
        try:
            other, result = resolve(read_config(path)), read_result(path)
        except UserError:
            continue
        same_code_and_data = identify(other, identity.data, identity.versions).hash == result.run
        same_devices = (result.device, result.devices) == (device, devices)
        files = [path / "metrics.csv", *(path / "checkpoints" / name for name in needed)]
        has_weights = result.status == "finished" and all(file.exists() for file in files)
        same_training = training_settings(other) == training_settings(config)
        same_run = same_code_and_data and same_devices and same_training
        if path != record.path and has_weights and same_run and _sound(path, result.run, needed):
            return path
    return None


def _sound(path: Path, run: str, names: Iterable[str]) -> bool:
    """Whether these checkpoints of a finished run can be loaded; a damaged one is reported."""
    try:
        for name in names:
            load_checkpoint(path / "checkpoints" / name, run)
    except UserError as error:
        print(f"the weights of {path.name} can't be reused: {error}")
        return False
    return True


def reuse(record: RunFolder, source: Path) -> None:
    """Copy the checkpoints and training metrics of another run into this one, which becomes their owner.

    `last.ckpt`, which marks training as finished, is written last.
    """
    owner = read_result(source).run
    shutil.copyfile(source / "metrics.csv", record.metrics)
    for path in (source / "checkpoints" / name for name in (BEST, LAST)):
        with suppress(DamagedError):  # of a best checkpoint that this run does not need
            if path.exists():
                checkpoint = load_checkpoint(path, owner)
                checkpoint["callbacks"][STATE_KEY]["run"] = record.run
                save_checkpoint(checkpoint, record.checkpoints / path.name)
    record.log(f"weights reused from {source.name}")
