"""Draw sentences of two synthetic languages: an isolating SVO source and an agglutinative SOV target.

    si pidu pabi da milo Mibir ti ta su sadu  ->  pumonvu gimyp Mibirge alvarubduvuzon hyn sisylmevi

    if pidu pabi past milo Mibir then it present sadu
    pidu-IV pabi Mibir-dative I-milo-past-IV-conditional it.IV sadu-present-IV

Rules of the target:
- Every stem has vowels of one harmony class, back `a o u` or front `e y i`, and so have its suffixes.
- A noun has one of four classes, which neither the source nor its stem shows. Adjectives agree with their noun, and
  verbs with their subject, in class and number by a suffix; verbs agree with their object by a prefix.
- noun = stem-number-case. Numbers are singular, dual and plural; some plurals have a different stem. There are five
  cases, and some verbs take a dative object.
- verb = negation-object-stem-tense-negation-subject-mood. Negation is a circumfix. Tense is an auxiliary in the source.
  Relative clauses and conditions have a mood of their own.
- Word order is subject, place with a postposition, object, verb. Conditions come first, the question particle last. A
  relative clause or possessor precedes the noun, followed by the adjective.
- The source pronoun has one form. The target pronoun agrees in class and number with the subject of the first clause.
- Some verbs have another sense with objects of the classes III and IV. Some nouns have another one, perhaps of another
  class, with a possessor. Names are copied and belong to class I; their suffixes harmonise with the last vowel.

A source phrase never has both a possessor and a relative clause, and a relative clause has no place, so each source has
one translation. Seeds change the sentences, not the languages, whose words are in `tfstudy.tasks.translation.grammar`.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tfstudy.errors import one_of
from tfstudy.tasks.base import Example, Tag
from tfstudy.tasks.translation.grammar import (
    ADJECTIVES,
    NAMES,
    NOUNS,
    PLACES,
    PRONOUNS,
    VERBS,
    Clause,
    Phrase,
    Sentence,
    Verb,
    source_words,
    target_words,
    zipf,
)

TESTS = {
    "noun_forms": "nouns that train contains only as singular subjects, in other forms",
    "verb_tenses": "verbs that train contains only in the affirmative past, in other forms",
    "adjective_class": "adjectives with nouns of a class that they never occur with in train",
    "negative_questions": "questions with a negation",
    "object_relatives": "relative clauses with a gap for the object, in conditional sentences",
    "names": "names that do not occur in train",
    "longer": "15 to 24 source words, train has at most 14",
    "deeper": "phrases nested 3 or 4 deep, train has at most 2",
}
MAX_LENGTH, MAX_TEST_LENGTH = 14, 24  # source words
MAX_DEPTH, MAX_TEST_DEPTH = 2, 4  # phrases around a phrase
TRAIN_NAMES = 320  # the most frequent names; the split `names` has the others

any_noun, any_verb, any_adjective = zipf(NOUNS), zipf(VERBS), zipf(ADJECTIVES)
any_transitive = zipf([verb for verb in VERBS if verb.governs])
PREPOSITIONS = tuple(PLACES)
train_name, unseen_name = zipf(NAMES[:TRAIN_NAMES]), zipf(NAMES[TRAIN_NAMES:])


class Probabilities(NamedTuple):
    """Probabilities of the parts of a sentence."""

    question: float = 0.15
    condition: float = 0.2  # before or after the main clause
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
    nested: float = 1.0  # factor for possessors and relative clauses inside other phrases
    object_gap: float = 0.5


DEFAULT = Probabilities()
# Higher probabilities for test splits with a held-out construction, so that few draws are rejected.
ADJUSTED = {
    "negative_questions": DEFAULT._replace(question=1.0, negative=0.5),
    "object_relatives": DEFAULT._replace(condition=1.0, relative=0.25, adjective=0.1, place=0.0),
    "names": DEFAULT._replace(unseen_name=0.6, name=0.3),
    "longer": DEFAULT._replace(condition=0.4, coordination=0.3, possessor=0.2, relative=0.2),
    "deeper": DEFAULT._replace(possessor=0.3, relative=0.15, nested=1.8, adjective=0.2, place=0.1, coordination=0.05),
}


class Draft:
    """A randomly drawn sentence, with its held-out constructions and its tags."""

    def __init__(self, random: Callable[[], float], probabilities: Probabilities) -> None:
        self.random, self.probabilities = random, probabilities
        self.held_out: set[str] = set()
        self.gaps: set[str] = set()
        self.numbers: set[str] = set()
        self.negative = self.pronoun = False
        self.depth = 0
        self.sentence = self._sentence()

    def _sentence(self) -> Sentence:
        probabilities, question, kind = self.probabilities, self.random() < self.probabilities.question, self.random()
        link = "and" if kind < probabilities.condition + probabilities.coordination else ""
        if kind < probabilities.condition:
            link = "condition first" if kind < probabilities.condition / 2 else "condition last"
        first = self._clause()
        second = self._clause(antecedent=first.subject) if link else None
        if question and self.negative:
            self.held_out.add("negative_questions")
        if link.startswith("condition") and "object" in self.gaps:
            self.held_out.add("object_relatives")
        return Sentence(first, link, second, question)

    def _clause(self, level: int = 0, gap: str = "", antecedent: Phrase | None = None) -> Clause:
        """Draw a clause inside `level` phrases: relative if it has a gap; an antecedent allows a pronoun."""
        verb = (any_transitive if gap == "object" else any_verb)(self.random())
        kind, past, negative = self.random(), self.probabilities.past, self.random() < self.probabilities.negative
        tense = "past" if kind < past else "present" if kind < (1 + past) / 2 else "future"
        self.negative |= negative
        if verb.held_out and (negative or tense != "past"):
            self.held_out.add("verb_tenses")
        pronouns = self._pronouns(verb, antecedent) if antecedent else {}
        subject = object_ = place = None
        if gap != "subject":
            subject = pronouns.get("subject") or self._phrase(level, subject=True)
        if gap != "object" and verb.governs:
            object_ = pronouns.get("object") or self._phrase(level)
        if not gap and self.random() < self.probabilities.place:
            place = PREPOSITIONS[int(self.random() * len(PREPOSITIONS))], self._phrase(level)
        return Clause(verb, tense, negative, subject, object_, place)

    def _pronouns(self, verb: Verb, antecedent: Phrase) -> dict[str, Phrase]:
        """Draw at most one pronoun, as the subject or, with a transitive verb, as the object."""
        if self.random() >= self.probabilities.pronoun:
            return {}
        self.pronoun = True
        role = "object" if verb.governs and self.random() < 0.4 else "subject"
        return {role: Phrase(PRONOUNS[antecedent.noun.noun_class], antecedent.number)}

    def _phrase(self, level: int, subject: bool = False) -> Phrase:
        """Draw a phrase inside `level` other phrases."""
        random, probabilities = self.random, self.probabilities
        self.depth = max(self.depth, level)
        if random() < probabilities.name:
            if random() < probabilities.unseen_name:
                self.held_out.add("names")
                return Phrase(unseen_name(random()))
            return Phrase(train_name(random()))
        kind = random()
        dual = kind > 1 - probabilities.dual
        number = "plural" if kind < probabilities.plural else "dual" if dual else "singular"
        self.numbers.add(number)
        noun = any_noun(random())
        if noun.held_out and not (subject and number == "singular"):
            self.held_out.add("noun_forms")
        possessor, relative = self._nested(level)
        if possessor and noun.possessed:
            noun = noun.possessed
        adjective = any_adjective(random()) if random() < probabilities.adjective else None
        if adjective and adjective.held_out == noun.noun_class:
            self.held_out.add("adjective_class")
        return Phrase(noun, number, adjective, possessor, relative)

    def _nested(self, level: int) -> tuple[Phrase | None, Clause | None]:
        """Draw a possessor, a relative clause or neither, for a phrase inside `level` other phrases."""
        factor = self.probabilities.nested if level else 1.0
        possessor, relative = self.probabilities.possessor * factor, self.probabilities.relative * factor
        kind = self.random()
        if level == MAX_TEST_DEPTH or kind >= possessor + relative:
            return None, None
        if kind < possessor:
            return self._phrase(level + 1), None
        gap = "object" if self.random() < self.probabilities.object_gap else "subject"
        self.gaps.add(gap)
        return None, self._clause(level + 1, gap)

    def tags(self, length: int) -> dict[str, Tag]:
        """Return the tags; `number` is the rarest in the sentence, and `relative` is object if both gaps occur."""
        return {
            "length": length,
            "depth": self.depth,
            "negative": "yes" if self.negative else "no",
            "question": "yes" if self.sentence.question else "no",
            "conditional": "yes" if self.sentence.link.startswith("condition") else "no",
            "relative": next((gap for gap in ("object", "subject") if gap in self.gaps), "none"),
            "number": next((number for number in ("dual", "plural") if number in self.numbers), "singular"),
            "pronoun": "yes" if self.pronoun else "no",
        }


def pair(split: str, i: int, seed: int) -> Example:
    """Return sentence `i` (from 0), as words, of a split, which depends only on the three arguments.

    Train, validation and test have the same distribution, without held-out constructions. In each split of `TESTS`,
    all sentences contain the construction of the split and no other.
    """
    one_of("split", split, ("train", "validation", "test", *TESTS))
    random = Random(f"{seed}/{split}/{i}").random
    required = {split} & TESTS.keys()
    while True:
        draft = Draft(random, ADJUSTED.get(split, DEFAULT))
        if draft.depth > MAX_DEPTH:
            draft.held_out.add("deeper")
        if draft.held_out - required or required - draft.held_out - {"longer"}:
            continue  # the length is checked below
        source = source_words(draft.sentence)
        if len(source) > MAX_LENGTH:
            draft.held_out.add("longer")
        if draft.held_out == required and len(source) <= MAX_TEST_LENGTH:
            return Example(tuple(source), tuple(target_words(draft.sentence)), draft.tags(len(source)))
