"""The identity of a run: a hash of its settings, its data and the declared versions of the code. Imports no torch."""

import hashlib
import json
from collections.abc import Mapping
from typing import NamedTuple

from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree

LOCATIONS = ("root", "hub")  # keys of `data`: where data are read from; the identity covers their content instead


class Identity(NamedTuple):
    """The settings, data and code versions that define a run, and their hash."""

    hash: str  # sha256 of all that follows
    experiment: str  # the same without the seed: replications of each other share it
    settings: Tree  # of the config, those that differ from their default, and the seed
    data: str  # the fingerprint of the data
    versions: Mapping[str, int]  # declared by the code: task, model, training, evaluation


def identify(config: RunConfig, data: str, versions: Mapping[str, int]) -> Identity:
    """Return the identity of a run on data with this fingerprint.

    Settings that equal their default and versions that are 1 are left out of the hash, so that a new key or a new
    version changes no hash. Changing a default therefore requires raising a version (tests/config/golden_defaults.py).
    """
    settings = settings_of(config) | {"seed": config.seed}
    experiment = {key: value for key, value in settings.items() if key != "seed"}
    return Identity(run_hash(settings, data, versions), run_hash(experiment, data, versions), settings, data, versions)


def run_hash(settings: Tree, data: str, versions: Mapping[str, int]) -> str:
    """Return the hash of a run with these settings, seed included; without the seed, that of its experiment."""
    raised = {name: version for name, version in versions.items() if version != 1}
    return hashlib.sha256(json.dumps([settings, data, raised], sort_keys=True).encode()).hexdigest()


def settings_of(config: RunConfig) -> Tree:
    """Return the settings that differ from their default, without the locations of the data, as plain values."""
    tree = config.model_dump(mode="json", exclude_defaults=True)
    tree["data"] = {key: value for key, value in tree.get("data", {}).items() if key not in LOCATIONS}
    return {key: value for key, value in tree.items() if value != {}}
