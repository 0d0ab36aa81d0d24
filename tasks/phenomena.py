"""The words of the embedded languages, the target's forms, and scores of what a translation gets right in them.

`tasks.language` tells the rules and puts the words into sentences. Every number here, classes and choices by rank
included, is fixed: the lexicon is the same for all seeds, so that a target is analysed without knowing its seed.
"""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, combinations, product
from random import Random
from typing import Any, NamedTuple, TypeVar

from tasks.base import Tokens

Word = TypeVar("Word")
Agreement = tuple[int, str]  # a noun's class, from 0, and number

# The source's function words have one syllable, its other words two or three.
TENSES = {"past": "da", "present": "su", "future": "vo"}
NUMBERS = {"singular": "", "dual": "bi", "plural": "mo"}
SOURCE = {"not": "ne", "question": "ka", "if": "si", "then": "ti", "and": "en", "of": "le", "that": "ke", "it": "ta"}
TARGET = {"question": "huk", "and": "hes"}
PLACES = {  # preposition: postposition and the case that it governs
    "po": ("wom", "genitive"), "ru": ("wek", "genitive"), "go": ("wid", "dative"),
    "mi": ("wan", "dative"), "ba": ("wus", "locative"), "fe": ("wyl", "locative"),
}  # fmt: skip
TARGET_PRONOUNS = ("hom", "hit", "hal", "hyn")  # by noun class
SOURCE_FUNCTION_WORDS = {*TENSES.values(), *NUMBERS.values(), *SOURCE.values(), *PLACES} - {""}
TARGET_FUNCTION_WORDS = {*TARGET.values(), *TARGET_PRONOUNS, *(word for word, _ in PLACES.values())}

CONSONANTS = "bdgklmnprstv"
VOWELS = {"back": "aou", "front": "eyi"}
# Suffixes: A is a or e, O is o or y, U is u or i, by the harmony of the stem. Every stem ends in a consonant.
CASE = {"nominative": "", "accusative": "tU", "genitive": "nOk", "dative": "gA", "locative": "sUm"}
NOUN_NUMBER = {"singular": "", "dual": "bOs", "plural": "lAr"}
CONCORD = {0: "mU", 1: "dA", 2: "kO", 3: "vU"}  # by noun class; its number follows
CONCORD_NUMBER = {"singular": "", "dual": "b", "plural": "r"}
TENSE = {"past": "dU", "present": "mA", "future": "rOs"}
NEGATIVE = {False: "", True: "pA"}
MOOD = {"main": "", "relative": "zA", "conditional": "zOn"}
# Prefixes take no harmony. They begin with a vowel, which no stem does.
NEGATIVE_PREFIX = {False: "", True: "oz"}
OBJECT_CLASS, OBJECT_NUMBER = {0: "a", 1: "e", 2: "i", 3: "u"}, {"singular": "l", "dual": "b", "plural": "r"}


class Stem(NamedTuple):
    """A stem of the target and the harmony of its suffixes."""

    text: str
    harmony: str


class Noun(NamedTuple):
    """A noun, name or pronoun; `possessed` is what it is when it has a possessor, if that is another noun."""

    source: str
    stem: Stem
    noun_class: int
    plural: Stem | None = None
    possessed: "Noun | None" = None
    held_out: bool = False  # train has it as a singular subject only


class Verb(NamedTuple):
    """A verb; its second sense, which may be the first, is that with objects of the last two classes."""

    source: str
    senses: tuple[Stem, Stem]
    governs: str  # a case, or "" if it has no object
    held_out: bool  # train has it in the affirmative past only


class Adjective(NamedTuple):
    """An adjective and the noun class that train never has it with, or -1."""

    source: str
    stem: Stem
    held_out: int


class Coiner:
    """Makes stems of the target, of which none is the beginning of another word: a form shows which stem it has."""

    def __init__(self, seed: str, taken: Iterable[str]) -> None:
        self.random = Random(seed)
        self.words = set(taken)
        self.beginnings = {word[:n] for word in self.words for n in range(1, len(word) + 1)}

    def coin(self, shapes: Sequence[str], vowels: str) -> str:
        """A new word of one of the shapes, in which C is any consonant and V one of the vowels."""
        while True:
            shape = self.random.choice(shapes)
            word = "".join(self.random.choice(CONSONANTS if letter == "C" else vowels) for letter in shape)
            beginnings = [word[:n] for n in range(1, len(word) + 1)]
            if word not in self.beginnings and self.words.isdisjoint(beginnings):
                self.words.add(word)
                self.beginnings.update(beginnings)
                return word

    def stem(self, rank: int) -> Stem:
        """A stem; those of the commonest words may be short."""
        harmony = self.random.choice(("back", "front"))
        return Stem(self.coin(("CVC", "CVCVC") if rank < 40 else ("CVCVC", "CVCCVC"), VOWELS[harmony]), harmony)

    def name(self) -> Noun:
        """A name, which may have vowels of both harmony classes: its suffixes agree with the last."""
        name = self.coin(("CVCVC", "CVCCVC", "CVCVCVC"), VOWELS["back"] + VOWELS["front"]).capitalize()
        return Noun(name, Stem(name, harmony_of(name)), 0)


