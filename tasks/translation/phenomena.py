"""Scores of translations into the embedded target language: lemmas, forms, word order, agreement and more.

Each target word is analysed by itself: no stem is a prefix of another word, so each form has one analysis.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

from tfstudy.tasks.translation.grammar import (
    ADJECTIVE_SUFFIX,
    ADJECTIVES,
    NAMES,
    NOUN_SUFFIX,
    NOUNS,
    OBJECT_PREFIX,
    PRONOUNS,
    TARGET_FUNCTION_WORDS,
    VERB_SUFFIX,
    VERBS,
    harmony_of,
)


class Analysis(NamedTuple):
    """The analysis of a target word: its lemma, the values of its marks by score name, and whether they harmonise.

    A word without a known stem is its own lemma. A word whose ending is not a suffix has no marks.
    """

    lemma: str
    marks: Mapping[str, Hashable] = {}
    harmonic: bool | None = None  # None if no suffix has a vowel


def _stems() -> dict[str, tuple[str, str]]:
    """Return the lemma (the stem of the citation form) and the kind of each stem."""
    stems = {word: (word, "function") for word in TARGET_FUNCTION_WORDS}
    for noun in [*NOUNS, *(noun.possessed for noun in NOUNS if noun.possessed), *NAMES, *PRONOUNS]:
        stems[noun.stem.text] = (noun.stem.text, "noun")
        if noun.plural:
            stems[noun.plural.text] = (noun.stem.text, "plural")
    stems |= {stem.text: (stem.text, "verb") for verb in VERBS for stem in verb.senses}
    return stems | {adjective.stem.text: (adjective.stem.text, "adjective") for adjective in ADJECTIVES}


def _read(forms: Mapping[str, Mapping[tuple[Any, ...], str]]) -> dict[str, tuple[Any, ...]]:
    """Return the inverse of a table of suffixes, ignoring harmony."""
    return {suffix.translate(UNHARMONISED): keys for keys, suffix in forms["back"].items()}


UNHARMONISED = str.maketrans("aoueyi", "AOUAOU")
STEMS = _stems()
READ_NOUN, READ_ADJECTIVE, READ_VERB = _read(NOUN_SUFFIX), _read(ADJECTIVE_SUFFIX), _read(VERB_SUFFIX)
READ_PREFIX = {prefix: agreement for agreement, prefix in OBJECT_PREFIX.items()}
PREFIXES = re.compile(r"\A((?:oz)?)((?:[aeiu][lbr])?)(.*)", re.DOTALL)  # negative, object, rest


def _marks(kind: str, negative: bool, agreement: Hashable, suffix: str) -> Mapping[str, Hashable]:
    """Return the marks of a word from its prefixes and its suffix without harmony; empty for an unknown suffix."""
    if kind == "noun" and suffix in READ_NOUN:
        return dict(zip(("number", "case"), READ_NOUN[suffix], strict=True))
    if kind == "plural" and suffix in READ_NOUN and READ_NOUN[suffix][0] == "singular":  # the stem is the mark
        return {"number": "plural", "case": READ_NOUN[suffix][1]}
    if kind == "adjective" and suffix in READ_ADJECTIVE:
        return {"adjective_agreement": READ_ADJECTIVE[suffix]}
    if kind == "verb" and suffix in READ_VERB:
        tense, negated, *subject, mood = READ_VERB[suffix]
        agreements = (agreement, *subject)
        return {"verb_agreement": agreements, "tense": tense, "negation": (negative, negated), "mood": mood}
    return {}


@lru_cache(maxsize=2**16)
def analyse(word: str) -> Analysis:
    """Analyse any string as a word of the target language."""
    negative, object_prefix, rest = PREFIXES.findall(word)[0]
    stem = next((rest[:n] for n in range(1, len(rest) + 1) if rest[:n] in STEMS), "")
    lemma, kind = STEMS.get(stem, (word, "unknown"))
    if not stem or (len(rest) < len(word) and kind != "verb"):
        return Analysis(word)
    suffix = rest[len(stem) :]
    vowels = [letter for letter in suffix if letter in "aoueyi"]
    marks = _marks(kind, bool(negative), READ_PREFIX[object_prefix], suffix.translate(UNHARMONISED))
    return Analysis(lemma, marks, {harmony_of(v) for v in vowels} == {harmony_of(stem)} if marks and vowels else None)


def align(prediction: Sequence[str], gold: Sequence[str]) -> dict[int, int]:
    """Align positions of target words with predicted words: equal forms first, then equal lemmas, nearest first."""
    pairs: dict[int, int] = {}
    for same in (str, lambda word: analyse(word).lemma):
        free: dict[str, list[int]] = {}
        for position in sorted(set(range(len(prediction))) - set(pairs.values())):
            free.setdefault(same(prediction[position]), []).append(position)
        for position, word in enumerate(gold):
            candidates = free.get(same(word))
            if position not in pairs and candidates:
                pairs[position] = min(candidates, key=lambda candidate: (abs(candidate - position), candidate))
                candidates.remove(pairs[position])
    return pairs


def _judgements(prediction: Sequence[str], gold: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield pairs of a score name and whether one word, or pair of words, is correct."""
    pairs = align(prediction, gold)
    for position, word in enumerate(gold):
        yield "lemma_recall", position in pairs
        yield "form_recall", position in pairs and prediction[pairs[position]] == word
        if position in pairs:
            marks = analyse(prediction[pairs[position]]).marks
            yield from ((name, marks.get(name) == mark) for name, mark in analyse(word).marks.items())
    for first, second in combinations(sorted(pairs), 2):
        yield "order", pairs[first] < pairs[second]
    for word in prediction:
        harmonic = analyse(word).harmonic
        if harmonic is not None:
            yield "harmony", harmonic


SCORES = {
    "lemma_recall": "target words whose lemma is predicted",
    "form_recall": "target words that are predicted",
    "order": "pairs of predicted target lemmas in the right order (as in Kendall 1938)",
    "verb_agreement": "verbs with the right marks of subject and object",
    "adjective_agreement": "adjectives with the right class and number",
    "case": "nouns in the right case",
    "number": "nouns in the right number",
    "tense": "verbs in the right tense",
    "negation": "verbs with both parts of the negation or neither, as in the target",
    "mood": "verbs with the right mark of a relative clause, a condition or neither",
    "harmony": "predicted words whose suffixes agree with their stem",
}


def phenomena(predictions: Sequence[Sequence[str]], golds: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return `SCORES` as fractions over all sentences; verbs, adjectives and nouns count if their lemma is predicted.

    A score of which the targets have no case is left out; it is 0 if they have some, but no such word is predicted.
    """
    correct, total = Counter[str](), Counter[str]()
    for prediction, gold in zip(predictions, golds, strict=True):
        for name, holds in _judgements(prediction, gold):
            correct[name] += holds
            total[name] += 1
    if SCORES.keys() - total.keys():
        total.update(dict.fromkeys({name for gold in golds for name, _ in _judgements(gold, gold)} - total.keys(), 0))
    return {name: correct[name] / max(total[name], 1) for name in SCORES if name in total}
