"""The folder `configs/`, and YAML files read as mappings. Imports no torch."""

from pathlib import Path
from typing import Any

import yaml

from tasks.errors import UserError


def configs() -> Path:
    """Return the folder `configs/`: next to the package in a checkout, inside the package in an installed wheel."""
    package = Path(__file__).parents[1]
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping that a YAML file holds; `UserError` with the file and the line if it holds something else."""
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, dict):
        raise UserError(f"{path} must contain sections such as 'train:', but contains '{str(tree)[:40]}'")
    return tree
