"""What a training step costs with its batch in one padded whole, or in 1 to 4 parts of at most 1 to 12 blocks.

The figure is milliseconds per 1,000 labels, which is about one step. Below the table: what a step costs at all, by
least squares over all steps with two parts (time = a + b blocks + c padded positions), and the ratio b / c;
`OVERHEAD` in tfstudy/data.py lies between those of the architectures. With one thread the parts are computed one after
the other, with more side by side.
"""

import statistics
from functools import partial

import numpy as np
import torch

from benchmarks.timing import alternate, arguments, now, scan, table
from benchmarks.training.trainer_overhead import loop
from tfstudy.data import ragged
from tfstudy.experiment.prepare import Prepared

SKIP = 2  # the first steps, which are not measured
Step = tuple[int, int, float]  # blocks, padded positions, milliseconds


def steps(prepared: Prepared, blocks: int, count: int, seen: dict[tuple[str, int], list[Step]], name: str) -> float:
    """Milliseconds per 1,000 labels of the first batches; every step is added to `seen` by its number."""
    ragged.BLOCKS = blocks
    labels, whole, before = 0.0, 0.0, 0.0
    for number, batch in enumerate(loop(prepared, SKIP + count)):
        spent, before = 1000 * (now() - before), now()
        if number >= SKIP:
            labels, whole = labels + batch.tokens, whole + spent
            rows = [rows for part in batch.parts for rows in part]
            positions = sum(each.source.numel() + each.target.numel() for each in rows)
            seen.setdefault((name, number), []).append((len(rows), positions, spent))
    return 1000 * whole / labels


def overhead(seen: dict[tuple[str, int], list[Step]]) -> str:
    """The three terms of a step's time, of each step the median of its rounds."""
    rows = [(*rounds[0][:2], statistics.median(r[2] for r in rounds)) for rounds in seen.values()]
    blocks, positions, times = np.array(rows).T
    terms = np.stack([np.ones_like(blocks), blocks, positions], 1)
    fixed, block, position = np.linalg.lstsq(terms, times, rcond=None)[0]
    costs = f"{fixed:.2f} ms + {block:.2f} ms a block + {1000 * position:.2f} ms per 1,000 positions"
    return f"  {costs}: a block is {block / position:.0f} positions (OVERHEAD is {ragged.OVERHEAD})"


def main() -> None:
    chosen = arguments(__doc__)
    count, rounds = (15, 2) if chosen.quick else (60, 5)
    for arch in chosen.arch:
        settings = {(1, 1): "padded whole"}
        settings |= {(2, blocks): f"2 parts of {blocks} block{'s' * (blocks > 1)}" for blocks in (1, 2, 4, 8, 12)}
        settings |= {(parts, 8): f"{parts} parts of 8 blocks" for parts in (3, 4)}
        seen: dict[tuple[str, int], list[Step]] = {}
        apart: dict[tuple[str, int], list[Step]] = {}  # of the whole and of other numbers of parts
        ways = {
            name: partial(steps, scan(arch, micro_batches=parts), blocks, count, seen if parts == 2 else apart, name)
            for (parts, blocks), name in settings.items()
        }
        measured = alternate(ways, rounds)
        table(f"{arch}, {torch.get_num_threads()} threads", "ms per 1,000", measured, "padded whole", faster=True)
        print(overhead(seen))


if __name__ == "__main__":
    main()
