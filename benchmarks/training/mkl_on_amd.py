"""Training steps and products of matrices with the library of `make amd`, against PyTorch as it is."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import torch

from benchmarks.timing import alternate, arguments, now, scan, seconds, table
from benchmarks.training.trainer_overhead import loop

LIBRARY = Path(".venv/libmkl_amd.so")
SKIP = 3  # first steps that are not measured
PRODUCT = 2000, 128, 256  # rows, width and output width of a layer of a small model


def step(arch: str, count: int) -> float:
    """Return the milliseconds of a training step of the preset of SCAN."""
    times = [now() for _ in loop(scan(arch), SKIP + count)]
    return 1000 * (times[-1] - times[SKIP - 1]) / count


def product(count: int) -> float:
    """Return the milliseconds of a product of matrices."""
    rows, width, out = PRODUCT
    a, b = torch.randn(rows, width), torch.randn(width, out)
    return 1000 * seconds(lambda: [a @ b for _ in range(count)]) / count


def in_a_process(call: str, preload: str) -> float:
    """Return what a call of this module returns in a new process with this LD_PRELOAD and the same arguments."""
    code = f"from benchmarks.training import mkl_on_amd as m; m.arguments(''); print(m.{call})"
    words = [sys.executable, "-c", code, *sys.argv[1:]]
    environment = os.environ | {"LD_PRELOAD": preload}
    return float(subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout)


def main() -> None:
    chosen = arguments(__doc__)
    if not LIBRARY.exists():
        print(f"{LIBRARY} is missing: run `make amd`")
        return
    count, rounds = (10, 1) if chosen.quick else (20, 3)
    calls = {"product of matrices": f"product({100 * count})"}
    calls |= {f"{arch}, SCAN simple": f"step({arch!r}, {count})" for arch in chosen.arch}
    for title, call in calls.items():
        ways = {"PyTorch as it is": "", "with the library": str(LIBRARY.resolve())}
        measured = alternate({name: partial(in_a_process, call, preload) for name, preload in ways.items()}, rounds)
        table(title, "ms", measured, "PyTorch as it is", faster=True)


if __name__ == "__main__":
    main()