def harmony_of(text: str) -> str:
    """The harmony class of the last vowel."""
    vowels = [letter for letter in text if letter in "aoueyi"]
    return "back" if vowels[-1] in VOWELS["back"] else "front"


def _source_words(seed: str, number: int) -> list[str]:
    """Distinct words of two or three open syllables."""
    random = Random(seed)
    words: dict[str, None] = {}
    while len(words) < number:
        syllables = random.choice((2, 2, 3))
        words["".join(random.choice(CONSONANTS) + random.choice("aeiou") for _ in range(syllables))] = None
    return list(words)


def _noun(coiner: Coiner, source: str, rank: int) -> Noun:
    """The noun of a rank from 0: some of the commonest are suppletive, ambiguous or held out, none two of these."""
    stem, noun_class = coiner.stem(rank), coiner.random.randrange(4)
    plural = coiner.stem(rank) if rank < 320 and rank % 8 == 3 else None
    possessed = Noun(source, coiner.stem(rank), coiner.random.randrange(4)) if rank < 320 and rank % 8 == 5 else None
    return Noun(source, stem, noun_class, plural, possessed, rank % 8 == 0 and 8 <= rank < 208)


def _verb(coiner: Coiner, source: str, rank: int) -> Verb:
    """The verb of a rank from 0: each fifth is ambiguous, another governs the dative, another has no object."""
    first, governs = coiner.stem(rank), {3: "dative", 4: ""}.get(rank % 5, "accusative")
    second = coiner.stem(rank) if rank % 5 == 2 else first
    return Verb(source, (first, second), governs, rank % 10 == 5 and rank < 105)


def _words() -> tuple[list[Noun], list[Verb], list[Adjective], list[Noun]]:
    """900 nouns, 300 verbs, 200 adjectives and 400 names, each by rank. Each third adjective has a held-out class."""
    coiner, sources = Coiner("target", TARGET_FUNCTION_WORDS), _source_words("source", 1400)
    nouns = [_noun(coiner, source, rank) for rank, source in enumerate(sources[:900])]
    verbs = [_verb(coiner, source, rank) for rank, source in enumerate(sources[900:1200])]
    adjectives = [
        Adjective(source, coiner.stem(rank), rank // 3 % 4 if rank % 3 == 1 else -1)
        for rank, source in enumerate(sources[1200:])
    ]
    return nouns, verbs, adjectives, [coiner.name() for _ in range(400)]


def zipf(words: Sequence[Word]) -> Callable[[float], Word]:
    """A function from a number in [0, 1) to a word: its share goes with 1 / (rank + 2) (Mandelbrot 1953)."""
    bounds = list(accumulate(1 / (rank + 2) for rank in range(1, len(words) + 1)))
    total = bounds.pop()
    return lambda share: words[bisect(bounds, share * total)]


def _suffixes(*parts: Mapping[Any, str]) -> dict[str, dict[tuple[Any, ...], str]]:
    """The suffix of every combination of the parts' keys, in the order of the parts, for each harmony."""
    written = {harmony: str.maketrans("AOU", {"back": "aou", "front": "eyi"}[harmony]) for harmony in VOWELS}
    chosen = [list(zip(*choice, strict=True)) for choice in product(*(part.items() for part in parts))]
    return {h: {keys: "".join(texts).translate(letters) for keys, texts in chosen} for h, letters in written.items()}


NOUNS, VERBS, ADJECTIVES, NAMES = _words()
PRONOUNS = [Noun(SOURCE["it"], Stem(word, harmony_of(word)), number) for number, word in enumerate(TARGET_PRONOUNS)]
NOUN_SUFFIX = _suffixes(NOUN_NUMBER, CASE)
ADJECTIVE_SUFFIX = _suffixes(CONCORD, CONCORD_NUMBER)
VERB_SUFFIX = _suffixes(TENSE, NEGATIVE, CONCORD, CONCORD_NUMBER, MOOD)
OBJECT_PREFIX = {None: ""} | {
    (noun_class, number): OBJECT_CLASS[noun_class] + OBJECT_NUMBER[number]
    for noun_class, number in product(OBJECT_CLASS, OBJECT_NUMBER)
}


def noun_form(noun: Noun, number: str, case: str) -> str:
    """A noun, name or pronoun in a number and a case."""
    if number == "plural" and noun.plural:
        return noun.plural.text + NOUN_SUFFIX[noun.plural.harmony]["singular", case]
    return noun.stem.text + NOUN_SUFFIX[noun.stem.harmony][number, case]


def adjective_form(adjective: Adjective, agreement: Agreement) -> str:
    """An adjective that agrees with its noun."""
    return adjective.stem.text + ADJECTIVE_SUFFIX[adjective.stem.harmony][agreement]


def verb_form(
    verb: Verb, tense: str, negative: bool, subject: Agreement, object_: Agreement | None, mood: str = "main"
) -> str:
    """A verb that agrees with its subject and its object, in the sense that goes with its object."""
    stem = verb.senses[bool(object_ and object_[0] >= 2)]
    suffix = VERB_SUFFIX[stem.harmony][tense, negative, *subject, mood]
    return NEGATIVE_PREFIX[negative] + OBJECT_PREFIX[object_] + stem.text + suffix


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
