"""The command `tfstudy`. Imports stand in the commands' bodies, so that `--help` answers at once."""

import sys

from tfstudy.cli import check, claims, grids, lists, plots, report, runs, status, tables, tuning
from tfstudy.cli.options import app, config_of, reason

__all__ = [
    "app",
    "claims",
    "config_of",
    "check",
    "grids",
    "lists",
    "main",
    "plots",
    "report",
    "tables",
    "runs",
    "tuning",
    "status",
]


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line. Exit code 2 for a user's mistake, 1 for a run that failed, 130 when interrupted."""
    from tasks.errors import UserError

    try:
        app(arguments)
    except UserError as error:
        code, text = 2, f"error: {error}"
    except OSError as error:
        code, text = 1, f"error: {reason(error)}"
    print(text, file=sys.stderr)
    sys.exit(code)
