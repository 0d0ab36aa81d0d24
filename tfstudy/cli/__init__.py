"""The command `tfstudy`. The commands import what they need when they run, so that `--help` answers at once."""

import os
import sys

from tfstudy.cli import bench, grids, inspection, runs, sharing, studies
from tfstudy.cli.command_line import app

__all__ = ["app", "bench", "grids", "inspection", "main", "runs", "sharing", "studies"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit code 2 for invalid input, 1 for a failed run, 130 for an interruption."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a question mark for a letter that the encoding lacks
    try:
        try:
            app(arguments, prog_name="tfstudy")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # Python would try again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
