"""The words of the embedded languages and the target's forms.

`tasks.language` tells the rules and puts the words into sentences. Every number here, classes and choices by rank
included, is fixed: the lexicon is the same for all seeds, so that a target is analysed without knowing its seed.
"""

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, product
from random import Random
from typing import Any, NamedTuple, TypeVar

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
