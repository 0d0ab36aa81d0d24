"""What is wrong with wrong predictions, and who gets right what: read from the predictions of finished runs.

gold  a b c d      a b     stops early      a b c d a    runs on           (blank)  empty
                   c d a b swapped parts    a x c x      wrong token (b, d)
                   a b a b c d repeated part             a c d  part left out
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

KINDS = (
    "right",
    "empty",
    "stops early",
    "runs on",
    "swapped parts",
    "repeated part",
    "part left out",
    "one token for another",
    "other tokens, right length",
    "other, too short",
    "other, too long",
)
Tokens = Sequence[str]
Row = Mapping[str, Any]  # of a run's predictions


class Anatomy(NamedTuple):
    """The kinds of a run's predictions on a split."""

    n: int
    kinds: dict[str, int]  # how many of each, in the order of KINDS, those that occur
    first_error: dict[
        str, float
    ]  # of each wrong kind the mean place of the first wrong token, as a share of the target
    examples: dict[str, list[Row]]  # some of each


def kind_of(target: Tokens, prediction: Tokens) -> str:
    """The first of `KINDS` that the prediction is."""
    gold, found = list(target), list(prediction)
    if found == gold:
        return "right"
    if not found:
        return "empty"
    if found == gold[: len(found)]:
        return "stops early"
    if gold == found[: len(gold)]:
        return "runs on"
    if len(found) == len(gold):
        return _same_length(gold, found)
    if len(found) > len(gold):
        return "repeated part" if _repeats(gold, found) else "other, too long"
    return "part left out" if _lacks(gold, found) else "other, too short"


def first_error(target: Tokens, prediction: Tokens) -> int | None:
    """The place of the first token that is not the target's, counted from 0, the end being a token; None if right."""
    for place, (one, other) in enumerate(zip([*target, None], [*prediction, None], strict=False)):
        if one != other:
            return place
    return None


def anatomy(rows: Iterable[Row], examples: int = 3) -> Anatomy:
    """The kinds of these predictions, with the first `examples` of each wrong kind."""
    counts: Counter[str] = Counter()
    places: dict[str, list[float]] = {}
    some: dict[str, list[Row]] = {}
    for row in rows:
        target, prediction = row["target"].split(), row["prediction"].split()
        kind, place = kind_of(target, prediction), first_error(target, prediction)
        counts[kind] += 1
        if place is not None:
            places.setdefault(kind, []).append(place / max(1, len(target)))
            if len(some.setdefault(kind, [])) < examples:
                some[kind].append(row)
    order = [kind for kind in KINDS if counts[kind]]
    means = {kind: sum(places[kind]) / len(places[kind]) for kind in order if kind in places}
    return Anatomy(counts.total(), {kind: counts[kind] for kind in order}, means, some)


def agreement(runs: Mapping[str, Iterable[Row]]) -> dict[tuple[str, ...], list[str]]:
    """Sources by the names of those that get them right, of those that all have; most sources first.

    `{("cnn",): [...]}` are what only the CNN gets right, and `{(): [...]}` what nobody does.
    """
    right = {name: {row["source"]: row["prediction"] == row["target"] for row in rows} for name, rows in runs.items()}
    shared = [source for source in next(iter(right.values()), {}) if all(source in found for found in right.values())]
    groups: dict[tuple[str, ...], list[str]] = {}
    for source in shared:
        groups.setdefault(tuple(name for name in right if right[name][source]), []).append(source)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def _same_length(gold: list[str], found: list[str]) -> str:
    if any(found == gold[cut:] + gold[:cut] for cut in range(1, len(gold))):
        return "swapped parts"
    other: dict[str, set[str]] = {}
    for one, token in zip(gold, found, strict=True):
        other.setdefault(one, set()).add(token)
    replaced = [tokens for token, tokens in other.items() if tokens != {token}]
    alone = all(len(tokens) == 1 for tokens in other.values()) and len(replaced) == 1
    return "one token for another" if alone else "other tokens, right length"


def _repeats(gold: list[str], found: list[str]) -> bool:
    """Whether `found` is the target with one of its parts said again, once or more, right after it."""
    more = len(found) - len(gold)
    begin = first_error(gold, found) or 0
    for width in (w for w in range(1, min(more, len(gold)) + 1) if more % w == 0):
        for start in range(max(0, begin - width), min(begin, len(gold) - width) + 1):
            part = gold[start : start + width]
            if gold[: start + width] + part * (more // width) + gold[start + width :] == found:
                return True
    return False


def _lacks(gold: list[str], found: list[str]) -> bool:
    """Whether `found` is the target without one stretch of it."""
    less, begin = len(gold) - len(found), first_error(gold, found) or 0
    return any(gold[:cut] + gold[cut + less :] == found for cut in range(begin + 1))
