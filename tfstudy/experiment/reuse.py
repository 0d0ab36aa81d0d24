"""Reuse trained weights: runs that differ only in decoding and evaluation are trained once."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree
from tfstudy.errors import UserError
from tfstudy.runs.files import is_archived, write_atomically
from tfstudy.runs.identity import Identity, identify, settings_of
from tfstudy.runs.schema import Result
from tfstudy.runs.store import has_result, read_config, read_result
from tfstudy.runs.studyfile import exists, names_in, read_file
from tfstudy.runs.writer import RunFolder
from tfstudy.training.checkpoints import (
    BEST,
    LAST,
    STATE_KEY,
    DamagedError,
    load_checkpoint,
    metrics_digest,
    save_checkpoint,
)


def training_settings(config: RunConfig) -> Tree:
    """Return the settings that determine the weights."""
    return {key: value for key, value in settings_of(config).items() if key not in ("decode", "eval")}


def find_reusable(record: RunFolder, config: RunConfig, identity: Identity, device: str, devices: int) -> Path | None:
    """Return the folder of a finished run with the same training settings, data, code versions and devices, or None.

    Only runs of the same study, test split, architecture and seed are considered.
    """
    folder, wanted = record.path.parent, (identity, device, devices)
    for path in (folder / name for name in names_in(folder) if name.startswith(f"s{config.seed}-")):
        if path == record.path or is_archived(path) or not has_result(path):
            continue
        try:
            other, result = resolve(read_config(path)), read_result(path)
        except UserError:
            continue
        if training_settings(other) == training_settings(config) and _has_weights(path, config, other, result, wanted):
            return path
    return None


def _has_weights(
    path: Path, config: RunConfig, other: RunConfig, result: Result, wanted: tuple[Identity, str, int]
) -> bool:
    """Whether a run finished with the same data, code versions and devices, and has sound weights for this config."""
    identity, *devices = wanted
    same_code_and_data = identify(other, identity.data, identity.versions).hash == result.run
    needed = {LAST, f"{config.eval.checkpoint}.ckpt"}
    files = [path / "metrics.csv", *(path / "checkpoints" / name for name in needed)]
    complete = result.status == "finished" and all(map(exists, files))
    same_devices = [result.device, result.devices] == devices
    return complete and same_code_and_data and same_devices and _sound(path, result.run, needed)


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
    write_atomically(record.metrics, read_file(source / "metrics.csv"))
    for path in (source / "checkpoints" / name for name in (BEST, LAST)):
        with suppress(DamagedError):  # of a best checkpoint that this run does not need
            if exists(path):
                checkpoint = load_checkpoint(path, owner)
                checkpoint["callbacks"][STATE_KEY]["run"] = record.run
                checkpoint["callbacks"][STATE_KEY].setdefault("metrics", metrics_digest(record.metrics))
                save_checkpoint(checkpoint, record.checkpoints / path.name)
    record.log(f"weights reused from {source.name}")
