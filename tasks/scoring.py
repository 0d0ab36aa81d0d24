"""Scores of one prediction against its target, their mean, and the Wilson interval of a proportion."""

import re
from collections.abc import Iterable, Sequence

UNSPACED_SCRIPTS = re.compile("[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # no spaces between words


def exact_match(prediction: Sequence[str], target: Sequence[str]) -> float:
    """Return 1.0 if prediction and target are the same tokens in the same order, else 0.0."""
    return float(tuple(prediction) == tuple(target))


def is_unspaced(text: str) -> bool:
    """Return whether more than a third of the characters are of scripts written without spaces between words."""
    return 3 * len(UNSPACED_SCRIPTS.findall(text)) > len(text)


def compared(target: str, prediction: str, characters: bool = False) -> tuple[list[str], list[str]]:
    """Return the tokens of target and prediction as text: what spaces separate, so that their number does not matter.

    If the target is written without spaces between words, the tokens are characters, without any spaces; with
    `characters` they are all characters.
    """
    if characters:
        return [*target], [*prediction]
    if UNSPACED_SCRIPTS.search(target) and (" " not in target.strip() or is_unspaced(target)):
        return [*"".join(target.split())], [*"".join(prediction.split())]
    return target.split(), prediction.split()


def same_text(target: str, prediction: str) -> bool:
    """Return whether a prediction is right: exact match of text, at the oracle length too, and in counts of errors."""
    tokens, predicted = compared(target, prediction)
    return tokens == predicted


def token_accuracy(prediction: Sequence[str], target: Sequence[str]) -> float:
    """Return the fraction of equal positions, out of the longer sequence's positions; 1.0 only for an exact match."""
    longer = max(len(prediction), len(target))
    return sum(map(str.__eq__, prediction, target)) / longer if longer else 1.0


def mean(values: Iterable[float]) -> float:
    """Return the arithmetic mean; NaN for no values."""
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson (1927) interval for a proportion `successes / n`; (0, 1) for n = 0."""
    if n == 0:
        return 0.0, 1.0
    z = 1.959963984540054
    share, spread = successes / n, z * z / n
    center = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * (share * (1 - share) / n + spread / (4 * n)) ** 0.5
    return max(0.0, center - half) if successes else 0.0, min(1.0, center + half) if successes < n else 1.0
