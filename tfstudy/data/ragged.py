"""How a batch is divided: micro-batches of equal cost, and within each of them ragged groups of similar length."""

import itertools

import numpy as np
import torch

MICRO_BATCHES, GROUPS = 2, 4  # on CPU: micro-batches per batch, and groups per micro-batch
# Cost on CPU of one more group, in padded positions: measured 20 (Transformer, CNN) to 65 (LSTM), by least squares over
# steps of 1 to 12 groups (time = a + b groups + c positions). Four micro-batches are 15 to 20 % slower than two.
GROUP_OVERHEAD = 48
# Parameters times tokens of a batch below which one micro-batch is faster than two, on one thread by about 1.2: most of
# such a step is calls, which two threads cannot make at the same time. Measured: 1.15 to 1.25 at width 64 and 32 rows,
# 1.1 at 64 rows, 1.0 to 1.2 at width 128; on two threads, above the limit, up to 14 % slower.
SMALL_STEP = 200_000_000
SMALL_STEP_OVERHEAD = 150  # `GROUP_OVERHEAD` of such batches: a position costs less, and a group as much
# Rows where a group may start; division takes 1 ms at most. If all rows are candidates, it takes 9 ms for 512 rows,
# 37 ms for 1,024 and 190 ms for 2,048, and a step costs 0.1 to 0.2 % less.
CANDIDATES = 256


def micro_batch_count(requested: int, device: torch.device) -> int:
    """Return the maximum number of micro-batches per batch. 0 stands for `MICRO_BATCHES` on CPU and 1 elsewhere."""
    return requested or (MICRO_BATCHES if device.type == "cpu" else 1)


def split_evenly(lengths: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Split rows into at most `count` consecutive ranges (start, end) with about the same sum of lengths."""
    middles = np.cumsum(lengths) - lengths / 2
    bounds = np.searchsorted(middles, lengths.sum() * np.arange(1, count) / count)
    return [(start, end) for start, end in itertools.pairwise([0, *bounds.tolist(), len(lengths)]) if start < end]


def least_padding(
    source: np.ndarray, target: np.ndarray, groups: int, overhead: int | None = None
) -> list[tuple[int, int]]:
    """Split rows into at most `groups` consecutive ranges (start, end) such that padding costs least.

    The cost of a group is its number of padded positions plus `overhead`, by default `GROUP_OVERHEAD`. Dynamic
    programming finds the minimum over all splits; with more than `CANDIDATES` rows, over splits at `CANDIDATES` equally
    spaced rows.
    """
    rows = len(target)
    if groups == 1 or rows < 2:
        return [(0, rows)] if rows else []
    edges = np.linspace(0, rows, min(rows, CANDIDATES) + 1).astype(np.int64)
    cost = _costs(source, target, edges, GROUP_OVERHEAD if overhead is None else overhead)
    best, origins = [cost[0]], []  # best[k][e]: cost of k + 1 groups that end at candidate e
    for _ in range(groups - 1):
        costs = best[-1][:-1, None] + cost[1:]
        origins.append(costs.argmin(0))
        best.append(costs.min(0))
    count = int(np.argmin([costs[-1] for costs in best]))
    ends = [len(edges) - 1]
    for origin in reversed(origins[:count]):
        ends.append(int(origin[ends[-1] - 1]) + 1)
    return list(itertools.pairwise(edges[[0, *reversed(ends)]].tolist()))


def _costs(source: np.ndarray, target: np.ndarray, edges: np.ndarray, overhead: int) -> np.ndarray:
    """Return the cost of each group from edge i to edge j + 1, as a table (i, j); infinite for j < i."""
    start, end = edges[:-1, None], edges[1:]
    valid = end > start
    longest = (np.maximum.reduceat(lengths, edges[:-1]) for lengths in (source, target))
    widths = sum(np.maximum.accumulate(np.where(valid, x, 0), axis=1) for x in longest)
    return np.where(valid, (end - start) * widths + overhead, np.inf)
