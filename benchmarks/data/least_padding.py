"""Dividing a micro-batch into groups: its time, and how much more a step costs than with every row as a candidate.

Lengths are drawn at random; targets are sorted, as in training. `CANDIDATES` in `tfstudy/data/ragged.py` comes from
here: the largest batch whose groups are exactly those with the least padding.
"""

from functools import partial

import numpy as np

from benchmarks.timing import alternate, arguments, seconds, table
from tfstudy.data import ragged

GROUPS = 4


def divide(candidates: int, source: np.ndarray, target: np.ndarray) -> list[tuple[int, int]]:
    """Divide the rows with this number of candidates."""
    ragged.CANDIDATES = candidates
    return ragged.least_padding(source, target, GROUPS)


def cost(ranges: list[tuple[int, int]], source: np.ndarray, target: np.ndarray) -> float:
    """Return the padded positions of all groups, and the overhead of each."""
    widths = (source[start:end].max() + target[start:end].max() for start, end in ranges)
    return sum(
        (end - start) * width + ragged.GROUP_OVERHEAD for (start, end), width in zip(ranges, widths, strict=True)
    )


def main() -> None:
    chosen = arguments(__doc__, archs=False)
    random, rounds = np.random.default_rng(0), 2 if chosen.quick else 7
    for rows in (64, 256, 512) if chosen.quick else (64, 128, 256, 512, 1024, 2048):
        source, target = random.integers(3, 10, rows), np.sort(random.integers(3, 50, rows))
        ways = {f"{count} candidates": partial(divide, count, source, target) for count in (rows, 64, 128, 256)}
        exact = cost(ways[f"{rows} candidates"](), source, target)
        measured = alternate({name: lambda way=way: 1000 * seconds(way) for name, way in ways.items()}, rounds)
        table(f"{rows} rows", "ms", measured, f"{rows} candidates", faster=True)
        more = ", ".join(f"{name} {cost(way(), source, target) / exact - 1:.2%}" for name, way in ways.items())
        print(f"  additional cost: {more}")


if __name__ == "__main__":
    main()
