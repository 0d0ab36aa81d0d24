"""A peer's virtual environment: installed in the repository's root from a file of versions, `.venv-NAME`."""

import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tfstudy.errors import UserError

ROOT = Path(__file__).parents[2]


def environment(name: str, packages: Sequence[str] = ()) -> Path:
    """Return the Python of a peer's environment; install it first unless it has the versions of its constraints.

    The constraints are in `NAME-constraints.txt` beside this file. Without `packages` all that they list is installed,
    and nothing else. `UserError` if pip fails.
    """
    constraints, folder = Path(__file__).with_name(f"{name}-constraints.txt"), ROOT / f".venv-{name}"
    python, installed = folder / "bin" / "python", folder / "constraints.txt"
    wanted = constraints.read_text(encoding="utf-8")
    if installed.exists() and installed.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing {name} in {folder} (minutes)", flush=True)
    venv.create(folder, clear=True, with_pip=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(constraints)]
    everything = packages or ("--no-deps", "--requirement", str(constraints))
    for wave in (("torch",), everything):  # torch first: the others then use this build
        if subprocess.run([*install, *wave]).returncode:
            raise UserError(f"pip could not install {name} in {folder}: see its messages above")
    installed.write_text(wanted, encoding="utf-8")
    return python


def versions(python: Path, *packages: str) -> dict[str, str]:
    """Return the versions of packages in the environment of an interpreter."""
    code = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
    output = subprocess.run([str(python), "-c", code, *packages], check=True, capture_output=True, text=True).stdout
    return dict(zip(packages, output.split(), strict=True))


def own_versions(*packages: str) -> dict[str, str]:
    """Return the versions of packages in this process's environment."""
    return versions(Path(sys.executable), *packages)


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Within this context an error ends the program with one line: exit code 2 if it is the user's, else 1."""
    try:
        yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except RuntimeError as error:
        raise SystemExit(f"error: {error}") from None
