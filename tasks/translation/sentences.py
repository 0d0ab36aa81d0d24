"""Sentences as trees of clauses and phrases, and their words in the source and in the target language.

`tfstudy.tasks.translation.synthetic` describes the rules of both languages.
"""

from typing import NamedTuple

from tfstudy.tasks.translation.lexicon import (
    NUMBERS,
    PLACES,
    PRONOUNS,
    SOURCE,
    TARGET,
    TENSES,
    Adjective,
    Agreement,
    Noun,
    Verb,
    adjective_form,
    noun_form,
    verb_form,
)


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

    @property
    def conditional(self) -> bool:
        """Whether one clause is the condition of the other."""
        return self.link.startswith("condition")


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
    words = _target_clause(first, "conditional" if sentence.conditional else "main")
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
    adjective = [adjective_form(phrase.adjective, _agreement(phrase))] if phrase.adjective else []
    return [*relative, *possessor, *adjective, noun_form(phrase.noun, phrase.number, case)]


def _agreement(phrase: Phrase) -> Agreement:
    return phrase.noun.noun_class, phrase.number
