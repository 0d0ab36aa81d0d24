"""How a batch is divided: micro-batches of equal cost, and ragged groups of rows of similar length."""

import itertools

import numpy as np

PARTS, BLOCKS = 2, 4  # of a batch, and of a part, on a CPU
# Cost of one more block on a CPU, in padded positions: 20 to 65 by architecture (benchmarks/training/micro_batches.py)
OVERHEAD = 48


def share(lengths: np.ndarray, parts: int) -> list[tuple[int, int]]:
    """Consecutive (start, end) of at most `parts` parts whose sums of lengths are about alike."""
    middles = np.cumsum(lengths) - lengths / 2
    bounds = np.searchsorted(middles, lengths.sum() * np.arange(1, parts) / parts)
    return [(a, b) for a, b in itertools.pairwise([0, *bounds.tolist(), len(lengths)]) if a < b]


def cut(source: np.ndarray, target: np.ndarray, blocks: int) -> list[tuple[int, int]]:
    """Consecutive (start, end) of at most `blocks` blocks, with the fewest padded positions and `OVERHEAD` for each."""
    n = len(target)
    if blocks == 1 or n < 2 or n > 2048:  # the costs of all blocks are a table of n x n
        return [(0, n)] if n else []
    start, end = np.arange(n)[:, None], np.arange(n)
    widths = sum(np.maximum.accumulate(np.where(end >= start, x, 0), axis=1) for x in (source, target))
    cost = np.where(end >= start, (end - start + 1) * widths + OVERHEAD, np.inf)  # of a block from start to end
    best, origin = [cost[0]], []  # best[k][e]: k + 1 blocks that end at e
    for _ in range(blocks - 1):
        ways = best[-1][:-1, None] + cost[1:]
        origin.append(ways.argmin(0))
        best.append(ways.min(0))
    count = int(np.argmin([costs[-1] for costs in best]))
    cuts, last = [], n
    for before in reversed(origin[:count]):
        first = int(before[last - 1]) + 1
        cuts.append((first, last))
        last = first
    return [(0, last), *reversed(cuts)]
