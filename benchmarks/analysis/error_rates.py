"""Error rates of the statistics: simulated studies with a known truth, tested like real ones.

Results are drawn from a symmetric distribution (normal, sd 8) or one skewed against a bound (beta, near 100 %).
Rates are printed with their Monte Carlo error (1.96 standard errors).
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
SHAPES: dict[str, tuple[Draw, float]] = {  # draws the results of n seeds; their true mean
    "normal": (lambda draw, n: draw.normal(60, 8, n), 60.0),
    "bounded": (lambda draw, n: 100 * draw.beta(9, 1, n), 90.0),
}


def seeded(x: NDArray[np.float64]) -> dict[int, float]:
    return dict(enumerate(x.tolist()))


def coverage(studies: int) -> Iterator[tuple[str, float, int]]:
    """Yield how often the 95 % interval of a mean includes the true mean."""
    for shape, (figures, truth) in SHAPES.items():
        for n in (2, 3, 5, 8, 10, 20):
            draw = np.random.default_rng(n)
            count = studies if n < 10 else studies // 2  # bootstraps take longer
            found = [interval(figures(draw, n)) for _ in range(count)]
            share = float(np.mean([i.low <= truth <= i.high for i in found]))
            yield f"{shape}, n = {n} ({found[0].method})", share, count


def false_positives(studies: int) -> Iterator[tuple[str, float, int]]:
    """Yield how often equal conditions differ significantly: uncorrected, and in a table of 12 pairs, corrected."""
    for shape, (figures, _) in SHAPES.items():
        for paired in (True, False):
            for n in (3, 5, 8, 12):
                draw = np.random.default_rng(n)
                found = [compare(seeded(figures(draw, n)), seeded(figures(draw, n)), paired) for _ in range(studies)]
                share = float(np.mean([one.p < ALPHA for one in found]))
                yield f"{shape}, n = {n} ({found[0].method})", share, studies
    draw, count = np.random.default_rng(0), studies // 4
    wrong = 0
    for _ in range(count):
        p = [
            compare(seeded(place[a]), seeded(place[b]), True).p
            for place in draw.normal(60, 8, (4, 3, 5))
            for a, b in ((0, 1), (0, 2), (1, 2))
        ]
        wrong += min(holm(p)) < ALPHA
    yield "any of 12 pairs of 4 splits, n = 5, Holm", wrong / count, count


def needed(studies: int) -> Iterator[str]:
    """Yield the number of seeds proposed after a pilot study, and the number that a power of 80 % really needs."""
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
    parser.add_argument("--quick", action="store_true", help="few studies: quick end-to-end check")
    studies = 40 if parser.parse_args().quick else 4000
    show("intervals that include the true mean (nominal: .95)", coverage(studies))
    show("false positives (nominal: .05)", false_positives(studies))
    print("\nseeds needed for a power of 80 %, paired")
    for line in needed(studies // 4):
        print(line, flush=True)


if __name__ == "__main__":
    main()
