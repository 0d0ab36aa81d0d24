"""The embedded languages: their words, the inflected forms of the target language, and sentences in both.

`tfstudy.tasks.translation.synthetic` describes the rules and draws sentences. The lexicon is the same for all seeds, so
a target can be analysed without its seed.
"""

from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from random import Random
from typing import NamedTuple, TypeVar

Word = TypeVar("Word")
Agreement = tuple[int, str]  # a noun's class, from 0, and number

# Function words of the source have one syllable, other words two or three.
TENSES = {"past": "da", "present": "su", "future": "vo"}
NUMBERS = {"singular": "", "dual": "bi", "plural": "mo"}
SOURCE = {"not": "ne", "question": "ka", "if": "si", "then": "ti", "and": "en", "of": "le", "that": "ke", "it": "ta"}
TARGET = {"question": "huk", "and": "hes"}
PLACES = {  # preposition: postposition and its case
    "po": ("wom", "genitive"), "ru": ("wek", "genitive"), "go": ("wid", "dative"),
    "mi": ("wan", "dative"), "ba": ("wus", "locative"), "fe": ("wyl", "locative"),
}  # fmt: skip
TARGET_PRONOUNS = ("hom", "hit", "hal", "hyn")  # by noun class
TARGET_FUNCTION_WORDS = {*TARGET.values(), *TARGET_PRONOUNS, *(word for word, _ in PLACES.values())}

CONSONANTS = "bdgklmnprstv"
VOWELS = {"back": "aou", "front": "eyi"}
# Suffixes: A is a or e, O is o or y, U is u or i, by the harmony of the stem. All stems end in a consonant.
CASE = {"nominative": "", "accusative": "tU", "genitive": "nOk", "dative": "gA", "locative": "sUm"}
NOUN_NUMBER = {"singular": "", "dual": "bOs", "plural": "lAr"}
CONCORD = ("mU", "dA", "kO", "vU")  # by noun class; its number follows
CONCORD_NUMBER = {"singular": "", "dual": "b", "plural": "r"}
TENSE = {"past": "dU", "present": "mA", "future": "rOs"}
MOOD = {"main": "", "relative": "zA", "conditional": "zOn"}
NEGATIVE = ("oz", "pA")  # before and behind the stem
# Prefixes do not harmonise. They begin with a vowel, stems with a consonant.
OBJECT_CLASS, OBJECT_NUMBER = "aeiu", {"singular": "l", "dual": "b", "plural": "r"}
HARMONY = {vowel: str.maketrans("AOU", vowels) for vowels in ("aou", "eyi") for vowel in vowels}  # of suffixes


class Noun(NamedTuple):
    """A noun, name or pronoun; `possessed` replaces it if it has a possessor and then another sense."""

    source: str
    stem: str
    noun_class: int
    plural: str = ""
    possessed: "Noun | None" = None
    held_out: bool = False  # in train, only as a singular subject


class Verb(NamedTuple):
    """A verb; its second sense, which may equal the first, is used with objects of the last two classes."""

    source: str
    senses: tuple[str, str]
    governs: str  # the case of the object, or "" for none
    held_out: bool  # in train, only in the affirmative past


class Adjective(NamedTuple):
    """An adjective and the noun class that it never occurs with in train, or -1."""

    source: str
    stem: str
    held_out: int


class StemGenerator:
    """A generator of target stems, none a prefix of another word, so that each form has one stem."""

    def __init__(self, seed: str, taken: Iterable[str]) -> None:
        self.random = Random(seed)
        self.words = set(taken)
        self.prefixes = {word[:n] for word in self.words for n in range(1, len(word) + 1)}

    def word(self, shapes: Sequence[str], vowels: str) -> str:
        """Return a new word of one of the shapes: C is any consonant, V one of the vowels."""
        while True:
            shape = self.random.choice(shapes)
            word = "".join(self.random.choice(CONSONANTS if letter == "C" else vowels) for letter in shape)
            prefixes = [word[:n] for n in range(1, len(word) + 1)]
            if word not in self.prefixes and self.words.isdisjoint(prefixes):
                self.words.add(word)
                self.prefixes.update(prefixes)
                return word

    def stem(self, rank: int) -> str:
        """Return a new stem; the most frequent words may have short stems."""
        vowels = VOWELS[self.random.choice(("back", "front"))]
        return self.word(("CVC", "CVCVC") if rank < 40 else ("CVCVC", "CVCCVC"), vowels)

    def name(self) -> Noun:
        """Return a new name; it may mix harmony classes, and its suffixes harmonise with the last vowel."""
        name = self.word(("CVCVC", "CVCCVC", "CVCVCVC"), VOWELS["back"] + VOWELS["front"]).capitalize()
        return Noun(name, name, 0)


