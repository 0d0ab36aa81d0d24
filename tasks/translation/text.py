"""Which pairs are trained on and which are tested, as text: faults, overlaps between splits, and longer sentences."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy.errors import UserError
from tfstudy.tasks.base import Tag
from tfstudy.tasks.reading import PairData, read_pairs
from tfstudy.tasks.scoring import UNSPACED_SCRIPTS
from tfstudy.tasks.translation import synthetic

if TYPE_CHECKING:
    from tfstudy.tasks.translation.task import TranslationConfig

TRAIN_PAIRS = 5_000  # default number of train pairs of the embedded languages
EVAL_PAIRS = {"validation": 500, "test": 1_000}
CONSTRUCTION_PAIRS = 300  # of each test split with a held-out construction
# Test splits of longer sources: more than and at most this many times the maximum train length.
LONGER = {"test_1_5x": (1, 1.5), "test_2x": (1.5, 2), "test_4x": (2, 4)}
MAX_LONGER = 1_000  # pairs in each of these splits
MAX_RATIO = 9  # of the two sides' lengths in words
# Faults that `clean-corpus-n.perl` of Moses (Koehn et al. 2007, P07-2045) and OpusFilter (Aulamo et al. 2020) remove,
# without those that guess a language. The first fault of a pair is the reason to leave it out.
FAULTS = {
    "empty_side": "with an empty side",
    "length_ratio": "with an extreme length ratio",
    "identical_sides": "with identical sides",
    "duplicate": "that occurred before",
}


class Sentences(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


class Row(NamedTuple):
    """A pair with the tags of its example; the tag `length` is the number of source words."""

    pair: Sentences
    tags: Mapping[str, Tag]

    @property
    def length(self) -> int:
        """Number of source words."""
        return int(self.tags["length"])


class Text(NamedTuple):
    """The pairs of all splits as text."""

    train: list[Row]  # all candidates; prefixes are nested subsets
    held_out: dict[str, list[Row]]
    notes: dict[str, Any]


def row_of(pair: Sentences, tags: Mapping[str, Tag] = MappingProxyType({})) -> Row:
    """Return the pair as a row, with `length` added to its tags."""
    length = len(pair.source.split())
    return Row(pair, {**tags, "length": length} if tags else _length_tag(length))


@cache
def _length_tag(length: int) -> Mapping[str, Tag]:
    """Return the same tags for all pairs of a length: a million dictionaries would take 200 MB."""
    return {"length": length}


def embedded(config: "TranslationConfig") -> Text:
    """Draw pairs of the embedded languages."""
    number, limit = config.train_pairs or TRAIN_PAIRS, config.max_train_length
    sizes = EVAL_PAIRS | dict.fromkeys(synthetic.TESTS, CONSTRUCTION_PAIRS)
    held_out = _embedded_held_out(config.seed, **sizes)
    train_filter = TrainFilter(held_out if config.drop_overlap else {}, limit)
    train = list(islice(train_filter.keep(_drawn("train", range(20 * number), config.seed)), number))
    if len(train) < number:
        raise UserError(f"data.max_train_length={limit} leaves {len(train):,} of {number:,} train pairs")
    longer = _drawn("test", range(EVAL_PAIRS["test"], 6 * EVAL_PAIRS["test"]), config.seed) if limit else ()
    return Text(train, split_by_length(held_out, limit, longer, train), {"left_out": train_filter.left_out})


@lru_cache(maxsize=1)  # a grid has runs on different amounts of the same pairs
def _embedded_held_out(seed: int, **sizes: int) -> Mapping[str, tuple[Row, ...]]:
    return MappingProxyType({name: tuple(_drawn(name, range(size), seed)) for name, size in sizes.items()})


def _drawn(split: str, numbers: Iterable[int], seed: int) -> Iterator[Row]:
    for pair in (synthetic.pair(split, number, seed) for number in numbers):
        yield row_of(Sentences(" ".join(pair.source), " ".join(pair.target)), pair.tags)


def from_corpus(config: "TranslationConfig") -> Text:
    """Read a corpus from a folder or from the hub; notes have its faults and the train pairs that were left out."""
    corpus = read_corpus(config)
    _check_empty(corpus, config.clean)
    pairs = {name: [*map(Sentences, split.sources, split.targets)] for name, split in corpus.splits.items()}
    pairs["train"] = shuffled(pairs["train"], config.subset_seed)
    found = {name: list(faults(own)) for name, own in pairs.items()}
    left_out: dict[str, int] = {}
    if config.clean:
        left_out = dict.fromkeys(FAULTS, 0) | Counter(names[0] for names in found["train"] if names)
        train = zip(pairs["train"], found["train"], strict=True)
        pairs["train"] = [pair for pair, names in train if not names]
    rows = {name: list(map(row_of, own)) for name, own in pairs.items()}
    candidates = rows.pop("train")
    train_filter = TrainFilter(rows if config.drop_overlap else {}, config.max_train_length)
    kept = list(train_filter.keep(candidates))
    left_out = train_filter.left_out | left_out
    _check_size(config, len(kept), len(found["train"]), left_out)
    counts = {name: dict.fromkeys(FAULTS, 0) | Counter(chain(*names)) for name, names in found.items()}
    notes = {"commit": corpus.commit, "quality": counts, "left_out": left_out, "unused": {**corpus.unused}}
    return Text(kept, split_by_length(rows, config.max_train_length, train_filter.longer, kept), notes)


def read_corpus(config: "TranslationConfig") -> PairData:
    """Return the pairs of the corpus; columns beyond the two sides are noted as unused."""
    data = read_pairs(config, (config.source_language, config.target_language))
    for split in data.splits.values():
        data.unused.update({f"column {name}": "translation has no tags" for name in split.tags})
    return data


def shuffled(pairs: Iterable[Sentences], seed: int) -> list[Sentences]:
    """Return the pairs in an order that depends only on their text and `seed`; its prefixes are nested random subsets.

    Files are often sorted by origin, so the first lines would not be a random sample.
    """

    def key(pair: Sentences) -> bytes:
        return hashlib.sha256(f"subset\t{seed}\t{pair.source}\t{pair.target}".encode()).digest()

    return sorted(pairs, key=key)


def faults(pairs: Iterable[Sentences]) -> Iterator[list[str]]:
    """Yield the faults of each pair, in the order of `FAULTS`."""
    seen: set[Sentences] = set()
    for pair in pairs:
        shorter, longer = sorted(map(_words, pair))
        found = {
            "empty_side": not all(map(str.strip, pair)),
            "length_ratio": longer > MAX_RATIO * shorter > 0,
            "identical_sides": pair.source == pair.target and bool(pair.source.strip()),
            "duplicate": pair in seen,
        }
        seen.add(pair)
        yield [name for name, has in found.items() if has]


def _words(text: str) -> int:
    """Return the number of words; in scripts written without spaces, two characters are one."""
    if text.isascii():
        return len(text.split())
    rest, characters = UNSPACED_SCRIPTS.subn(" ", text)
    return len(rest.split()) + (characters + 1) // 2


def _check_empty(corpus: PairData, clean: bool) -> None:
    """Raise `UserError` for a pair with an empty side; with `clean`, only outside train."""
    for name, split in corpus.splits.items():
        pairs = [*zip(split.sources, split.targets, strict=True)]
        empty = [number for number, pair in enumerate(pairs) if not all(map(str.strip, pair))]
        if not empty or (clean and name == "train"):
            continue
        side = int(bool(pairs[empty[0]][0].strip()))
        way_out = "data.clean=true leaves them out" if name == "train" else "only train pairs can be left out"
        raise UserError(
            f"{split.place(empty[0], side)}: the {Sentences._fields[side]} is empty ({len(empty):,} of {len(pairs):,} "
            f"pairs of {name} have an empty side; {way_out})"
        )


def _check_size(config: "TranslationConfig", remaining: int, total: int, left_out: Mapping[str, int]) -> None:
    """Raise `UserError` if the corpus has fewer train pairs than the config asks for."""
    reasons = left_out_of_train(left_out) or "none"
    if not remaining:
        raise UserError(f"no train pair is left of {total:,} (left out: {reasons})")
    if remaining < config.train_pairs:
        raise UserError(
            f"data.train_pairs must be at most {remaining:,}, the number of train pairs (left out: {reasons}), "
            f"but is {config.train_pairs:,}"
        )


def left_out_of_train(counts: Mapping[str, int]) -> str:
    """Return how many pairs were left out for each reason; empty if none were."""
    reasons = FAULTS | {
        "overlap": "with a side that is also in another split",
        "length": "longer than data.max_train_length",
        "subwords": "with more subwords on a side than data.max_subwords (0: 256)",
    }
    return listed(counts, reasons)


def listed(counts: Mapping[str, int], texts: Mapping[str, str]) -> str:
    """Return the counts that are not zero, each with its text."""
    return ", ".join(f"{counts[name]:,} {text}" for name, text in texts.items() if counts.get(name))


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
