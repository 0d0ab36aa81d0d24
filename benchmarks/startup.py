"""Seconds of whole processes: commands that must answer quickly, and the imports that they avoid."""

import subprocess
import sys
from functools import partial

from benchmarks.timing import alternate, arguments, seconds, table

PROCESSES = {
    "python": ["-c", "pass"],
    "tfstudy --help": ["-m", "tfstudy", "--help"],
    "tfstudy list tasks": ["-m", "tfstudy", "list", "tasks"],
    "tfstudy status": ["-m", "tfstudy", "status"],
    "tfstudy run scn": ["-m", "tfstudy", "run", "scn"],
    "tfstudy predict xxxx yyy": ["-m", "tfstudy", "predict", "xxxx", "yyy"],
    "import torch": ["-c", "import torch"],
    "import lightning": ["-c", "import lightning"],
}


def process(words: list[str]) -> float:
    """Seconds from start to end."""
    return seconds(
        partial(
            subprocess.run, [sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
    )


def main() -> None:
    chosen = arguments(__doc__, archs=False)
    ways = {name: partial(process, words) for name, words in PROCESSES.items()}
    measured = alternate(ways, 1 if chosen.quick else 5)
    table("whole processes", "seconds", measured, "import torch")


if __name__ == "__main__":
    main()
