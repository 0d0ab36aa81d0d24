"""Which pairs are trained on and which are tested: overlaps between splits, and sentences longer than in training."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from tfstudy.errors import UserError
from tfstudy.tasks.base import Tag
from tfstudy.tasks.translation.corpus import Sentences

# Test splits of longer sources: more than and at most this many times the maximum train length.
LONGER = {"test_1_5x": (1, 1.5), "test_2x": (1.5, 2), "test_4x": (2, 4)}
MAX_LONGER = 1_000  # pairs in each of these splits


class Row(NamedTuple):
    """A pair with the tags of its example; the tag `length` is the number of source words."""

    pair: Sentences
    tags: Mapping[str, Tag]

    @property
    def length(self) -> int:
        """Number of source words."""
        return int(self.tags["length"])


def row_of(pair: Sentences, tags: Mapping[str, Tag] = MappingProxyType({})) -> Row:
    """Return the pair as a row, with `length` added to its tags."""
    length = len(pair.source.split())
    return Row(pair, {**tags, "length": length} if tags else _length_tag(length))


@cache
def _length_tag(length: int) -> Mapping[str, Tag]:
    """Return the same tags for all pairs of a length: a million dictionaries would take 200 MB."""
    return {"length": length}


class TrainFilter:
    """A filter of train pairs: drops sentences of held-out splits and sources above a maximum length (0: no maximum).

    `longer` collects the pairs above the maximum length; `left_out` counts dropped pairs by reason.
    """

    def __init__(self, held_out: Mapping[str, Iterable[Row]], max_length: int) -> None:
        pairs = [row.pair for rows in held_out.values() for row in rows]
        self._sources, self._targets = {pair.source for pair in pairs}, {pair.target for pair in pairs}
        self._max_length = max_length
        self.longer: list[Row] = []
        self.left_out = {"overlap": 0, "length": 0}

    def keep(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows that may be trained on."""
        for row in rows:
            if self._max_length and row.length > self._max_length:
                self.left_out["length"] += 1
                self.longer.append(row)
            elif row.pair.source in self._sources or row.pair.target in self._targets:
                self.left_out["overlap"] += 1
            else:
                yield row


def split_by_length(
    held_out: Mapping[str, Sequence[Row]], max_length: int, longer: Iterable[Row], train: Sequence[Row]
) -> dict[str, list[Row]]:
    """Return the held-out splits; longer sources of `test`, and those of `longer`, form splits of their own.

    The new splits contain no pair twice and no target of `train`. `validation` keeps sources up to `max_length`, other
    splits stay as they are. Empty splits are dropped. With `max_length` 0, all splits are returned unchanged.
    """
    splits = {name: list(rows) for name, rows in held_out.items()}
    if not max_length:
        return splits
    if taken := sorted(splits.keys() & LONGER.keys()):
        raise UserError(f"data.max_train_length adds a split '{taken[0]}', but the corpus already has one")
    train_targets = {row.pair.target for row in train}
    distinct = {row.pair: row for row in [*splits.get("test", ()), *longer] if row.pair.target not in train_targets}
    longer = list(distinct.values())
    for name in splits.keys() & {"validation", "test"}:
        splits[name] = [row for row in splits[name] if row.length <= max_length]
    for name, (lower, upper) in LONGER.items():
        splits[name] = [row for row in longer if lower * max_length < row.length <= upper * max_length][:MAX_LONGER]
    if not any(splits[name] for name in LONGER):
        raise UserError(f"data.max_train_length={max_length}: no source of the test split is longer")
    return {name: rows for name, rows in splits.items() if rows}


def in_no_split(before: Mapping[str, Iterable[Row]], after: Mapping[str, Iterable[Row]]) -> dict[str, int]:
    """Return how many pairs of each split are in none afterwards, for splits that lost some."""
    kept = {row.pair for rows in after.values() for row in rows}
    lost = {name: sum(row.pair not in kept for row in rows) for name, rows in before.items()}
    return {name: number for name, number in lost.items() if number}


def overlaps(train: Iterable[Row], held_out: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, int]]:
    """Return, per held-out split, how many of its sources, targets and pairs occur in train."""
    pairs = {row.pair for row in train}
    sources, targets = {pair.source for pair in pairs}, {pair.target for pair in pairs}
    return {
        name: {
            "sources": sum(row.pair.source in sources for row in rows),
            "targets": sum(row.pair.target in targets for row in rows),
            "pairs": sum(row.pair in pairs for row in rows),
        }
        for name, rows in held_out.items()
    }
