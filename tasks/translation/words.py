"""Words of natural languages: scores of translations by words, and languages written without spaces.

A word is what spaces separate, without punctuation and symbols at its ends.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from tfstudy.tasks.scoring import is_unspaced
from tfstudy.tasks.translation.text import Pair

PHRASE = 3  # words whose repetition counts
UNSPACED = {  # languages written without spaces between words, and the tokenizer of sacreBLEU for each
    **dict.fromkeys(
        ["ja", "jpn", "th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod", "dz", "dzo"], "char"
    ),
    **dict.fromkeys(["zh", "zho", "cmn", "yue"], "zh"),
}
SAMPLE = 100  # train pairs whose script decides


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


def word_scores(sentences: Iterable[tuple[str, str, str]], seen: Seen, long: int) -> dict[str, float]:
    """Return `SCORES` as fractions over all sentences, by words in lower case; those without cases are left out.

    Sentences are triples of source, prediction and target. Long words have at least `long` characters.
    """
    correct, total = Counter[str](), Counter[str]()
    for sentence in sentences:
        for name, holds in _judgements(sentence, seen, long):
            correct[name] += holds
            total[name] += 1
    return {name: correct[name] / total[name] for name in SCORES if total[name]}


def _judgements(sentence: tuple[str, str, str], seen: Seen, long: int) -> Iterator[tuple[str, bool]]:
    """Yield pairs of a score name and whether one sentence or one word is correct."""
    source, predicted, target = (list(words(text.lower())) for text in sentence)
    phrases, in_target = _phrases(predicted), _phrases(target)
    if predicted:
        yield "no_repetition", all(n <= max(1, in_target[phrase]) for phrase, n in phrases.items())
        output = sentence[1].lower()
        yield "no_memorisation", output not in seen.targets or output == sentence[2].lower()
    given, found = {*source, *target}, {*predicted}
    yield from (("known_words", word in seen.words or word in given) for word in predicted)
    yield from (("copy_recall", word in found) for word in {*source} & {*target})
    yield from (("long_word_recall", word in found) for word in target if len(word) >= long)


def _phrases(sentence: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(sentence[start:] for start in range(PHRASE)), strict=False))


def is_unspaced_language(language: str) -> bool:
    """Return whether a language is written without spaces between words, by its code."""
    return _code(language) in UNSPACED


def unspaced_targets(train: Sequence[Pair]) -> bool:
    """Return whether the first targets are in a script without spaces between words."""
    return is_unspaced("".join(pair.target for pair in train[:SAMPLE]))


def bleu_tokenizer(language: str, train: Sequence[Pair]) -> str:
    """Return the name of the tokenizer of sacreBLEU, by the language or else by the script of the targets."""
    return UNSPACED.get(_code(language), "char" if unspaced_targets(train) else "13a")


def _code(language: str) -> str:
    """Return `ja` for `ja`, `JA` and `ja_JP`."""
    return language.lower().replace("_", "-").partition("-")[0]
