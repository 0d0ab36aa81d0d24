"""How often the statistics err: simulated studies whose truth is known, tested as a study is.

Figures of seeds are drawn as real ones look: symmetric (normal, sd 8), or skewed against a bound (near 100 %: beta). A
share's Monte Carlo error is printed beside it (1.96 standard errors).
"""

import argparse
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tfstudy.analysis.intervals import interval
from tfstudy.analysis.power import power_of_t, seeds_needed
from tfstudy.analysis.significance import ALPHA, compare, holm

Draw = Callable[[Generator, int], NDArray[np.float64]]
SHAPES: dict[str, tuple[Draw, float]] = {  # what draws the figures of n seeds, and their true mean
    "normal": (lambda draw, n: draw.normal(60, 8, n), 60.0),
    "bounded": (lambda draw, n: 100 * draw.beta(9, 1, n), 90.0),
}


def seeded(x: NDArray[np.float64]) -> dict[int, float]:
    return dict(enumerate(x.tolist()))


def coverage(studies: int) -> Iterator[tuple[str, float, int]]:
    """How often the 95 % interval of a mean holds the true one."""
    for shape, (figures, truth) in SHAPES.items():
        for n in (2, 3, 5, 8, 10, 20):
            draw = np.random.default_rng(n)
            some = studies if n < 10 else studies // 2  # bootstraps take longer
            found = [interval(figures(draw, n)) for _ in range(some)]
            share = float(np.mean([i.low <= truth <= i.high for i in found]))
            yield f"{shape}, n = {n} ({found[0].method})", share, some


def false_positives(studies: int) -> Iterator[tuple[str, float, int]]:
    """How often two that do not differ are told to, uncorrected; and a table of 12 pairs, corrected."""
    for shape, (figures, _) in SHAPES.items():
        for paired in (True, False):
            for n in (3, 5, 8, 12):
                draw = np.random.default_rng(n)
                found = [compare(seeded(figures(draw, n)), seeded(figures(draw, n)), paired) for _ in range(studies)]
                share = float(np.mean([one.p < ALPHA for one in found]))
                yield f"{shape}, n = {n} ({found[0].method})", share, studies
    draw, some = np.random.default_rng(0), studies // 4
    wrong = 0
    for _ in range(some):
        p = [
            compare(seeded(place[a]), seeded(place[b]), True).p
            for place in draw.normal(60, 8, (4, 3, 5))
            for a, b in ((0, 1), (0, 2), (1, 2))
        ]
        wrong += min(holm(p)) < ALPHA
    yield "any of 12 pairs of 4 splits, n = 5, Holm", wrong / some, some


def needed(studies: int) -> Iterator[str]:
    """What `needs about n more seeds` says after a pilot, against what the truth needs for a power of 80 %."""
    for effect in (0.8, 1.2, 2.0):
        right = next(n for n in range(2, 1000) if power_of_t(effect, n, paired=True) >= 0.8)
        for pilot in (5, 10, 20):
            draw = np.random.default_rng(pilot)
            found = [
                compare(seeded(x), seeded(np.zeros(pilot)), True) for x in draw.normal(effect, 1, (studies, pilot))
            ]
            guesses = np.array([seeds_needed(one) or 1000 for one in found])
            near = float(np.mean((guesses >= right / 2) & (guesses <= 2 * right)))
            yield (
                f"  effect {effect}, {right} seeds needed; after {pilot:2}: median {np.median(guesses):.0f}, "
                f"{100 * near:.0f} % within a factor of two"
            )


def show(title: str, rows: Iterator[tuple[str, float, int]]) -> None:
    print(f"\n{title}")
    for name, share, studies in rows:
        print(f"  {name:44}{share:8.3f} +- {1.96 * math.sqrt(share * (1 - share) / studies):.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few studies: shows that it works")
    studies = 40 if parser.parse_args().quick else 4000
    show("intervals that hold the true mean (.95 is promised)", coverage(studies))
    show("differences found where there are none (.05 is promised)", false_positives(studies))
    print("\nseeds needed for a power of 80 %, paired")
    for line in needed(studies // 4):
        print(line, flush=True)


if __name__ == "__main__":
    main()
