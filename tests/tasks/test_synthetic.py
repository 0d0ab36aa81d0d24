"""The synthetic languages: sentences follow the grammar, and train lacks the held-out constructions."""

import hashlib
import os
import re
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.synthetic_pairs import ADJECTIVES, NOUNS, STEMS, VERBS, stem_of
from tfstudy.errors import UserError
from tfstudy.tasks.translation import lexicon, phenomena, synthetic
from tfstudy.tasks.translation.synthetic import TESTS, pair

AUXILIARIES = {"da": "dU", "su": "mA", "vo": "rOs"}
NUMBERS = {"bi": "dual", "mo": "plural"}
CLASS = ["mU", "dA", "kO", "vU"]
NAMED = {"accusative": "tU", "dative": "gA"}
PLACES = {"po": "wom nOk", "ru": "wek nOk", "go": "wid gA", "mi": "wan gA", "ba": "wus sUm", "fe": "wyl sUm"}
PRONOUNS = ["hom", "hit", "hal", "hyn"]
IN_DISTRIBUTION = ("train", "validation", "test")
DIGEST = "f7f352c792ef48408af5e18a36757f6b1f6941e7c3ede6575fa7d036d4026fa7"


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
        stem = verb.senses[1 if object_ and object_[0] in (2, 3) else 0].text
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
        before += [after(adjective.stem.text, concord)] if adjective else []
        if number == "plural" and noun.plural:
            return (noun.noun_class, number), [*before, after(noun.plural.text, case)]
        form = after(noun.stem.text, mark(number, ["", "bOs", "lAr"]) + case)
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
    found |= {"names"} if any(name.source in source for name in lexicon.NAMES[320:]) else set()
    found |= {"longer"} if len(source) > 14 else set()
    return found | ({"deeper"} if reader.depth > 2 else set())


def test_the_example_of_the_module_is_a_pair():
    found = pair("train", 9, 0)
    assert f"{' '.join(found.source)}  ->  {' '.join(found.target)}" in synthetic.__doc__


def test_a_translator_of_source_words_gives_the_same_target(train, constructed):
    for found in [*train[:2000], *(p for pairs in constructed.values() for p in pairs)]:
        assert Reader(found.source).target == found.target, found


@given(st.sampled_from([*IN_DISTRIBUTION, *TESTS]), st.integers(0, 10**9), st.integers(0, 2**63 - 1))
def test_tags_are_what_the_source_shows(split, i, seed):
    source, target, tags = pair(split, i, seed)
    reader = Reader(source)
    assert reader.target == target
    gap = "object" if reader.object_gap else "subject" if "ke" in source else "none"
    assert tags == {
        "length": len(source),
        "depth": reader.depth,
        "negative": "yes" if "ne" in source else "no",
        "question": "yes" if source[0] == "ka" else "no",
        "conditional": "yes" if "si" in source else "no",
        "relative": gap,
        "number": "dual" if "bi" in source else "plural" if "mo" in source else "singular",
        "pronoun": "yes" if "ta" in source else "no",
    }


def test_a_sentence_depends_on_seed_split_and_number_alone():
    backwards = [pair("train", i, 3) for i in reversed(range(50))]
    assert backwards[::-1] == [pair("train", i, 3) for i in range(50)]
    assert len({pair(split, 7, seed).source for split in IN_DISTRIBUTION for seed in (0, 1)}) == 6


