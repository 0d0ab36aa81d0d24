"""The synthetic languages: sentences follow the grammar, train lacks the held-out constructions."""

import hashlib
import re

import pytest

from tfstudy.tasks.translation import grammar
from tfstudy.tasks.translation.synthetic import TESTS, pair

NOUNS = {noun.source: noun for noun in grammar.NOUNS + grammar.NAMES}
VERBS = {verb.source: verb for verb in grammar.VERBS}
ADJECTIVES = {adjective.source: adjective for adjective in grammar.ADJECTIVES}
AUXILIARIES = {"da": "dU", "su": "mA", "vo": "rOs"}
NUMBERS = {"bi": "dual", "mo": "plural"}
CLASS = ["mU", "dA", "kO", "vU"]
NAMED = {"accusative": "tU", "dative": "gA"}
PLACES = {"po": "wom nOk", "ru": "wek nOk", "go": "wid gA", "mi": "wan gA", "ba": "wus sUm", "fe": "wyl sUm"}
PRONOUNS = ["hom", "hit", "hal", "hyn"]
IN_DISTRIBUTION = ("train", "validation", "test")
DIGEST = "84cad6d0a602e085faa770fb880a83384fba75c5034d6d7fda7b847d43655ba4"


@pytest.fixture(scope="module")
def train():
    return [pair("train", i, 0) for i in range(5000)]


@pytest.fixture(scope="module")
def constructed():
    return {split: [pair(split, i, 0) for i in range(120)] for split in TESTS}


def after(stem, suffix):
    """A stem with a suffix in harmony with the stem's last vowel."""
    back = re.findall("[aoueyi]", stem)[-1] in "aou"
    return stem + suffix.translate(str.maketrans("AOU", "aou" if back else "eyi"))


class Reader:
    """A second translator, which reads the source from left to right and knows only words and affixes."""

    def __init__(self, source):
        self.words, self.depth, self.object_gap, self.antecedent = list(source), 0, False, None
        self.target = self.sentence()
        assert not self.words, "the source goes on after the sentence"

    def take(self, *words):
        return self.words.pop(0) if self.words and self.words[0] in words else None

    def sentence(self):
        question = ["huk"] if self.take("ka") else []
        first_condition = self.take("si")
        self.antecedent, first = self.clause(mood="zOn" if first_condition else "")
        link = self.take("ti", "en", "si")
        _, second = self.clause(mood="zOn" if link == "si" else "") if link else (None, [])
        both = second + first if link == "si" else [*first, *(["hes"] if link == "en" else []), *second]
        return tuple(both + question)

    def clause(self, level=0, mood="", head=None):
        subject, before = head, []
        if self.words[0] not in AUXILIARIES:
            subject, before = self.phrase("", level)
        tense = AUXILIARIES[self.words.pop(0)]
        negative = self.take("ne")
        verb = VERBS[self.words.pop(0)]
        object_, patient = None, []
        if self.words and self.words[0] in {*NUMBERS, *ADJECTIVES, *NOUNS, "ta"}:
            object_, patient = self.phrase(NAMED[verb.governs], level)
        elif verb.governs:
            object_, self.object_gap = head, True
        place = self.take(*PLACES) if level == 0 else None
        if place:
            postposition, case = PLACES[place].split()
            before += [*self.phrase(case, level)[1], postposition]
        prefix = ("oz" if negative else "") + ("aeiu"[object_[0]] + mark(object_[1], "lbr") if object_ else "")
        stem = verb.senses[1 if object_ and object_[0] in (2, 3) else 0]
        suffix = tense + ("pA" if negative else "") + CLASS[subject[0]] + mark(subject[1], ["", "b", "r"]) + mood
        return subject, before + patient + [prefix + after(stem, suffix)]

    def phrase(self, case, level):
        self.depth = max(self.depth, level)
        if self.take("ta"):
            noun_class, number = self.antecedent
            return self.antecedent, [after(PRONOUNS[noun_class], mark(number, ["", "bOs", "lAr"]) + case)]
        number = NUMBERS.get(self.take(*NUMBERS), "singular")
        adjective = ADJECTIVES.get(self.take(*ADJECTIVES))
        noun = NOUNS[self.words.pop(0)]
        before = []
        if self.take("le"):
            before, noun = self.phrase("nOk", level + 1)[1], noun.possessed or noun
        elif self.take("ke"):
            before = self.clause(level + 1, "zA", (noun.noun_class, number))[1]
        concord = CLASS[noun.noun_class] + mark(number, ["", "b", "r"])
        before += [after(adjective.stem, concord)] if adjective else []
        if number == "plural" and noun.plural:
            return (noun.noun_class, number), [*before, after(noun.plural, case)]
        form = after(noun.stem, mark(number, ["", "bOs", "lAr"]) + case)
        return (noun.noun_class, number), [*before, form]


def mark(number, marks):
    return marks[["singular", "dual", "plural"].index(number)]


def constructions(source):
    """The held-out constructions that the words of a source show."""
    reader, found = Reader(source), set()
    for i, word in enumerate(source):
        if word in NOUNS and NOUNS[word].held_out:
            start = i - 1 if i and source[i - 1] in ADJECTIVES else i
            if start and source[start - 1] not in ("ka", "si", "ti", "en", "ke"):
                found.add("noun_forms")
        if word in VERBS and VERBS[word].held_out and source[i - 1] != "da":
            found.add("verb_tenses")
        if word in ADJECTIVES:
            noun = NOUNS[source[i + 1]]
            noun = noun.possessed if noun.possessed and source[i + 2 : i + 3] == ("le",) else noun
            if noun.noun_class == ADJECTIVES[word].held_out:
                found.add("adjective_class")
    found |= {"negative_questions"} if {"ka", "ne"} <= set(source) else set()
    found |= {"object_relatives"} if "si" in source and reader.object_gap else set()
    found |= {"names"} if any(name.source in source for name in grammar.NAMES[320:]) else set()
    found |= {"longer"} if len(source) > 14 else set()
    return found | ({"deeper"} if reader.depth > 2 else set())


def test_a_translator_of_source_words_gives_the_same_target_and_tags(train, constructed):
    others = [pair(split, 10**9 - i, 2**63 - 1 - i) for split in (*IN_DISTRIBUTION, *TESTS) for i in range(20)]
    for source, target, tags in [*train[:2000], *others, *(p for pairs in constructed.values() for p in pairs)]:
        reader = Reader(source)
        assert reader.target == target, source
        assert tags == {
            "length": len(source),
            "depth": reader.depth,
            "negative": "yes" if "ne" in source else "no",
            "question": "yes" if source[0] == "ka" else "no",
            "conditional": "yes" if "si" in source else "no",
            "relative": "object" if reader.object_gap else "subject" if "ke" in source else "none",
            "number": "dual" if "bi" in source else "plural" if "mo" in source else "singular",
            "pronoun": "yes" if "ta" in source else "no",
        }, source


def test_sentences_are_those_of_all_earlier_versions():
    pairs = [pair(split, i, 1) for split in ("train", *TESTS) for i in range(12)]
    digest = hashlib.sha256(repr([*map(tuple, pairs)]).encode()).hexdigest()
    assert digest == DIGEST, "other sentences than before: the task needs another version"


def test_train_has_no_held_out_construction(train):
    assert [found for found in train if constructions(found.source)] == []


def test_each_test_has_its_own_construction_and_no_other(constructed):
    for split, pairs in constructed.items():
        assert {frozenset(constructions(found.source)) for found in pairs} == {frozenset({split})}
        assert max(len(found.source) for found in pairs) <= 24
        assert max(found.tags["depth"] for found in pairs) <= 4
