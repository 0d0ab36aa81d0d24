"""CPU cost of small training steps: one micro-batch against two, by width and batch size.

`SMALL_STEP` in `tfstudy/data/ragged.py` is the work of a batch (parameters times tokens) below which one is faster.
"""

from functools import partial

import torch

from benchmarks.timing import alternate, arguments, now, scan, table, widths
from benchmarks.training.trainer_overhead import loop
from tfstudy.data import module, ragged
from tfstudy.experiment.prepare import Prepared

TOKENS = 24  # of an example of SCAN simple, source and target
SKIP = 3  # first steps that are not measured
SIZES = ((32, 32), (64, 32), (64, 64), (128, 64))  # width of the model, and rows of a batch


def milliseconds(prepared: Prepared, limit: int, count: int) -> float:
    """Return the milliseconds per step if batches with less work than `limit` are one micro-batch."""
    before, module.SMALL_STEP = module.SMALL_STEP, limit
    try:
        times = [now() for _ in loop(prepared, SKIP + count)]
    finally:
        module.SMALL_STEP = before
    return 1000 * (times[-1] - times[SKIP - 1]) / count


def main() -> None:
    chosen = arguments(__doc__)
    count, rounds = (10, 2) if chosen.quick else (30, 6)
    for arch in chosen.arch:
        for dim, rows in SIZES:
            prepared = scan(arch, widths(arch, dim), batch_size=rows)
            parameters = sum(parameter.numel() for parameter in prepared.model.parameters())
            limits = {"two micro-batches": 0, "one micro-batch": 2**62}
            measured = alternate(
                {name: partial(milliseconds, prepared, n, count) for name, n in limits.items()}, rounds
            )
            work = parameters * rows * TOKENS / ragged.SMALL_STEP
            title = f"{arch}, width {dim}, {rows} rows, {work:.1f} SMALL_STEP, {torch.get_num_threads()} threads"
            table(title, "ms/step", measured, "two micro-batches", faster=True)


if __name__ == "__main__":
    main()
