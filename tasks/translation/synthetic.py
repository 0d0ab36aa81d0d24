"""Two synthetic languages for the task `translation`: an isolating SVO source, an agglutinative SOV target.

    si pidu pabi da milo Mibir ti ta su sadu  ->  pumonvu gimyp Mibirge alvarubduvuzon hyn sisylmevi

    if pidu pabi past milo Mibir then it present sadu
    pidu-IV pabi Mibir-dative I-milo-past-IV-conditional it.IV sadu-present-IV

Rules of the target:
- Every stem has vowels of one harmony class, back `a o u` or front `e y i`, and so have its suffixes.
- A noun has one of four classes, which neither the source nor its own stem shows. Adjectives agree with their noun, and
  verbs with their subject, in class and number by a suffix; verbs agree with their object by a prefix.
- noun = stem-number-case. Singular, dual, plural, some plurals being other stems; five cases, some verbs take a dative.
- verb = negation-object-stem-tense-negation-subject-mood. Negation is a circumfix; tense is an auxiliary in the source;
  the mood is that of relative clauses and of conditions.
- Order: subject, place with a postposition, object, verb. Conditions come first, the particle of questions last; before
  a noun comes its relative clause or possessor, then its adjective.
- The source's pronoun has one form. The target's has class and number of what it refers to: the first clause's subject.
- Some verbs have another sense with objects of the classes III and IV. Some nouns have another, whose class may be
  another, with a possessor. Names are copied, their suffixes in harmony with the last vowel, and are of class I.

A source phrase never has both a possessor and a relative clause, and a relative clause has no place, so that a source
has one translation. A seed draws other sentences of the same languages, whose words are those of `tasks.lexicon`.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from tasks.base import Tag, Tokens
from tasks.errors import one_of
from tasks.translation.lexicon import (
    ADJECTIVES,
    NAMES,
    NOUNS,
    NUMBERS,
    PLACES,
    PRONOUNS,
    SOURCE,
    TARGET,
    TENSES,
    VERBS,
    Adjective,
    Agreement,
    Noun,
    Verb,
    adjective_form,
    noun_form,
    verb_form,
    zipf,
)
from tasks.translation.phenomena import copying, dictionary, phenomena, shuffled

__all__ = ["TESTS", "Pair", "copying", "dictionary", "pair", "phenomena", "shuffled"]

TESTS = {
    "noun_forms": "nouns that train has only as singular subjects, in other forms",
    "verb_tenses": "verbs that train has only in the affirmative past, in other forms",
    "adjective_class": "adjectives with nouns of a class that train never has them with",
    "negative_questions": "questions with a negation",
    "object_relatives": "relative clauses with a gap for the object, in conditional sentences",
    "names": "names that train never has",
    "longer": "15 to 24 source words, train has at most 14",
    "deeper": "phrases 3 or 4 deep within others, train has at most 2",
}
LONGEST, LONGEST_TESTED = 14, 24  # source words
DEEPEST, DEEPEST_TESTED = 2, 4  # phrases around a phrase
TRAINED_NAMES = 320  # the commonest; `names` has the others

any_noun, any_verb, any_adjective = zipf(NOUNS), zipf(VERBS), zipf(ADJECTIVES)
any_transitive = zipf([verb for verb in VERBS if verb.governs])
PREPOSITIONS = tuple(PLACES)
trained_name, unseen_name = zipf(NAMES[:TRAINED_NAMES]), zipf(NAMES[TRAINED_NAMES:])


class Pair(NamedTuple):
    """A sentence in both languages, as words, and what tables slice by."""

    source: Tokens
    target: Tokens
    tags: Mapping[str, Tag]


class Phrase(NamedTuple):
    """A noun phrase."""

    noun: Noun
    number: str = "singular"
    adjective: Adjective | None = None
    possessor: "Phrase | None" = None
    relative: "Clause | None" = None


class Clause(NamedTuple):
    """A clause. A relative clause lacks the argument that it belongs to."""

    verb: Verb
    tense: str
    negative: bool
    subject: Phrase | None
    object: Phrase | None
    place: tuple[str, Phrase] | None  # its preposition first


class Sentence(NamedTuple):
    """One clause, or two with a link: "and", "condition first" or "condition last"."""

    first: Clause
    link: str
    second: Clause | None
    question: bool

    @property
    def conditional(self) -> bool:
        return self.link.startswith("condition")


class Chances(NamedTuple):
    """Probabilities by which a sentence is drawn."""

    question: float = 0.15
    condition: float = 0.2  # before or after its consequence
    coordination: float = 0.15
    pronoun: float = 0.6  # in a second clause
    negative: float = 0.2
    past: float = 0.4
    place: float = 0.22
    name: float = 0.12
    unseen_name: float = 0.0
    plural: float = 0.22
    dual: float = 0.1
    adjective: float = 0.32
    possessor: float = 0.15
    relative: float = 0.1
    nested: float = 1.0  # possessors and relative clauses in other phrases, by as much
    object_gap: float = 0.5


USUAL = Chances()
# What a held-out construction needs more of, so that drawing until it is there takes few draws.
RAISED = {
    "negative_questions": USUAL._replace(question=1.0, negative=0.5),
    "object_relatives": USUAL._replace(condition=1.0, relative=0.25, adjective=0.1, place=0.0),
    "names": USUAL._replace(unseen_name=0.6, name=0.3),
    "longer": USUAL._replace(condition=0.4, coordination=0.3, possessor=0.2, relative=0.2),
    "deeper": USUAL._replace(possessor=0.3, relative=0.15, nested=1.8, adjective=0.2, place=0.1, coordination=0.05),
}


class Draft:
    """A sentence as it is drawn, and what is to be known of it: its held-out constructions and its tags."""

    def __init__(self, random: Callable[[], float], chances: Chances) -> None:
        self.random, self.chances = random, chances
        self.held_out: set[str] = set()
        self.gaps: set[str] = set()
        self.numbers: set[str] = set()
        self.negative = self.pronoun = False
        self.depth = 0
        self.sentence = self._sentence()

    def _sentence(self) -> Sentence:
        question, link = self.random() < self.chances.question, self._link()
        first = self._clause()
        second = self._clause(antecedent=first.subject) if link else None
        sentence = Sentence(first, link, second, question)
        if question and self.negative:
            self.held_out.add("negative_questions")
        if sentence.conditional and "object" in self.gaps:
            self.held_out.add("object_relatives")
        return sentence

    def _link(self) -> str:
        kind, chances = self.random(), self.chances
        if kind < chances.condition:
            return "condition first" if kind < chances.condition / 2 else "condition last"
        return "and" if kind < chances.condition + chances.coordination else ""

    def _clause(self, level: int = 0, gap: str = "", antecedent: Phrase | None = None) -> Clause:
        """A clause in `level` phrases: relative if it has a gap; with a pronoun, perhaps, if it has an antecedent."""
        verb = (any_transitive if gap == "object" else any_verb)(self.random())
        tense, negative = self._tense(), self.random() < self.chances.negative
        self.negative |= negative
        if verb.held_out and (negative or tense != "past"):
            self.held_out.add("verb_tenses")
        pronouns = self._pronouns(verb, antecedent) if antecedent else {}
        subject = object_ = place = None
        if gap != "subject":
            subject = pronouns.get("subject") or self._phrase(level, subject=True)
        if gap != "object" and verb.governs:
            object_ = pronouns.get("object") or self._phrase(level)
        if not gap and self.random() < self.chances.place:
            place = PREPOSITIONS[int(self.random() * len(PREPOSITIONS))], self._phrase(level)
        return Clause(verb, tense, negative, subject, object_, place)

    def _tense(self) -> str:
        kind, past = self.random(), self.chances.past
        return "past" if kind < past else "present" if kind < (1 + past) / 2 else "future"

    def _pronouns(self, verb: Verb, antecedent: Phrase) -> dict[str, Phrase]:
        """A pronoun as the subject or, where there can be one, the object; or none."""
        if self.random() >= self.chances.pronoun:
            return {}
        self.pronoun = True
        role = "object" if verb.governs and self.random() < 0.4 else "subject"
        return {role: Phrase(PRONOUNS[antecedent.noun.noun_class], antecedent.number)}

    def _phrase(self, level: int, subject: bool = False) -> Phrase:
        """A phrase in `level` others."""
        random, chances = self.random, self.chances
        self.depth = max(self.depth, level)
        if random() < chances.name:
            return Phrase(self._name())
        number = self._number()
        noun = any_noun(random())
        if noun.held_out and not (subject and number == "singular"):
            self.held_out.add("noun_forms")
        possessor, relative = self._nested(level)
        if possessor and noun.possessed:
            noun = noun.possessed
        adjective = any_adjective(random()) if random() < chances.adjective else None
        if adjective and adjective.held_out == noun.noun_class:
            self.held_out.add("adjective_class")
        return Phrase(noun, number, adjective, possessor, relative)

    def _name(self) -> Noun:
        if self.random() < self.chances.unseen_name:
            self.held_out.add("names")
            return unseen_name(self.random())
        return trained_name(self.random())

    def _number(self) -> str:
        kind = self.random()
        number = "plural" if kind < self.chances.plural else "dual" if kind > 1 - self.chances.dual else "singular"
        self.numbers.add(number)
        return number

    def _nested(self, level: int) -> tuple[Phrase | None, Clause | None]:
        """A possessor, a relative clause or neither, of a phrase in `level` others."""
        more = self.chances.nested if level else 1.0
        possessor, relative = self.chances.possessor * more, self.chances.relative * more
        kind = self.random()
        if level == DEEPEST_TESTED or kind >= possessor + relative:
            return None, None
        if kind < possessor:
            return self._phrase(level + 1), None
        gap = "object" if self.random() < self.chances.object_gap else "subject"
        self.gaps.add(gap)
        return None, self._clause(level + 1, gap)

    def tags(self, length: int) -> dict[str, Tag]:
        """What tables slice by; `number` is the rarest of its phrases, a sentence with both gaps counts as object."""
        return {
            "length": length,
            "depth": self.depth,
            "negative": "yes" if self.negative else "no",
            "question": "yes" if self.sentence.question else "no",
            "conditional": "yes" if self.sentence.conditional else "no",
            "relative": next((gap for gap in ("object", "subject") if gap in self.gaps), "none"),
            "number": next((number for number in ("dual", "plural") if number in self.numbers), "singular"),
            "pronoun": "yes" if self.pronoun else "no",
        }


def pair(split: str, i: int, seed: int) -> Pair:
    """Sentence `i` from 0 of train, validation, test or one of `TESTS`: it depends on these three arguments alone.

    Train, validation and test have the same distribution, without held-out constructions; each of `TESTS` has its own
    construction in every sentence, and no other.
    """
    one_of("split", split, ("train", "validation", "test", *TESTS))
    random = Random(f"{seed}/{split}/{i}").random
    wanted = {split} & TESTS.keys()
    while True:
        draft = Draft(random, RAISED.get(split, USUAL))
        if draft.depth > DEEPEST:
            draft.held_out.add("deeper")
        if draft.held_out - wanted or wanted - draft.held_out - {"longer"}:
            continue  # the length is not known yet
        source = say(draft.sentence)
        if len(source) > LONGEST:
            draft.held_out.add("longer")
        if draft.held_out == wanted and len(source) <= LONGEST_TESTED:
            return Pair(tuple(source), tuple(translate(draft.sentence)), draft.tags(len(source)))


def say(sentence: Sentence) -> list[str]:
    """The words of the source."""
    question = [SOURCE["question"]] if sentence.question else []
    first, link = _say_clause(sentence.first), sentence.link
    second = _say_clause(sentence.second) if sentence.second else []
    if link == "condition first":
        return [*question, SOURCE["if"], *first, SOURCE["then"], *second]
    between = {"": [], "and": [SOURCE["and"]], "condition last": [SOURCE["if"]]}[link]
    return [*question, *first, *between, *second]


def _say_clause(clause: Clause) -> list[str]:
    negation = [SOURCE["not"]] if clause.negative else []
    subject, object_ = (_say_phrase(phrase) if phrase else [] for phrase in (clause.subject, clause.object))
    place = [clause.place[0], *_say_phrase(clause.place[1])] if clause.place else []
    return [*subject, TENSES[clause.tense], *negation, clause.verb.source, *object_, *place]


def _say_phrase(phrase: Phrase) -> list[str]:
    number = [NUMBERS[phrase.number]] if phrase.number != "singular" and phrase.noun not in PRONOUNS else []
    adjective = [phrase.adjective.source] if phrase.adjective else []
    possessor = [SOURCE["of"], *_say_phrase(phrase.possessor)] if phrase.possessor else []
    relative = [SOURCE["that"], *_say_clause(phrase.relative)] if phrase.relative else []
    return [*number, *adjective, phrase.noun.source, *possessor, *relative]


def translate(sentence: Sentence) -> list[str]:
    """The words of the target."""
    first, second, link = sentence.first, sentence.second, sentence.link
    if second and link == "condition last":
        first, second = second, first
    words = _translate_clause(first, "conditional" if sentence.conditional else "main")
    if second:
        words += [TARGET["and"]] * (link == "and") + _translate_clause(second, "main")
    return [*words, TARGET["question"]] if sentence.question else words


def _translate_clause(clause: Clause, mood: str, head: Phrase | None = None) -> list[str]:
    """A clause; `head` is what a relative clause belongs to."""
    postposition, case = PLACES[clause.place[0]] if clause.place else ("", "")
    subject = _translate_phrase(clause.subject, "nominative") if clause.subject else []
    place = [*_translate_phrase(clause.place[1], case), postposition] if clause.place else []
    object_ = _translate_phrase(clause.object, clause.verb.governs) if clause.object else []
    agent, patient = clause.subject or head, clause.object or head if clause.verb.governs else None
    assert agent
    agreements = _agreement(agent), _agreement(patient) if patient else None
    return [*subject, *place, *object_, verb_form(clause.verb, clause.tense, clause.negative, *agreements, mood)]


def _translate_phrase(phrase: Phrase, case: str) -> list[str]:
    relative = _translate_clause(phrase.relative, "relative", phrase) if phrase.relative else []
    possessor = _translate_phrase(phrase.possessor, "genitive") if phrase.possessor else []
    adjective = [adjective_form(phrase.adjective, _agreement(phrase))] if phrase.adjective else []
    return [*relative, *possessor, *adjective, noun_form(phrase.noun, phrase.number, case)]


def _agreement(phrase: Phrase) -> Agreement:
    return phrase.noun.noun_class, phrase.number
