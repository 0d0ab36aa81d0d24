"""The folder of smoke runs, next to that of all other runs: `results-smoke` next to `results`."""

from pathlib import Path

SUFFIX = "-smoke"


def results_folder(results: Path, smoke: bool) -> Path:
    """Return the folder for runs, of which `results` is the one for those that are not smoke runs."""
    if not smoke:
        return results
    return (results if results.name else results.resolve()).with_name(f"{results.resolve().name}{SUFFIX}")


def is_smoke_folder(results: Path) -> bool:
    """Whether a folder of results is that of smoke runs."""
    return results.name.endswith(SUFFIX)


def without_smoke(results: Path) -> Path:
    """Return the folder next to which `results_folder` put a folder of smoke runs."""
    return results.with_name(results.name.removesuffix(SUFFIX)) if is_smoke_folder(results) else results
