"""Words of natural languages: scores of translations by words, translation word by word, and languages without spaces.

A word is what spaces separate, without punctuation and symbols at its ends.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tfstudy.errors import UserError, quoted
from tfstudy.tasks.scoring import is_unspaced
from tfstudy.tasks.translation.corpus import Sentences

PHRASE = 3  # words whose repetition counts
UNSPACED = {  # languages written without spaces between words, and the tokenizer of sacreBLEU for each
    **dict.fromkeys(
        ["ja", "jpn", "th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod", "dz", "dzo"], "char"
    ),
    **dict.fromkeys(["zh", "zho", "cmn", "yue"], "zh"),
}
SAMPLE = 100  # train pairs whose script decides
# Of the lexicon (IBM Model 1)
ITERATIONS = 5
MAX_WORDS = 100  # of a side; longer pairs are not learned from
MAX_LINKS = 4_000_000  # pairs of a source and a target word of the same sentence pair; later pairs are not learned from
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@lru_cache(maxsize=2**16)
def core(piece: str) -> tuple[int, int]:
    """Return where a word begins and ends within the punctuation and symbols around it; equal if there is none."""
    start, end = 0, len(piece)
    while start < end and _is_mark(piece[start]):
        start += 1
    while end > start and _is_mark(piece[end - 1]):
        end -= 1
    return start, end


def words(text: str) -> Iterator[str]:
    """Yield the words of a text."""
    for piece in text.split(" "):
        start, end = core(piece)
        if end > start:
            yield piece[start:end]


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PSZC"


class Translated(NamedTuple):
    """A sentence, what a model translates it to, and its translation in the corpus, as text."""

    source: str
    prediction: str
    target: str


SCORES = {
    "no_repetition": "outputs with words in which no phrase of three occurs twice, unless the target has it as often",
    "no_memorisation": "outputs with words that are not, word for word, the target of another train pair",
    "known_words": "predicted words that are in a train pair of the corpus, or in the sentence's own source or target",
    "copy_recall": "words of both the source and the target that are predicted",
    "long_word_recall": "target words of many characters that are predicted",
}


class Seen(NamedTuple):
    """What the train pairs contain, in lower case."""

    words: Set[str]  # of both sides, in all train pairs of the corpus
    targets: Set[str]  # of the pairs that the network was trained on


def word_scores(sentences: Iterable[Translated], seen: Seen, long: int) -> dict[str, float]:
    """Return `SCORES` as fractions over all sentences, by words in lower case; those without cases are left out.

    Long words have at least `long` characters.
    """
    correct, total = Counter[str](), Counter[str]()
    for sentence in sentences:
        for name, holds in _judgements(sentence, seen, long):
            correct[name] += holds
            total[name] += 1
    return {name: correct[name] / total[name] for name in SCORES if total[name]}


def _judgements(sentence: Translated, seen: Seen, long: int) -> Iterator[tuple[str, bool]]:
    """Yield pairs of a score name and whether one sentence or one word is correct."""
    source, predicted, target = (list(words(text.lower())) for text in sentence)
    phrases, in_target = _phrases(predicted), _phrases(target)
    if predicted:
        yield "no_repetition", all(n <= max(1, in_target[phrase]) for phrase, n in phrases.items())
        output = sentence.prediction.lower()
        yield "no_memorisation", output not in seen.targets or output == sentence.target.lower()
    given, found = {*source, *target}, {*predicted}
    yield from (("known_words", word in seen.words or word in given) for word in predicted)
    yield from (("copy_recall", word in found) for word in {*source} & {*target})
    yield from (("long_word_recall", word in found) for word in target if len(word) >= long)


def _phrases(sentence: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(sentence[start:] for start in range(PHRASE)), strict=False))


def lexicon(train: Iterable[Sentences]) -> dict[str, str]:
    """Return the most probable target word of each source word in lower case; among equals, the first that occurred.

    The probabilities are those of IBM Model 1 (Brown et al. 1993, J93-2003, sec. 4.3), learned by EM with an empty
    source word from the first pairs of `train`, up to four million links between words: about 25,000 captions of 12
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


def is_unspaced_language(language: str) -> bool:
    """Return whether a language is written without spaces between words, by its code."""
    return _code(language) in UNSPACED


def unspaced_targets(train: Sequence[Sentences]) -> bool:
    """Return whether the first targets are in a script without spaces between words."""
    return is_unspaced("".join(pair.target for pair in train[:SAMPLE]))


def bleu_tokenizer(language: str, train: Sequence[Sentences]) -> str:
    """Return the name of the tokenizer of sacreBLEU; `UserError` if language and script of the targets disagree."""
    tokenizer = UNSPACED.get(_code(language), "13a")
    if (tokenizer == "13a") == unspaced_targets(train):
        codes = ", ".join(code for code in UNSPACED if len(code) == 2)
        raise UserError(
            f"data.target_language={quoted(language)} does not fit the script of the targets: it must be "
            f"one of {codes} if and only if they have no spaces between words. Set it, or set data.bleu_tokenizer"
        )
    return tokenizer


def _code(language: str) -> str:
    """Return `ja` for `ja`, `JA` and `ja_JP`."""
    return language.lower().replace("_", "-").partition("-")[0]
