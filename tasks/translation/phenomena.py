"""What a translation into the embedded target language gets right: lemmas, forms, order, agreement, ...

A target is analysed by its words alone: no word begins another, so that every form has one analysis. Baselines that
know no grammar stand at the end.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

from tasks.base import Tokens
from tasks.translation.lexicon import (
    ADJECTIVE_SUFFIX,
    ADJECTIVES,
    NAMES,
    NOUN_SUFFIX,
    NOUNS,
    NUMBERS,
    OBJECT_PREFIX,
    PLACES,
    PRONOUNS,
    SOURCE,
    TARGET,
    TARGET_FUNCTION_WORDS,
    TENSES,
    VERB_SUFFIX,
    VERBS,
    harmony_of,
)


class Analysis(NamedTuple):
    """What a target word shows: its lemma, what its marks say (by the name of their score), whether they harmonise.

    A word without a known stem is its own lemma. A word whose ending is no suffix, in either harmony, has no marks.
    """

    lemma: str
    marks: Mapping[str, Hashable] = {}
    harmonic: bool | None = None  # None if there is no suffix with a vowel


def _stems() -> dict[str, tuple[str, str]]:
    """For each stem its lemma, which is the stem of the citation form, and its kind."""
    stems = {word: (word, "function") for word in TARGET_FUNCTION_WORDS}
    for noun in [*NOUNS, *(noun.possessed for noun in NOUNS if noun.possessed), *NAMES, *PRONOUNS]:
        stems[noun.stem.text] = (noun.stem.text, "noun")
        if noun.plural:
            stems[noun.plural.text] = (noun.stem.text, "plural")
    stems |= {stem.text: (stem.text, "verb") for verb in VERBS for stem in verb.senses}
    return stems | {adjective.stem.text: (adjective.stem.text, "adjective") for adjective in ADJECTIVES}


def _read(forms: Mapping[str, Mapping[tuple[Any, ...], str]]) -> dict[str, tuple[Any, ...]]:
    """The keys of a table of suffixes by suffix, whatever its harmony."""
    return {suffix.translate(UNHARMONISED): keys for keys, suffix in forms["back"].items()}


UNHARMONISED = str.maketrans("aoueyi", "AOUAOU")
STEMS = _stems()
READ_NOUN, READ_ADJECTIVE, READ_VERB = _read(NOUN_SUFFIX), _read(ADJECTIVE_SUFFIX), _read(VERB_SUFFIX)
READ_PREFIX = {prefix: agreement for agreement, prefix in OBJECT_PREFIX.items()}
PREFIXES = re.compile(r"\A((?:oz)?)((?:[aeiu][lbr])?)(.*)", re.DOTALL)  # negative, object, rest


def _marks(kind: str, negative: bool, agreement: Hashable, suffix: str) -> Mapping[str, Hashable]:
    """The marks of a word of that kind, by its prefixes and its suffix without harmony; none if it is no suffix."""
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
    """The analysis of any string as a word of the target."""
    negative, object_prefix, rest = PREFIXES.findall(word)[0]
    stem = next((rest[:n] for n in range(1, len(rest) + 1) if rest[:n] in STEMS), "")
    lemma, kind = STEMS.get(stem, (word, "unknown"))
    if not stem or (len(rest) < len(word) and kind != "verb"):
        return Analysis(word)
    suffix = rest[len(stem) :]
    vowels = [letter for letter in suffix if letter in "aoueyi"]
    marks = _marks(kind, bool(negative), READ_PREFIX[object_prefix], suffix.translate(UNHARMONISED))
    return Analysis(lemma, marks, {harmony_of(v) for v in vowels} == {harmony_of(stem)} if marks and vowels else None)


def matched(prediction: Sequence[str], gold: Sequence[str]) -> dict[int, int]:
    """Positions of gold words to those of predicted words: equal forms first, then equal lemmas, each the nearest."""
    pairs: dict[int, int] = {}
    for same in (str, lambda word: analyse(word).lemma):
        free: dict[str, list[int]] = {}
        for position in sorted(set(range(len(prediction))) - set(pairs.values())):
            free.setdefault(same(prediction[position]), []).append(position)
        for position, word in enumerate(gold):
            places = free.get(same(word))
            if position not in pairs and places:
                nearest = min((abs(place - position), place) for place in places)[1]
                places.remove(nearest)
                pairs[position] = nearest
    return pairs


def _judged(prediction: Sequence[str], gold: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """One judgement after another, by the name of its score."""
    pairs = matched(prediction, gold)
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
    "lemma_recall": "gold words whose lemma is there",
    "form_recall": "gold words that are there",
    "order": "pairs of gold words whose lemmas are there that are in order (as Kendall 1938 counts)",
    "verb_agreement": "verbs with the right marks of subject and object",
    "adjective_agreement": "adjectives with the right class and number",
    "case": "nouns in the right case",
    "number": "nouns in the right number",
    "tense": "verbs in the right tense",
    "negation": "verbs with both parts of the negation, or neither, as in gold",
    "mood": "verbs with the mark of a relative clause or a condition, or neither, as in gold",
    "harmony": "predicted words whose suffixes agree with their stem",
}


def phenomena(predictions: Sequence[Sequence[str]], golds: Sequence[Sequence[str]]) -> dict[str, float]:
    """`SCORES` as shares over all sentences: of verbs, adjectives and nouns, of those whose lemma is there.

    A score is 0 where there is nothing to count, as in predictions without any known word.
    """
    right, total = Counter[str](), Counter[str]()
    for prediction, gold in zip(predictions, golds, strict=True):
        for name, holds in _judged(prediction, gold):
            right[name] += holds
            total[name] += 1
    return {name: right[name] / max(total[name], 1) for name in SCORES}


CITATION = {
    **{noun.source: noun.stem.text for noun in [*NOUNS, PRONOUNS[0]]},
    **{verb.source: verb.senses[0].text for verb in VERBS},
    **{adjective.source: adjective.stem.text for adjective in ADJECTIVES},
    **{preposition: postposition for preposition, (postposition, _) in PLACES.items()},
    **{SOURCE[word]: form for word, form in TARGET.items()},
}
UNTRANSLATED = {*TENSES.values(), *NUMBERS.values(), *SOURCE.values()} - CITATION.keys()  # affixes, order


def copying(source: Tokens) -> Tokens:
    """The source's words."""
    return source


def dictionary(source: Tokens) -> Tokens:
    """The citation form of each word in the source's order; words that the target has as affixes are left out."""
    return tuple(CITATION.get(word, word) for word in source if word not in UNTRANSLATED)


def shuffled(target: Tokens, random: Random) -> Tokens:
    """The right words in random order."""
    return tuple(random.sample(target, len(target)))
