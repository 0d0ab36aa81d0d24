"""Error rates of the statistics: simulated studies with a known truth, tested like real ones.

Results are drawn from a symmetric distribution (normal, sd 8) or one skewed against a bound (beta, near 100 %).
Rates are printed with their Monte Carlo error (1.96 standard errors).
"""

import argparse
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import stats

from tfstudy.analysis.estimates import ACROSS, estimate_mean
from tfstudy.analysis.published import UNDECIDED, Gap, decide, more_seeds
from tfstudy.analysis.stats import ALPHA, Difference, compare, corrected, interval, power_of_t, seeds_needed

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
    """Yield how often two equal conditions differ significantly, without a correction."""
    for shape, (figures, _) in SHAPES.items():
        for paired in (True, False):
            for n in (3, 5, 8, 12):
                draw = np.random.default_rng(n)
                found = [compare(seeded(figures(draw, n)), seeded(figures(draw, n)), paired) for _ in range(studies)]
                share = float(np.mean([one.p < ALPHA for one in found]))
                yield f"{shape}, n = {n} ({found[0].method})", share, studies


def documents(studies: int) -> Iterator[tuple[str, float, int]]:
    """Yield how often a document of 12 pairs (3 conditions on 4 test sets) and 10 claims errs, with 5 seeds each.

    A family errs if it decides anything that is not so; its intervals err if any of them excludes the truth. Beside
    ours are scipy's tests of the same numbers: Welch's and Student's, each at .05 divided by the number of tests.
    """
    pairs = [(a, b) for test_set in range(4) for a, b in combinations(range(3 * test_set, 3 * test_set + 3), 2)]
    truths = {"all conditions equal": np.full(12, 60.0), "a third differ": np.tile([60.0, 60.0, 75.0], 4)}
    for name, truth in truths.items():
        draw = np.random.default_rng(0)
        counts: dict[str, int] = {}
        for _ in range(studies):
            values = draw.normal(truth[:, None], 8, (12, 5))
            wrong = {**_pairs(values, truth, pairs), **_claims(values[:10], truth[:10])}
            counts = {key: counts.get(key, 0) + error for key, error in wrong.items()}
        for key, count in counts.items():
            yield f"{name}: {key}", count / studies, studies


def _pairs(values: NDArray[np.float64], truth: NDArray[np.float64], pairs: list[tuple[int, int]]) -> dict[str, bool]:
    ours = [compare(seeded(values[a]), seeded(values[b]), False, len(pairs)) for a, b in pairs]
    theirs = [stats.ttest_ind(values[a], values[b], equal_var=False) for a, b in pairs]
    gaps = [truth[a] - truth[b] for a, b in pairs]
    ends = [test.confidence_interval(1 - ALPHA / len(pairs)) for test in theirs]
    return {
        "any equal pair decided": _any(
            corrected(d.p, len(pairs)) < ALPHA for d, gap in zip(ours, gaps, strict=True) if not gap
        ),
        "any equal pair decided, scipy": _any(
            test.pvalue < ALPHA / len(pairs) for test, gap in zip(theirs, gaps, strict=True) if not gap
        ),
        "any interval of a pair misses": _any(not d.low <= gap <= d.high for d, gap in zip(ours, gaps, strict=True)),
        "any interval of a pair misses, scipy": _any(
            not e.low <= gap <= e.high for e, gap in zip(ends, gaps, strict=True)
        ),
    }


def _claims(values: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, bool]:
    """Ten claims whose truth is on the bound (`above`), so that either verdict is an error."""
    tests = len(values)
    sides = [estimate_mean((t, math.inf), seeded(x), tests=tests) for x, t in zip(values, truth, strict=True)]
    theirs = [stats.ttest_1samp(x, t).pvalue < ALPHA / tests for x, t in zip(values, truth, strict=True)]
    return {"any claim decided": _any(m.side != ACROSS for m in sides), "any claim decided, scipy": _any(theirs)}


def _any(errors: Iterable[Any]) -> bool:
    return any(map(bool, errors))


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


def promises(studies: int) -> Iterator[tuple[str, float, int]]:
    """Yield how often the proposed number of seeds decides, where a pilot study of 5 had the true mean and variance.

    A comparison of a study proposes the seeds for a power of 80 % at .05 divided by 12 tests. For a published figure
    (its standard error is 4.1 or unknown), it is the number with which the same difference would be decided.
    """
    for gap in (10.0, 15.0, 25.0):
        pilot = Difference(gap, 0, 0, 0, 10, gap / 8, "Welch")
        n = seeds_needed(pilot, ALPHA / 12) or 0
        draw = np.random.default_rng(n)
        pairs = draw.normal(0, 8, (studies, 2, n)) + np.array([[gap], [0.0]])
        found = (compare(seeded(x), seeded(y), False, 12) for x, y in pairs)
        share = _share(corrected(difference.p, 12) < ALPHA for difference in found)
        yield f"pair {gap:g} apart, {n} seeds (nominal: .80)", share, studies
    for gap, error in ((0.5, 0.0), (10.0, 0.0), (25.0, 4.1)):
        known = Gap(gap, 64.0, 5, error, 5, 1 - ALPHA / 8)
        n = 5 + (more_seeds(known) or 0)
        values = np.random.default_rng(n).normal(gap, 8, (studies, n))
        gaps = (known._replace(excess=abs(x.mean()), variance=x.var(ddof=1), n=n) for x in values)
        share = _share(decide(each.excess, each.half_width) != UNDECIDED for each in gaps)
        yield f"figure {gap:g} apart, {n} seeds (about .50)", share, studies


def _share(outcomes: Iterable[Any]) -> float:
    return float(np.mean([bool(outcome) for outcome in outcomes]))


def show(title: str, rows: Iterator[tuple[str, float, int]]) -> None:
    print(f"\n{title}")
    for name, share, studies in rows:
        print(f"  {name:58}{share:8.3f} +- {1.96 * math.sqrt(share * (1 - share) / studies):.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few studies: quick end-to-end check")
    studies = 40 if parser.parse_args().quick else 4000
    show("intervals that include the true mean (nominal: .95)", coverage(studies))
    show("false positives (nominal: .05)", false_positives(studies))
    show("documents of 12 pairs and 10 claims: errors in any of them (nominal: at most .05)", documents(studies // 4))
    show("decided with the proposed number of seeds", promises(studies // 4))
    print("\nseeds needed for a power of 80 %, paired")
    for line in needed(studies // 4):
        print(line, flush=True)


if __name__ == "__main__":
    main()
