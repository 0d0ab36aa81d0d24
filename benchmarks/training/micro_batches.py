"""The cost of a training step by how its batch is divided: not at all, or in 1 to 4 micro-batches of 1 to 12 groups.

The figure is milliseconds per 1,000 target tokens, which is about one step. Below the table is a model of the cost, by
least squares over all steps with two micro-batches (time = a + b groups + c padded positions), and the ratio b / c.
`GROUP_OVERHEAD` in `tfstudy/data/ragged.py` is between the ratios of the architectures. With one thread, micro-batches
are computed one after the other; with more threads, in parallel.
"""

import statistics
from functools import partial

import numpy as np
import torch

from benchmarks.timing import alternate, arguments, now, scan, table
from benchmarks.training.trainer_overhead import loop
from tfstudy.data import module, ragged
from tfstudy.experiment.prepare import Prepared

SKIP = 2  # first steps that are not measured
Step = tuple[int, int, float]  # groups, padded positions, milliseconds


def steps(prepared: Prepared, groups: int, count: int, seen: dict[tuple[str, int], list[Step]], name: str) -> float:
    """Return milliseconds per 1,000 target tokens of the first batches; add every step to `seen` by its number."""
    module.GROUPS = groups
    tokens, total, before = 0.0, 0.0, 0.0
    for number, batch in enumerate(loop(prepared, SKIP + count)):
        spent, before = 1000 * (now() - before), now()
        if number >= SKIP:
            tokens, total = tokens + batch.tokens, total + spent
            rows = [rows for micro_batch in batch.micro_batches for rows in micro_batch]
            positions = sum(each.source.numel() + each.target.numel() for each in rows)
            seen.setdefault((name, number), []).append((len(rows), positions, spent))
    return 1000 * total / tokens


def overhead(seen: dict[tuple[str, int], list[Step]]) -> str:
    """Describe the three terms of a step's time, from the median of each step over all rounds."""
    rows = [(*rounds[0][:2], statistics.median(r[2] for r in rounds)) for rounds in seen.values()]
    groups, positions, times = np.array(rows).T
    terms = np.stack([np.ones_like(groups), groups, positions], 1)
    fixed, group, position = np.linalg.lstsq(terms, times, rcond=None)[0]
    costs = f"{fixed:.2f} ms + {group:.2f} ms per group + {1000 * position:.2f} ms per 1,000 positions"
    return f"  {costs}: a group costs {group / position:.0f} positions (GROUP_OVERHEAD is {ragged.GROUP_OVERHEAD})"


def main() -> None:
    chosen = arguments(__doc__)
    count, rounds = (15, 2) if chosen.quick else (60, 5)
    for arch in chosen.arch:
        settings = {(1, 1): "not divided"}
        settings |= {(2, groups): f"2 of {groups} group{'s' * (groups > 1)}" for groups in (1, 2, 4, 8, 12)}
        settings |= {(count, 8): f"{count} of 8 groups" for count in (3, 4)}
        seen: dict[tuple[str, int], list[Step]] = {}
        others: dict[tuple[str, int], list[Step]] = {}  # with other numbers of micro-batches
        ways = {
            name: partial(steps, scan(arch, micro_batches=parts), groups, count, seen if parts == 2 else others, name)
            for (parts, groups), name in settings.items()
        }
        measured = alternate(ways, rounds)
        table(f"{arch}, {torch.get_num_threads()} threads", "ms per 1,000", measured, "not divided", faster=True)
        print(overhead(seen))


if __name__ == "__main__":
    main()
