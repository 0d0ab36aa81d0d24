"""`tfstudy --version`: the versions that a bug report should name. Imports no torch."""

import platform
from importlib.metadata import PackageNotFoundError, version

import typer


def version_text() -> str:
    """Return `tfstudy 0.1.0 (torch 2.13.0+cpu, python 3.13.1, commit 1a2b3c4)`; no commit outside a checkout."""
    from tfstudy.runs.environment import commit

    found = commit()
    changed = " with changes" if found.endswith("+") else ""
    parts = [f"torch {_version('torch')}", f"python {platform.python_version()}"]
    parts += [f"commit {found[:7]}{changed}"] if found else []
    return f"tfstudy {_version('tfstudy')} ({', '.join(parts)})"


def show_version(asked: bool) -> None:
    """Print the versions and end, if they were asked for."""
    if asked:
        print(version_text())
        raise typer.Exit


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
