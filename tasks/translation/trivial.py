"""Translation by trivial systems, which show how much of a score needs no model: copying, and word by word.

The lexicon is IBM Model 1 (Brown et al. 1993, J93-2003, sec. 4.3): t(target word | source word), learned by EM with an
empty source word. A word is what spaces separate, without punctuation at its ends; sources are compared in lower case.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from tfstudy.tasks.translation.corpus import Sentences
from tfstudy.tasks.translation.words import core, words

ITERATIONS = 5
MAX_WORDS = 100  # of a side; longer pairs are not learned from
MAX_LINKS = 4_000_000  # pairs of a source and a target word of the same sentence pair; later pairs are not learned from
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def lexicon(train: Iterable[Sentences]) -> dict[str, str]:
    """Return the most probable target word of each source word in lower case; among equals, the first that occurred.

    It is learned from the first pairs of `train`, up to four million links between words: about 25,000 captions of 12
    words or 8,000 sentences of 20.
    """
    source_ids: dict[str, int] = {"": 0}  # the empty word is in all sources
    target_ids: dict[str, int] = {}
    links, positions = _links(train, source_ids, target_ids)
    if not len(links[0]):
        return {}
    keys, entry = np.unique(links[0] * len(target_ids) + links[1], return_inverse=True)
    owner, word = keys // len(target_ids), keys % len(target_ids)
    table = _expectation_maximisation(entry, positions, owner)
    best = np.lexsort((word, -table, owner))  # by source word, then from the most probable target word
    first = np.unique(owner[best], return_index=True)[1]
    sources, targets = list(source_ids), list(target_ids)
    return {sources[owner[i]]: targets[word[i]] for i in best[first] if owner[i]}


def translated(source: str, best: Mapping[str, str]) -> str:
    """Return the source with its words replaced by those of a lexicon; everything else, and its order, stays."""
    pieces = []
    for piece in source.split(" "):
        start, end = core(piece)
        word = piece[start:end]
        pieces.append(piece[:start] + best.get(word.lower(), word) + piece[end:])
    return " ".join(pieces)


def _links(
    train: Iterable[Sentences], source_ids: dict[str, int], target_ids: dict[str, int]
) -> tuple[tuple[Numbers, Numbers], Numbers]:
    """Return the source and the target word of all links, and at which link each target position begins."""
    sources, targets, sizes, total = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [], 0
    for pair in train:
        left = [0, *(source_ids.setdefault(word.lower(), len(source_ids)) for word in words(pair.source))]
        right = [target_ids.setdefault(word, len(target_ids)) for word in words(pair.target)]
        if max(len(left) - 1, len(right)) > MAX_WORDS:
            continue
        total += len(left) * len(right)
        if total > MAX_LINKS:
            break
        sources.append(np.tile(left, len(right)))
        targets.append(np.repeat(np.array(right, np.int64), len(left)))  # also if there is no word
        sizes += [len(left)] * len(right)
    return (np.concatenate(sources), np.concatenate(targets)), np.cumsum([0, *sizes[:-1]])


def _expectation_maximisation(entry: Numbers, positions: Numbers, owner: Numbers) -> Floats:
    """Return t(target | source) of each entry of the table (equations 15 to 17); `owner` is its source word."""
    lengths = np.diff([*positions, len(entry)])
    table: Floats = np.ones(len(owner))
    for _ in range(ITERATIONS):
        weights = table[entry]
        weights /= np.repeat(np.add.reduceat(weights, positions), lengths)  # which source word caused this target word
        table = np.bincount(entry, weights, len(owner)).astype(np.float64)
        table /= np.bincount(owner, table)[owner]
    return table
