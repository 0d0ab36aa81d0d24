"""The environment record of a run: software versions, device, and digests of the code. Imports no torch."""

import ast
import contextlib
import hashlib
import os
import platform
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

import tfstudy
from tfstudy import models, tasks
from tfstudy.plugins import source_files
from tfstudy.runs.identity import Identity
from tfstudy.runs.schema import Environment

PACKAGES = ("torch", "lightning", "torchmetrics", "numpy")
MAX_DEPTH = 8  # of packages within each other
HOME = re.compile(rf"(?<![\w.-])({re.escape(str(Path.home()))}|/home/[\w.-]+|/Users/[\w.-]+|/root)(?![\w.-])")
# Modules whose code can change a result, if only by rounding or the order of random draws.
NUMERIC = tuple(f"tfstudy.{name}." for name in ("tasks", "models", "data", "training", "evaluation"))


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
        syntax_trees=code_digests() | plugin_digests(identity.settings["task"], identity.settings["arch"]),
    )


def code_digests() -> dict[str, str]:
    """Return the digest of each imported module that can change a result."""
    names = sorted(name for name in sys.modules if name.startswith(NUMERIC))
    return {name: digest for name in names if (digest := code_digest(name))}


def plugin_digests(task: str, arch: str) -> dict[str, str]:
    """Return the digest of the code of each plug-in that a run uses, by a name such as `plug-in task mine`."""
    found = {f"plug-in task {task}": tasks.plugin(task), f"plug-in architecture {arch}": models.plugin(arch)}
    digests = {name: " ".join(map(_digest, source_files(one.load()))) for name, one in found.items() if one}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in digests.items()}


def code_digest(module: str) -> str:
    """Return the start of the sha256 of a module's syntax tree, which ignores comments and layout.

    Empty if there is no such module, or if it is not one of tfstudy. Nothing is imported, since the name may
    come from the record of somebody else.
    """
    file = _source(module) if belongs_to_project(module) else None
    return _digest(file) if file else ""


def current_name(module: str) -> str:
    """Return today's name of a module that a record names: the tasks of older records are a package of their own."""
    return f"tfstudy.{module}" if module.startswith("tasks.") else module


def belongs_to_project(module: str) -> bool:
    """Whether this is the name of a module of tfstudy."""
    package, *names = module.split(".")
    return package == "tfstudy" and 0 < len(names) <= MAX_DEPTH and all(name.isidentifier() for name in names)


def _source(module: str) -> Path | None:
    """The file of a module of tfstudy; None if there is none."""
    base = Path(tfstudy.__file__).parent.joinpath(*module.split(".")[1:])
    return next((file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()), None)


@cache
def _digest(file: Path) -> str:
    content = file.read_bytes()
    with contextlib.suppress(SyntaxError, ValueError):  # of a plug-in's package, such as a template
        content = ast.dump(ast.parse(content)).encode()
    return hashlib.sha256(content).hexdigest()[:16]


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