def with_suffix(stem: str, suffix: str) -> str:
    """Return a stem with a suffix, which has the harmony class of the stem's last vowel."""
    return stem + suffix.translate(HARMONY[next(letter for letter in reversed(stem) if letter in HARMONY)])


def _noun(generator: StemGenerator, source: str, rank: int) -> Noun:
    """Return the noun of a rank from 0; some frequent nouns are suppletive, ambiguous or held out (one of these)."""
    stem, noun_class = generator.stem(rank), generator.random.randrange(4)
    kind = rank % 8 if rank < 320 else -1
    plural = generator.stem(rank) if kind == 3 else ""
    possessed = Noun(source, generator.stem(rank), generator.random.randrange(4)) if kind == 5 else None
    return Noun(source, stem, noun_class, plural, possessed, kind == 0 and 8 <= rank < 208)


def _verb(generator: StemGenerator, source: str, rank: int) -> Verb:
    """Return the verb of a rank from 0; a fifth is ambiguous, a fifth takes the dative, a fifth has no object."""
    first, governs = generator.stem(rank), {3: "dative", 4: ""}.get(rank % 5, "accusative")
    second = generator.stem(rank) if rank % 5 == 2 else first
    return Verb(source, (first, second), governs, rank % 10 == 5 and rank < 105)


