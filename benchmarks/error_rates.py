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
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

from tfstudy.analysis.stats import ALPHA, compare, interval, power_of_t, q_values, seeds_needed

Draw = Callable[[Generator, int], NDArray[np.float64]]
SHAPES: dict[str, tuple[Draw, float]] = {  # draws the results of n seeds; their true mean
    "normal": (lambda draw, n: draw.normal(60, 8, n), 60.0),
    "bounded": (lambda draw, n: 100 * draw.beta(9, 1, n), 90.0),
}


def coverage(studies: int) -> Iterator[tuple[str, float, int]]:
    """Yield how often the 95 % interval of a mean includes the true mean."""
    for shape, (figures, truth) in SHAPES.items():
        for n in (2, 3, 5, 8, 10, 20):
            draw = np.random.default_rng(n)
            found = [interval(figures(draw, n)) for _ in range(studies)]
            yield f"{shape}, n = {n}", _share(i.low <= truth <= i.high for i in found), studies


def false_positives(studies: int) -> Iterator[tuple[str, float, int]]:
    """Yield how often two equal conditions differ significantly, without a correction."""
    for shape, (figures, _) in SHAPES.items():
        for paired in (True, False):
            for n in (3, 5, 8, 12):
                draw = np.random.default_rng(n)
                found = [compare(figures(draw, n), figures(draw, n), paired) for _ in range(studies)]
                share = float(np.mean([one.p < ALPHA for one in found]))
                yield f"{shape}, n = {n} ({found[0].method})", share, studies


def documents(studies: int) -> Iterator[tuple[str, float, int]]:
    """Yield the share of false findings, and of real differences found, in documents of 12 pairs with 5 seeds each.

    They have 3 conditions on 4 test sets. Beside ours (Benjamini-Hochberg) are Bonferroni's correction, and a moderated
    t (Smyth 2004) with Benjamini-Hochberg: variances are shared between conditions, which here have the same variance,
    or in half of the test sets (`bounds`) that of results near 0 or 100 %.
    """
    pairs = [(a, b) for test_set in range(4) for a, b in combinations(range(3 * test_set, 3 * test_set + 3), 2)]
    some = np.tile([60.0, 60.0, 75.0], 4)
    none = np.full(12, 60.0)
    cases = {"none differ": (none, False), "none differ, bounds": (none, True), "8 differ": (some, False)}
    for name, (truth, bounds) in cases.items():
        draw = np.random.default_rng(0)
        real = np.array([truth[a] != truth[b] for a, b in pairs])
        false: dict[str, list[float]] = {}
        right: dict[str, list[float]] = {}
        for _ in range(studies):
            deviation = np.repeat(np.where(draw.random(4) < 0.5, 0.3, 12.0), 3) if bounds else np.full(12, 8.0)
            values = draw.normal(truth[:, None], deviation[:, None], (12, 5))
            p = np.array([compare(values[a], values[b], False).p for a, b in pairs])
            rules = {
                "Benjamini-Hochberg": q_values(p) < ALPHA,
                "Bonferroni": p * len(p) < ALPHA,
                "moderated t": q_values(moderated(values, pairs)) < ALPHA,
            }
            for rule, decided in rules.items():
                false.setdefault(rule, []).append((decided & ~real).sum() / max(1, decided.sum()))
                right.setdefault(rule, []).append(decided[real].mean() if real.any() else 0.0)
        for rule in false:
            yield f"{name}: false findings, {rule}", float(np.mean(false[rule])), studies
            if real.any():
                yield f"{name}: differences found, {rule}", float(np.mean(right[rule])), studies


def moderated(values: NDArray[np.float64], pairs: list[tuple[int, int]]) -> list[float]:
    """Return p values of t tests whose variances are drawn to those of all conditions (Smyth 2004, section 6.2)."""
    n = values.shape[1]
    variances, degrees = values.var(axis=1, ddof=1), n - 1
    logs = np.log(variances) - digamma(degrees / 2) + math.log(degrees / 2)
    excess = logs.var(ddof=1) - polygamma(1, degrees / 2)
    prior = 2 * _inverse_trigamma(excess) if excess > 0 else math.inf
    centre = math.exp(logs.mean() + (digamma(prior / 2) - math.log(prior / 2) if math.isfinite(prior) else 0.0))
    share = 1.0 if math.isinf(prior) else prior / (prior + degrees)
    shrunk = share * centre + (1 - share) * variances
    out = []
    for a, b in pairs:
        t = (values[a].mean() - values[b].mean()) / math.sqrt((shrunk[a] + shrunk[b]) / n)
        out.append(float(2 * stats.t.sf(abs(t), 2 * (prior + degrees))))
    return out


def _inverse_trigamma(y: float) -> float:
    return float(brentq(lambda x: polygamma(1, x) - y, 1e-3, 1e6)) if 1e-6 < y < 1e6 else 1e6


def needed(studies: int) -> Iterator[str]:
    """Yield the number of seeds proposed after a pilot study, and the number that a power of 80 % really needs."""
    for effect in (0.8, 1.2, 2.0):
        right = next(n for n in range(2, 1000) if power_of_t(effect, n, paired=True) >= 0.8)
        for pilot in (5, 10, 20):
            draw = np.random.default_rng(pilot)
            found = [compare(x, np.zeros(pilot), True) for x in draw.normal(effect, 1, (studies, pilot))]
            guesses = np.array([seeds_needed(one.effect, True) or 1000 for one in found])
            near = float(np.mean((guesses >= right / 2) & (guesses <= 2 * right)))
            yield (
                f"  effect {effect}, {right} seeds needed; after {pilot:2}: median {np.median(guesses):.0f}, "
                f"{100 * near:.0f} % within a factor of two"
            )


def promises(studies: int) -> Iterator[tuple[str, float, int]]:
    """Yield how often the proposed number of seeds decides, where a pilot study of 5 had the true mean and variance.

    A comparison proposes the seeds for a power of 80 %.
    """
    for gap in (10.0, 15.0, 25.0):
        n = seeds_needed(gap / 8, False) or 0
        draw = np.random.default_rng(n)
        pairs = draw.normal(0, 8, (studies, 2, n)) + np.array([[gap], [0.0]])
        yield (
            f"pair {gap:g} apart, {n} seeds (nominal: .80)",
            _share(compare(*x, False).p < ALPHA for x in pairs),
            studies,
        )


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
    show("documents of 12 pairs (nominal: at most .05 of findings are false)", documents(studies // 4))
    show("decided with the proposed number of seeds", promises(studies // 4))
    print("\nseeds needed for a power of 80 %, paired")
    for line in needed(studies // 4):
        print(line, flush=True)


if __name__ == "__main__":
    main()
