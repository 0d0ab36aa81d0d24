"""Scores of one prediction against its gold target."""

from collections.abc import Iterable, Sequence


def exact_match(prediction: Sequence[str], gold: Sequence[str]) -> float:
    """1.0 if the two are the same tokens in the same order, else 0.0."""
    return float(tuple(prediction) == tuple(gold))


def token_accuracy(prediction: Sequence[str], gold: Sequence[str]) -> float:
    """The share of positions that agree, out of the longer one's positions; so 1.0 only for an exact match."""
    longer = max(len(prediction), len(gold))
    return sum(map(str.__eq__, prediction, gold)) / longer if longer else 1.0


def mean(values: Iterable[float]) -> float:
    """The arithmetic mean; nan of nothing."""
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


def wilson(right: int, n: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """The interval of Wilson (1927) for a share `right` of `n`; at 95 % by default, (0, 1) of nothing."""
    if n == 0:
        return 0.0, 1.0
    share, spread = right / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * (share * (1 - share) / n + spread / (4 * n)) ** 0.5
    return max(0.0, centre - half) if right else 0.0, min(1.0, centre + half) if right < n else 1.0
