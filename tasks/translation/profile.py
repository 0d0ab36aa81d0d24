"""Which side of a corpus a sentence is like, by the scripts and the trigrams of its characters.

The evidence is that of a naive Bayes classifier of character trigrams (Dunning 1994, "Statistical Identification of
Language"; Cavnar & Trenkle 1994): sums of log p(trigram | side) / p(trigram | other side). Trigrams are hashed and
all sums are vectorised, so a million pairs take seconds.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from tfstudy.tasks.translation.corpus import Sentences

BUCKETS = 2**18  # of hashed trigrams
MIN_COUNT = 5  # rarer trigrams are no evidence: they may be of the judged sentence only
LEARNED = 20_000  # pairs that a profile is learned from
MAX_CHARACTERS = 1_000  # of a sentence that are looked at
BATCH = 10_000  # sentences at a time, which bounds the memory
MIN_EVIDENCE = 20.0  # nats: a pair with less evidence for either order is undecided
SCRIPTS = ("", "LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "CJK", "HANGUL", "DEVANAGARI", "BENGALI", "GURMUKHI",
           "GUJARATI", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "THAI", "LAO", "MYANMAR", "KHMER",
           "TIBETAN", "GEORGIAN", "ARMENIAN", "ETHIOPIC")  # fmt: skip
SAME = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Codes = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


class OrderProfile:
    """Trigrams and main scripts of the sources and of the targets of a corpus, to judge the order of pairs."""

    def __init__(self, pairs: Sequence[Sentences]) -> None:
        sides = [list(dict.fromkeys(pair[side] for pair in pairs[:LEARNED])) for side in (0, 1)]  # no repeats
        self.scripts = main_script(sides[0]), main_script(sides[1])
        counts = np.stack([_counts(texts) for texts in sides])
        known = counts.sum(0) >= MIN_COUNT
        smooth = (counts + 1) / (counts.sum(1, keepdims=True) + max(1, known.sum()))
        self._weights = np.where(known, np.log(smooth[0] / smooth[1]), 0.0)

    def evidence(self, pairs: Sequence[Sentences]) -> Floats:
        """Return how much more probable the order of each pair is than the opposite order (log ratio, nats)."""
        sources, targets = (_sums(self._weights, [pair[side] for pair in pairs]) for side in (0, 1))
        return sources - targets


def main_script(texts: Sequence[str]) -> str:
    """Return the script of most letters, such as LATIN or CJK (including kana); empty if there are no letters."""
    found = np.zeros(len(SCRIPTS), np.int64)
    for codes, _ in _batches(texts):
        found += np.bincount(_scripts()[codes], minlength=len(SCRIPTS))
    found[0] = 0
    return SCRIPTS[int(found.argmax())]


def script_shares(texts: Sequence[str], script: str) -> Floats:
    """Return for each text which share of its letters are of `script`; 1 for a text without letters."""
    shares = []
    for codes, starts in _batches(texts):
        scripts = _scripts()[codes]
        letters = np.add.reduceat(scripts != 0, starts, dtype=np.int64)
        of_script = np.add.reduceat(scripts == SCRIPTS.index(script), starts, dtype=np.int64)
        shares.append(np.where(letters, of_script / np.maximum(letters, 1), 1.0))
    return np.concatenate(shares) if shares else np.zeros(0)


@cache
def _scripts() -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Return the script of every character as an index of SCRIPTS; 0 for those that are no letters."""
    index = {script: number for number, script in enumerate(SCRIPTS)}
    table = np.zeros(0x110000, np.uint8)
    for code in range(0x30000):
        name = unicodedata.name(chr(code), "").partition(" ")[0] if unicodedata.category(chr(code))[0] == "L" else ""
        table[code] = index.get(SAME.get(name, name), 0)
    return table


def _batches(texts: Sequence[str]) -> Iterator[tuple[Codes, Codes]]:
    """Yield the characters of some texts as one array, each text ended by a line feed, and where each text begins."""
    for first in range(0, len(texts), BATCH):
        cut = [f" {text[:MAX_CHARACTERS].lower()} \n" for text in texts[first : first + BATCH]]
        codes = np.frombuffer("".join(cut).encode("utf-32-le"), "<u4").astype(np.int64)
        yield codes, np.cumsum([0, *map(len, cut[:-1])])


def _trigrams(codes: Codes) -> Codes:
    """Return the bucket of the trigram that begins at each character; BUCKETS where a line feed is in it."""
    padded = np.concatenate([codes, [10, 10]])
    hashed = (padded[:-2] * 1_000_003 + padded[1:-1] * 8_191 + padded[2:] * 131) % 1_048_573 % BUCKETS
    ends = padded == 10
    return np.where(ends[:-2] | ends[1:-1] | ends[2:], BUCKETS, hashed)


def _counts(texts: Sequence[str]) -> Floats:
    counts = np.zeros(BUCKETS + 1)
    for codes, _ in _batches(texts):
        counts += np.bincount(_trigrams(codes), minlength=BUCKETS + 1)
    counts[BUCKETS] = 0
    return counts


def _sums(weights: Floats, texts: Sequence[str]) -> Floats:
    """Return for each text the sum of the weights of its trigrams."""
    sums = [np.add.reduceat(weights[_trigrams(codes)], starts) for codes, starts in _batches(texts)]
    return np.concatenate(sums) if sums else np.zeros(0)
