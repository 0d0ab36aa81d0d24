"""The identity of a run, a hash of settings, data and declared versions of the code; and its environment. No torch."""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tfstudy import models, tasks
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree
from tfstudy.plugins import source_files
from tfstudy.runs.schema import Environment

PACKAGES = ("torch", "lightning", "torchmetrics", "numpy")
HOME = re.compile(rf"(?<![\w.-])({re.escape(str(Path.home()))}|/home/[\w.-]+|/Users/[\w.-]+|/root)(?![\w.-])")
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


# Its environment


def environment(identity: Identity, device: str, threads: int) -> Environment:
    """Return what a process records of its code and machine.

    `device` is the name of the processor, `threads` their number per process.
    Of the entry only `settings`, `data` and `code_versions` are part of the run's identity.
    """
    return Environment(
        versions={"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        commit=commit(),
        platform=platform.platform(),
        device=device,
        threads=threads,
        processors=os.cpu_count(),
        preloaded=" ".join(Path(name).name for name in re.split("[ :]+", os.environ.get("LD_PRELOAD", ""))),
        arguments=[HOME.sub("~", word) for word in sys.argv[1:]],
        settings=identity.settings,
        data=identity.data,
        code_versions=dict(identity.versions),
        syntax_trees=plugin_digests(identity.settings["task"], identity.settings["arch"]),
    )


def plugin_digests(task: str, arch: str) -> dict[str, str]:
    """Return the digest of the code of each plug-in that a run uses, by a name such as `plug-in task mine`."""
    found = {f"plug-in task {task}": tasks.plugin(task), f"plug-in architecture {arch}": models.plugin(arch)}
    code = {name: [file.read_bytes() for file in source_files(one.load())] for name, one in found.items() if one}
    return {name: hashlib.sha256(b"".join(files)).hexdigest()[:16] for name, files in code.items()}


@cache
def commit() -> str:
    """Return the commit of the checkout, with `+` if tracked files differ from it; empty outside a checkout."""

    def git(*words: str) -> str:
        with suppress(OSError):  # git is not installed
            process = subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True)  # noqa: S603, S607 - git of the path, with fixed words
            return process.stdout.strip() if process.returncode == 0 else ""
        return ""

    changed = "+" if git("status", "--porcelain", "--untracked-files=no") else ""
    return git("rev-parse", "HEAD") + changed if git("ls-files", Path(__file__).name) else ""