def test_sentences_are_the_same_in_every_process():
    program = (
        "import hashlib; from tfstudy.tasks.translation.synthetic import TESTS, pair;"
        "pairs = [pair(split, i, 1) for split in ('train', *TESTS) for i in range(12)];"
        "print(hashlib.sha256(repr(pairs).encode()).hexdigest())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    pairs = [pair(split, i, 1) for split in ("train", *TESTS) for i in range(12)]
    assert done.stdout.strip() == hashlib.sha256(repr(pairs).encode()).hexdigest()
    assert done.stdout.strip() == DIGEST, "other sentences than before: the task needs another version"


def test_no_source_word_has_two_meanings():
    words = [word.source for word in [*lexicon.NOUNS, *lexicon.VERBS, *lexicon.ADJECTIVES, *lexicon.NAMES]]
    assert len(words) == len(set(words)) == 900 + 300 + 200 + 400
    assert not set(words) & {"da", "su", "vo", "bi", "mo", "ne", "ka", "si", "ti", "en", "le", "ke", "ta", *PLACES}


def test_no_target_word_is_the_beginning_of_another_stem():
    words = sorted([*STEMS, *PRONOUNS, "huk", "hes", *(text.split()[0] for text in PLACES.values())])
    assert not [(word, stem) for word, stem in pairwise(words) if stem.startswith(word)]
    stems = 900 + sum(bool(n.plural) + bool(n.possessed) for n in NOUNS.values()) + 200 + 400
    assert len(STEMS) == stems + sum(len(set(verb.senses)) for verb in VERBS.values())


def test_suffix_vowels_are_in_harmony_with_the_stem(train):
    walked = 0
    for word in (word for found in train[:1000] for word in found.target):
        stem = stem_of(word)
        if stem:
            suffix = word[word.index(stem) + len(stem) :]
            side = "aou" if re.findall("[aoueyi]", stem)[-1] in "aou" else "eyi"
            assert set(suffix) & set("aoueyi") <= set(side), word
            walked += bool(suffix)
    assert walked > 3000


def test_stems_but_not_names_have_one_harmony():
    mixed = {stem for stem in STEMS if set(stem) & set("aou") and set(stem) & set("eyi")}
    assert mixed
    assert mixed <= {name.source for name in lexicon.NAMES}


def test_adjectives_agree_with_the_noun_that_follows(train):
    classes = {n.stem.text: n.noun_class for noun in NOUNS.values() for n in (noun, noun.possessed) if n}
    plurals = {noun.plural.text: noun.noun_class for noun in NOUNS.values() if noun.plural}
    seen = set()
    for found in train[:2000]:
        for word, noun in pairwise(found.target):
            stem = stem_of(word)
            if STEMS.get(stem) != "adjective":
                continue
            of = stem_of(noun)
            plural = of in plurals or re.match("l[ae]r", noun[len(of) :])
            number = "r" if plural else "b" if re.match("b[oy]s", noun[len(of) :]) else ""
            noun_class = (classes | plurals)[of]
            assert word == after(stem, CLASS[noun_class]) + number
            seen.add((noun_class, number))
    assert len(seen) == 12


def test_negation_is_before_and_after_the_verb(train):
    for found in train:
        negated = [word for word in found.target if word.startswith("oz")]
        assert len(negated) == found.source.count("ne")
        for word in negated:
            assert re.match("(d[ui]|m[ae]|r[oy]s)p[ae]", word.partition(stem_of(word))[2])


def test_verbs_come_last_and_questions_end_in_a_particle(train):
    for source, target, _ in train:
        assert (target[-1] == "huk") == (source[0] == "ka")
        assert STEMS[stem_of(target[-2 if target[-1] == "huk" else -1])] == "verb"


def test_train_has_every_form_and_every_kind_of_stem(train):
    words = {word for found in train for word in found.target}
    marks = {(name, mark) for word in words for name, mark in phenomena.analyse(word).marks.items()}
    counts = {name: sum(mark[0] == name for mark in marks) for name, _ in marks}
    assert (counts["case"], counts["number"], counts["tense"], counts["mood"], counts["negation"]) == (5, 3, 3, 3, 2)
    assert counts["adjective_agreement"] == 12
    assert len({mark[0] for name, mark in marks if name == "verb_agreement"}) == 13
    stems = {stem_of(word) for word in words}
    assert len({noun.plural.text for noun in NOUNS.values() if noun.plural} & stems) >= 20
    assert len({noun.possessed.stem.text for noun in NOUNS.values() if noun.possessed} & stems) >= 20
    assert len({verb.senses[1].text for verb in VERBS.values() if verb.senses[1] != verb.senses[0]} & stems) >= 40
    assert {*PRONOUNS, "hes", "huk", "wom", "wek", "wid", "wan", "wus", "wyl"} <= words


def test_train_has_no_held_out_construction(train):
    assert [found for found in train if constructions(found.source)] == []


@pytest.mark.parametrize("split", ["validation", "test"])
def test_validation_and_test_have_no_held_out_construction(split):
    assert not any(constructions(pair(split, i, 5).source) for i in range(500))


@pytest.mark.parametrize("split", TESTS)
def test_each_test_has_its_own_construction_and_no_other(split, constructed):
    assert {frozenset(constructions(found.source)) for found in constructed[split]} == {frozenset({split})}
    assert max(len(found.source) for found in constructed[split]) <= 24
    assert max(found.tags["depth"] for found in constructed[split]) <= 4


def test_train_contains_the_parts_that_the_tests_recombine(train):
    seen = {word for found in train for word in found.source}
    assert {noun.source for noun in NOUNS.values() if noun.held_out} <= seen
    assert {verb.source for verb in VERBS.values() if verb.held_out} <= seen
    kinds = [(f.tags["negative"], f.tags["question"], f.tags["conditional"], f.tags["relative"]) for f in train]
    assert sum(kind == ("no", "yes", "no", "none") for kind in kinds) > 100
    assert sum(kind[2] == "no" and kind[3] == "object" for kind in kinds) > 100
    assert sum(found.tags["depth"] == 2 for found in train) > 50


def test_words_of_train_are_not_those_of_the_names_test(train, constructed):
    trained = {word for found in train for word in found.source}
    assert all(any(w[0].isupper() and w not in trained for w in found.source) for found in constructed["names"])


def test_most_words_are_known_after_2000_pairs_and_many_forms_are_not(train, test):
    words = {word for found in train[:2000] for word in found.source}
    forms = {form for found in train[:2000] for form in found.target}
    assert sum(word in words for found in test for word in found.source) > 0.95 * sum(len(f.source) for f in test)
    assert sum(form in forms for found in test for form in found.target) < 0.7 * sum(len(f.target) for f in test)


def test_few_sources_of_test_are_in_train(train, test):
    trained = {found.source for found in train}
    assert sum(found.source in trained for found in test) <= 20


def test_an_unknown_split_is_refused_with_the_nearest_name():
    with pytest.raises(UserError, match="did you mean 'longer'"):
        pair("longest", 0, 0)
