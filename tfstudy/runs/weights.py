"""The file with the weights of a finished run. Imports no torch, so that a run without weights is refused at once."""

from pathlib import Path

from tfstudy.errors import UserError, one_of
from tfstudy.runs.commands import command_again
from tfstudy.runs.schema import Result
from tfstudy.runs.studyfile import exists

WEIGHTS = "weights.safetensors"  # weights alone, in the run folder: see `tfstudy weights`
CHECKPOINTS = ("last", "best")  # what `eval.checkpoint` may be


def find_weights(path: Path, result: Result) -> Path:
    """Return the checkpoint that a run was evaluated with, or else its `weights.safetensors`.

    `UserError` if the run did not finish or has neither; it names the command that trains the run again.
    """
    if result.status != "finished":
        raise UserError(f"{path} {result.status}, so it has no weights to use")
    name = one_of("checkpoint", result.checkpoint, CHECKPOINTS, str(path / "result.json"))
    for file in (path / "checkpoints" / f"{name}.ckpt", path / WEIGHTS):
        if exists(file):
            return file
    raise UserError(
        f"{path} has a result but no weights, neither checkpoints/{name}.ckpt nor {WEIGHTS}; "
        f"`{command_again(path, result.smoke)}` trains it again"
    )


def has_weights(path: Path) -> bool:
    """Whether a run folder has a file of weights."""
    files = (path / WEIGHTS, *(path / "checkpoints" / f"{name}.ckpt" for name in CHECKPOINTS))
    return any(map(exists, files))
