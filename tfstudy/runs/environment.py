"""Where and with what a run is made."""

import ast
import hashlib
import inspect
import logging
import os
import platform
import subprocess
import sys
import warnings
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from tfstudy.runs.identity import Identity

PACKAGES = ("torch", "lightning", "torchmetrics", "numpy")
DECIDE = ("tasks.", "tfstudy.models.", "tfstudy.data.", "tfstudy.training.", "tfstudy.evaluation.")


def environment(identity: Identity, device: torch.device) -> dict[str, Any]:
    """Where and with what a run was made; nothing in it decides the numbers' identity."""
    return {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "commit": commit(),
        "platform": platform.platform(),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
        "processors": os.cpu_count(),
        "arguments": sys.argv[1:],
        "data": identity.data,
        "code_versions": dict(identity.versions),
        "syntax_trees": syntax_trees(),
    }


def syntax_trees() -> dict[str, str]:
    """Of each file that decides numbers the start of its syntax tree's sha256: comments and layout don't count."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith(DECIDE)]
    files = {module.__name__: Path(str(inspect.getsourcefile(module))) for module in modules}
    return {name: _syntax_tree(file) for name, file in files.items()}


@cache
def _syntax_tree(file: Path) -> str:
    tree = ast.dump(ast.parse(file.read_text(encoding="utf-8")))
    return hashlib.sha256(tree.encode()).hexdigest()[:16]


@cache
def commit() -> str:
    """The checkout's commit, with `+` if tracked files differ from it; empty outside a checkout."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        changed = "+" if git("status", "--porcelain", "--untracked-files=no") else ""
        return git("rev-parse", "HEAD") + changed if git("ls-files", Path(__file__).name) else ""
    except OSError:  # no git on this machine
        return ""


def quiet() -> None:
    """Silences what Lightning tells about itself and about other products."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", ".*LeafSpec.*")
