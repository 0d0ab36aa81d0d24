"""The environment record of a run: software versions, device, commit, and digests of plug-ins. Imports no torch."""

import hashlib
import os
import platform
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

from tfstudy import models, tasks
from tfstudy.plugins import source_files
from tfstudy.runs.identity import Identity
from tfstudy.runs.schema import Environment

PACKAGES = ("torch", "lightning", "torchmetrics", "numpy")
HOME = re.compile(rf"(?<![\w.-])({re.escape(str(Path.home()))}|/home/[\w.-]+|/Users/[\w.-]+|/root)(?![\w.-])")


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
    folder = Path(__file__).parent

    def git(*words: str) -> str:
        process = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603, S607 - git of the path, with fixed words
        return process.stdout.strip() if process.returncode == 0 else ""

    try:
        changed = "+" if git("status", "--porcelain", "--untracked-files=no") else ""
        return git("rev-parse", "HEAD") + changed if git("ls-files", Path(__file__).name) else ""
    except OSError:  # git is not installed
        return ""
