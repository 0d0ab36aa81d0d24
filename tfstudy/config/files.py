"""Files as values: the folder of the project's own, and YAML. Loads no torch."""

from pathlib import Path
from typing import Any

import yaml

import tfstudy
from tasks.errors import UserError


def configs() -> Path:
    """The folder `configs/`: in a checkout beside the package, in an installed wheel within it."""
    package = Path(tfstudy.__file__).parent
    within = package / "configs"
    return within if within.is_dir() else package.parent / "configs"


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping; `UserError` with file and line if it does not."""
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, dict):
        raise UserError(f"{path} must hold sections such as 'train:', but holds '{str(tree)[:40]}'")
    return tree
