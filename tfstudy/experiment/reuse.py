"""Reuse trained weights: runs that differ only in decoding and evaluation are trained once."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree
from tfstudy.errors import UserError
from tfstudy.runs.files import is_archived, write_atomically
from tfstudy.runs.identity import Identity, identify, run_hash, settings_of
from tfstudy.runs.reader import has_result, read_config, read_environments, read_result
from tfstudy.runs.schema import Result
from tfstudy.runs.studyfile import exists, names_in, read_file
from tfstudy.runs.writer import RunFolder
from tfstudy.training.checkpoints import BEST, LAST, STATE_KEY, DamagedError, load_checkpoint, save_checkpoint

INDEX = ".weights"  # the folder of the index, in that of the study
KEY = 32  # characters of a key


def training_settings(config: RunConfig) -> Tree:
    """Return the settings that determine the weights."""
    return {key: value for key, value in settings_of(config).items() if key not in ("decode", "eval")}


def weights_key(config: RunConfig, data: str, versions: Mapping[str, int], device: str, devices: int) -> str:
    """Return a hash of all that determines the weights of a run: runs with the same key can share them."""
    return run_hash({**training_settings(config), "seed": config.seed, "on": [device, devices]}, data, versions)[:KEY]


def index_weights(path: Path, key: str) -> None:
    """Record the key of a finished run in the index: an empty file `.weights/KEY-RUN` in the folder of its study.

    The index is a cache. It can be deleted, and a folder that can't be written only costs time.
    """
    with suppress(OSError):
        index = path.parents[2] / INDEX
        index.mkdir(exist_ok=True)
        (index / f"{key}-{path.name}").touch()


def find_reusable(record: RunFolder, config: RunConfig, identity: Identity, device: str, devices: int) -> Path | None:
    """Return the folder of a finished run with the same training settings, data, code versions and devices, or None.

    Only runs of the same study, test split and architecture are considered. The index says which may be meant; the
    record and the weights of such a run are then checked. Records of older code are read once and added to the index.
    """
    folder, wanted = record.path.parent, (identity, device, devices)
    key = weights_key(config, identity.data, identity.versions, device, devices)
    keys = _indexed(folder.parents[1])
    for path in (folder / name for name in names_in(folder) if name.startswith(f"s{config.seed}-")):
        if path == record.path or is_archived(path) or key not in keys.get(path.name, {key}) or not has_result(path):
            continue
        try:
            other, result = resolve(read_config(path)), read_result(path)
        except UserError:
            continue
        if path.name not in keys:
            _index_older(path, other, result)
        if training_settings(other) == training_settings(config) and _has_weights(path, config, other, result, wanted):
            return path
    return None


def _indexed(study: Path) -> dict[str, set[str]]:
    """Return the keys of each run in the index; more than one if the run was repeated on another device."""
    keys: dict[str, set[str]] = {}
    with suppress(OSError):
        for name in os.listdir(study / INDEX):
            keys.setdefault(name[KEY + 1 :], set()).add(name[:KEY])
    return keys


def _index_older(path: Path, config: RunConfig, result: Result) -> None:
    """Add a run to the index, if its environment says which data and versions it had, and its hash confirms it."""
    for entry in read_environments(path)[-1:]:
        if identify(config, entry.data, entry.code_versions).hash == result.run:
            index_weights(path, weights_key(config, entry.data, entry.code_versions, result.device, result.devices))


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
                save_checkpoint(checkpoint, record.checkpoints / path.name)
    record.log(f"weights reused from {source.name}")
