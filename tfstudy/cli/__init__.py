"""The command `tfstudy`. The commands import what they need when they run, so that `--help` answers at once."""

from tfstudy.cli import (
    bench,
    finished,
    grids,
    inspection,
    lists,
    new,
    pack,
    runs,
    studies,
    tuning,
)
from tfstudy.cli.command_line import app

__all__ = [
    "app",
    "bench",
    "finished",
    "grids",
    "inspection",
    "lists",
    "main",
    "new",
    "pack",
    "runs",
    "studies",
    "tuning",
]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit code 2 for invalid input, 1 for a failed run, 130 for an interruption."""
    app(arguments, prog_name="tfstudy")
