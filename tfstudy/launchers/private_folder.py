"""A folder whose files are believed, since nobody else can write to it."""

import os
from pathlib import Path

from tfstudy.tasks.errors import UserError


def check_private(folder: Path) -> None:
    """Create the folder if it does not exist; `UserError` if somebody else can write to it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise UserError(f"--launcher slurm: {folder} holds pickles, so it must be yours and writable by you only")
