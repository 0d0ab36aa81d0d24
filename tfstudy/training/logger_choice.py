"""The names of loggers: parsed and checked without importing Lightning."""

from collections.abc import Sequence
from importlib.util import find_spec

from tfstudy.errors import UserError, one_of

LOGGERS = ["tensorboard", "wandb", "mlflow"]


def parse_loggers(text: str) -> tuple[str, ...]:
    """Return the loggers of `tensorboard,wandb`; `UserError` for an unknown one or a package that is not installed."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    check_loggers(names)
    return names


def check_loggers(names: Sequence[str]) -> None:
    """`UserError` for an unknown logger, or one whose package is not installed."""
    for name in names:
        one_of("logger", name, LOGGERS)
    if missing := [name for name in names if not installed(name)]:
        packages = " ".join(missing)  # which have the names of the loggers
        raise UserError(f"--logger {','.join(missing)}: not installed; to install it: pip install {packages}")


def installed(name: str) -> bool:
    """Whether a package is installed. It is not imported, which can take seconds."""
    return find_spec(name) is not None
