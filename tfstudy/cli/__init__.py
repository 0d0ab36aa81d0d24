"""The command `tfstudy`. The commands import what they need when they run, so that `--help` answers at once."""

from tfstudy.cli import (
    attention,
    bench,
    check,
    claims,
    finished,
    grids,
    lists,
    measure,
    new,
    pack,
    plots,
    report,
    runs,
    status,
    tables,
    tuning,
)
from tfstudy.cli.options import app

__all__ = [
    "app",
    "attention",
    "bench",
    "check",
    "claims",
    "finished",
    "grids",
    "lists",
    "main",
    "measure",
    "new",
    "pack",
    "plots",
    "report",
    "runs",
    "status",
    "tables",
    "tuning",
]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit code 2 for invalid input, 1 for a failed run, 130 for an interruption."""
    app(arguments, prog_name="tfstudy")