def _words() -> tuple[list[Noun], list[Verb], list[Adjective], list[Noun]]:
    """Return 900 nouns, 300 verbs, 200 adjectives and 400 names by rank; every third adjective has a held-out class."""
    generator, random, words = StemGenerator("target", TARGET_FUNCTION_WORDS), Random("source"), dict[str, None]()
    while len(words) < 1400:  # of two or three open syllables
        syllables = random.choice((2, 2, 3))
        words["".join(random.choice(CONSONANTS) + random.choice("aeiou") for _ in range(syllables))] = None
    sources = [*words]
    nouns = [_noun(generator, source, rank) for rank, source in enumerate(sources[:900])]
    verbs = [_verb(generator, source, rank) for rank, source in enumerate(sources[900:1200])]
    adjectives = [
        Adjective(source, generator.stem(rank), rank // 3 % 4 if rank % 3 == 1 else -1)
        for rank, source in enumerate(sources[1200:])
    ]
    return nouns, verbs, adjectives, [generator.name() for _ in range(400)]


def zipf(words: Sequence[Word]) -> Callable[[float], Word]:
    """Return a function from a number in [0, 1) to a word with frequency ~ 1 / (rank + 2) (Mandelbrot 1953)."""
    bounds = list(accumulate(1 / (rank + 2) for rank in range(1, len(words) + 1)))
    total = bounds.pop()
    return lambda share: words[bisect(bounds, share * total)]


NOUNS, VERBS, ADJECTIVES, NAMES = _words()
PRONOUNS = [Noun(SOURCE["it"], word, number) for number, word in enumerate(TARGET_PRONOUNS)]


def noun_form(noun: Noun, number: str, case: str) -> str:
    """Return the form of a noun, name or pronoun in a number and a case."""
    if number == "plural" and noun.plural:
        return with_suffix(noun.plural, CASE[case])
    return with_suffix(noun.stem, NOUN_NUMBER[number] + CASE[case])


def concord(agreement: Agreement) -> str:
    """Return the suffix by which an adjective or a verb agrees with a noun."""
    return CONCORD[agreement[0]] + CONCORD_NUMBER[agreement[1]]


def verb_form(
    verb: Verb, tense: str, negative: bool, subject: Agreement, object_: Agreement | None, mood: str = "main"
) -> str:
    """Return the form of a verb that agrees with its subject and object, in the sense that the object selects."""
    before, behind = NEGATIVE if negative else ("", "")
    if object_:
        before += OBJECT_CLASS[object_[0]] + OBJECT_NUMBER[object_[1]]
    stem = verb.senses[bool(object_ and object_[0] >= 2)]
    return before + with_suffix(stem, TENSE[tense] + behind + concord(subject) + MOOD[mood])


class Phrase(NamedTuple):
    """A noun phrase, possibly with an adjective, a possessor or a relative clause."""

    noun: Noun
    number: str = "singular"
    adjective: Adjective | None = None
    possessor: "Phrase | None" = None
    relative: "Clause | None" = None


class Clause(NamedTuple):
    """A clause. A relative clause lacks the argument that it modifies."""

    verb: Verb
    tense: str
    negative: bool
    subject: Phrase | None
    object: Phrase | None
    place: tuple[str, Phrase] | None  # the preposition and its phrase


class Sentence(NamedTuple):
    """One clause, or two clauses with a link: "and", "condition first" or "condition last"."""

    first: Clause
    link: str
    second: Clause | None
    question: bool


def source_words(sentence: Sentence) -> list[str]:
    """Return the words in the source language."""
    question = [SOURCE["question"]] if sentence.question else []
    first, link = _source_clause(sentence.first), sentence.link
    second = _source_clause(sentence.second) if sentence.second else []
    if link == "condition first":
        return [*question, SOURCE["if"], *first, SOURCE["then"], *second]
    between = {"": [], "and": [SOURCE["and"]], "condition last": [SOURCE["if"]]}[link]
    return [*question, *first, *between, *second]


def _source_clause(clause: Clause) -> list[str]:
    negation = [SOURCE["not"]] if clause.negative else []
    subject, object_ = (_source_phrase(phrase) if phrase else [] for phrase in (clause.subject, clause.object))
    place = [clause.place[0], *_source_phrase(clause.place[1])] if clause.place else []
    return [*subject, TENSES[clause.tense], *negation, clause.verb.source, *object_, *place]


def _source_phrase(phrase: Phrase) -> list[str]:
    number = [NUMBERS[phrase.number]] if phrase.number != "singular" and phrase.noun not in PRONOUNS else []
    adjective = [phrase.adjective.source] if phrase.adjective else []
    possessor = [SOURCE["of"], *_source_phrase(phrase.possessor)] if phrase.possessor else []
    relative = [SOURCE["that"], *_source_clause(phrase.relative)] if phrase.relative else []
    return [*number, *adjective, phrase.noun.source, *possessor, *relative]


def target_words(sentence: Sentence) -> list[str]:
    """Return the words in the target language."""
    first, second, link = sentence.first, sentence.second, sentence.link
    if second and link == "condition last":
        first, second = second, first
    words = _target_clause(first, "conditional" if link.startswith("condition") else "main")
    if second:
        words += [TARGET["and"]] * (link == "and") + _target_clause(second, "main")
    return [*words, TARGET["question"]] if sentence.question else words


def _target_clause(clause: Clause, mood: str, head: Phrase | None = None) -> list[str]:
    """Return the words of a clause; `head` is the phrase that a relative clause modifies."""
    postposition, case = PLACES[clause.place[0]] if clause.place else ("", "")
    subject = _target_phrase(clause.subject, "nominative") if clause.subject else []
    place = [*_target_phrase(clause.place[1], case), postposition] if clause.place else []
    object_ = _target_phrase(clause.object, clause.verb.governs) if clause.object else []
    agent, patient = clause.subject or head, clause.object or head if clause.verb.governs else None
    assert agent  # noqa: S101 - always true; for the type checker
    agreements = _agreement(agent), _agreement(patient) if patient else None
    return [*subject, *place, *object_, verb_form(clause.verb, clause.tense, clause.negative, *agreements, mood)]


def _target_phrase(phrase: Phrase, case: str) -> list[str]:
    relative = _target_clause(phrase.relative, "relative", phrase) if phrase.relative else []
    possessor = _target_phrase(phrase.possessor, "genitive") if phrase.possessor else []
    adjective = [with_suffix(phrase.adjective.stem, concord(_agreement(phrase)))] if phrase.adjective else []
    return [*relative, *possessor, *adjective, noun_form(phrase.noun, phrase.number, case)]


def _agreement(phrase: Phrase) -> Agreement:
    return phrase.noun.noun_class, phrase.number
