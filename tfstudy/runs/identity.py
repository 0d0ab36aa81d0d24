"""The identity of a run: a hash of its config, its data and the versions of the code."""

import hashlib
import json
from collections.abc import Mapping
from typing import NamedTuple

from tfstudy.config.schema import RunConfig, Tree

# Where data are read from is no part of a run's identity: their content is.
PLACES = ("root", "hub")


class Identity(NamedTuple):
    """What decides a run's numbers."""

    hash: str  # sha256 over the config, the data and the versions
    experiment: str  # the same without the seed: runs that are replications of each other share it
    data: str  # the data's fingerprint
    versions: Mapping[str, int]  # of the code: task, model, training, evaluation


def identify(config: RunConfig, data: str, versions: Mapping[str, int]) -> Identity:
    """The identity of a run on data with this fingerprint."""
    tree = without_places(config)

    def digest(tree: Tree) -> str:
        return hashlib.sha256(json.dumps([tree, data, versions], sort_keys=True).encode()).hexdigest()

    experiment = digest({key: value for key, value in tree.items() if key != "seed"})
    return Identity(digest(tree), experiment, data, versions)


def without_places(config: RunConfig) -> Tree:
    """The config as plain values, without where its data are read from."""
    tree = config.model_dump(mode="json")
    return tree | {"data": {key: value for key, value in tree["data"].items() if key not in PLACES}}
