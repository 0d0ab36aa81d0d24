"""Which pairs are trained on and which are tested, as text: faults, overlaps between splits, and longer sentences."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy.errors import UserError
from tfstudy.tasks.base import Tag
from tfstudy.tasks.reading import read_pairs
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
MAX_SUBWORDS = 256  # of a train source or target: one much longer pair would set the cost of a batch
MAX_RATIO = 9  # of the two sides' lengths in words
# Faults that `clean-corpus-n.perl` of Moses (Koehn et al. 2007, P07-2045) and OpusFilter (Aulamo et al. 2020) remove,
# without those that guess a language. The first fault of a pair is the reason to leave it out.
FAULTS = {
    "empty_side": "with an empty side",
    "length_ratio": "with an extreme length ratio",
    "identical_sides": "with identical sides",
    "duplicate": "that occurred before",
}
LEFT_OUT = FAULTS | {  # reasons to leave a pair out of train
    "overlap": "with a source that is also in another split",
    "overlap_target": "with a target that is also in another split",
    "length": "longer than data.max_train_length",
    "subwords": f"with more than {MAX_SUBWORDS} subwords on a side",
}
PLACES = 20  # lines with a fault are recorded for each split


class Pair(NamedTuple):
    """A sentence and its translation, with the tags of the example; `length` is the number of source words."""

    source: str
    target: str
    tags: Mapping[str, Tag]

    @property
    def length(self) -> int:
        """Number of source words."""
        return int(self.tags["length"])


class Text(NamedTuple):
    """The pairs of all splits as text."""

    train: list[Pair]  # all candidates; prefixes are nested subsets
    held_out: dict[str, list[Pair]]
    notes: dict[str, Any]


def pair_of(source: str, target: str) -> Pair:
    """Return a pair with its length as a tag."""
    return Pair(source, target, _length_tag(len(source.split())))


@cache
def _length_tag(length: int) -> Mapping[str, Tag]:
    """Return the same tags for all pairs of a length: a million dictionaries would take 200 MB."""
    return {"length": length}


def embedded(config: "TranslationConfig") -> Text:
    """Draw pairs of the embedded languages."""
    number, limit = config.train_pairs or TRAIN_PAIRS, config.max_train_length
    sizes = EVAL_PAIRS | dict.fromkeys(synthetic.TESTS, CONSTRUCTION_PAIRS)
    held_out = _embedded_held_out(config.seed, **sizes)
    train, _, left_out = choose(_drawn("train", range(20 * number), config.seed), held_out, limit, number)
    if len(train) < number:
        raise UserError(f"data.max_train_length={limit} leaves {len(train):,} of {number:,} train pairs")
    longer = _drawn("test", range(EVAL_PAIRS["test"], 6 * EVAL_PAIRS["test"]), config.seed) if limit else ()
    return Text(train, split_by_length(held_out, limit, longer, train), {"left_out": left_out})


@lru_cache(maxsize=1)  # a grid has runs on different amounts of the same pairs
def _embedded_held_out(seed: int, **sizes: int) -> Mapping[str, tuple[Pair, ...]]:
    return MappingProxyType({name: tuple(_drawn(name, range(size), seed)) for name, size in sizes.items()})


def _drawn(split: str, numbers: Iterable[int], seed: int) -> Iterator[Pair]:
    for source, target, tags in (synthetic.pair(split, number, seed) for number in numbers):
        yield Pair(" ".join(source), " ".join(target), tags)


def from_corpus(config: "TranslationConfig") -> Text:
    """Read a corpus from a folder or from the hub; notes have its faults and the train pairs that were left out."""
    splits, unused, commit = read_pairs(config, (config.source_language, config.target_language))
    for name, split in splits.items():
        unused |= {f"column {column}": "translation has no tags" for column in split.tags}
        unused |= {"features": "translation has none"} if split.features else {}
        if name != "train":
            split.check_no_empty(name, "; only train pairs can be left out: remove these lines from the file")
        elif not config.clean:
            split.check_no_empty(name, "; data.clean=true leaves them out")
    pairs = {name: [*map(pair_of, split.sources, split.targets)] for name, split in splits.items()}
    found = {name: [*faults(own)] for name, own in pairs.items()}
    faulty = {  # numbers of lines or rows
        name: {fault: [n for n, names in enumerate(own, splits[name].first) if fault in names] for fault in FAULTS}
        for name, own in found.items()
    }
    train, cleaned = pairs.pop("train"), Counter[str]()
    if config.clean:
        cleaned = Counter(names[0] for names in found["train"] if names)
        train = [pair for pair, names in zip(train, found["train"], strict=True) if not names]

    def digest(pair: Pair) -> bytes:
        return hashlib.sha256(f"subset\t{config.seed}\t{pair.source}\t{pair.target}".encode()).digest()

    # In an order that depends only on text and seed, prefixes are nested random subsets; files are often sorted.
    kept, longer, left_out = choose(sorted(train, key=digest), pairs, config.max_train_length)
    left_out |= cleaned
    if len(kept) < max(config.train_pairs, 1):
        needed = f" for data.train_pairs={config.train_pairs}" if config.train_pairs else ""
        reasons = listed(left_out, LEFT_OUT) or "none"
        raise UserError(
            f"{len(kept):,} of {len(found['train']):,} train pairs are left, too few{needed} (left out: {reasons})"
        )
    notes = {
        "commit": commit,
        "quality": {name: {fault: len(lines) for fault, lines in own.items()} for name, own in faulty.items()},
        "faulty": {name: {fault: lines[:PLACES] for fault, lines in own.items()} for name, own in faulty.items()},
        "left_out": left_out,
        "unused": unused,
    }
    return Text(kept, split_by_length(pairs, config.max_train_length, longer, kept), notes)


def faults(pairs: Iterable[Pair]) -> Iterator[list[str]]:
    """Yield the faults of each pair, in the order of `FAULTS`."""
    seen: set[tuple[str, str]] = set()
    for source, target, _ in pairs:
        shorter, longer = sorted((_words(source), _words(target)))
        found = {
            "empty_side": not (source.strip() and target.strip()),
            "length_ratio": longer > MAX_RATIO * shorter > 0,
            "identical_sides": source == target and bool(source.strip()),
            "duplicate": (source, target) in seen,
        }
        seen.add((source, target))
        yield [name for name, has in found.items() if has]


def _words(text: str) -> int:
    """Return the number of words; in scripts written without spaces, two characters are one."""
    if text.isascii():
        return len(text.split())
    rest, characters = UNSPACED_SCRIPTS.subn(" ", text)
    return len(rest.split()) + (characters + 1) // 2


def listed(counts: Mapping[str, int], texts: Mapping[str, str]) -> str:
    """Return the counts that are not zero, each with its text."""
    return ", ".join(f"{counts[name]:,} {text}" for name, text in texts.items() if counts.get(name))


def located(notes: Mapping[str, Any], split: str) -> str:
    """Return the number of each fault in a split, with its first line."""
    first = {fault: lines[0] for fault, lines in notes["faulty"][split].items() if lines}
    counts = notes["quality"][split]
    return ", ".join(f"{counts[name]:,} {FAULTS[name]} (first in line {line})" for name, line in first.items())


def choose(
    pairs: Iterable[Pair], held_out: Mapping[str, Iterable[Pair]], max_length: int, most: int = 0
) -> tuple[list[Pair], list[Pair], dict[str, int]]:
    """Return the pairs to train on (at most `most`; 0: all), the longer ones, and how many are left out by reason.

    No pair to train on has a source or a target of a held-out split.
    """
    sources = {pair.source for own in held_out.values() for pair in own}
    targets = {pair.target for own in held_out.values() for pair in own}
    train: list[Pair] = []
    longer: list[Pair] = []
    left_out = {"overlap": 0, "overlap_target": 0, "length": 0}
    for pair in pairs:
        if max_length and pair.length > max_length:
            longer.append(pair)
            left_out["length"] += 1
        elif pair.source in sources or pair.target in targets:
            left_out["overlap" if pair.source in sources else "overlap_target"] += 1
        else:
            train.append(pair)
            if len(train) == most:
                break
    return train, longer, left_out


def split_by_length(
    held_out: Mapping[str, Sequence[Pair]], max_length: int, longer: Iterable[Pair], train: Sequence[Pair]
) -> dict[str, list[Pair]]:
    """Return the held-out splits; with a `max_length`, longer sources of `test` and `longer` are splits of their own.

    These contain no pair twice and no target of `train`. Empty splits are dropped.
    """
    splits = {name: list(pairs) for name, pairs in held_out.items()}
    if not max_length:
        return splits
    if taken := sorted(splits.keys() & LONGER.keys()):
        raise UserError(f"data.max_train_length adds a split '{taken[0]}', but the corpus already has one")
    train_targets = {pair.target for pair in train}
    candidates = chain(splits.get("test", ()), longer)
    distinct = {pair[:2]: pair for pair in candidates if pair.target not in train_targets}.values()
    for name in splits.keys() & {"validation", "test"}:
        splits[name] = [pair for pair in splits[name] if pair.length <= max_length]
    for name, (lower, upper) in LONGER.items():
        longer_ones = (pair for pair in distinct if lower * max_length < pair.length <= upper * max_length)
        splits[name] = [*longer_ones][:MAX_LONGER]
    if not any(splits[name] for name in LONGER):
        raise UserError(f"data.max_train_length={max_length}: no source of the test split is longer")
    return {name: pairs for name, pairs in splits.items() if pairs}
