"""Scores of translations into the synthetic language, and baselines without grammar."""

import re
from random import Random

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.phenomena_baselines import copying, dictionary, shuffled
from tests.tasks.synthetic_pairs import stem_of
from tfstudy.tasks.translation import lexicon, phenomena


def golds(pairs):
    return [pair.target for pair in pairs]


def test_phenomena_are_perfect_on_the_gold_targets(train, constructed):
    for pairs in (train[:500], *constructed.values()):
        assert set(phenomena.phenomena(golds(pairs), golds(pairs)).values()) == {1.0}


def test_phenomena_without_known_words_are_0():
    assert set(phenomena.phenomena([("xyz", "")], [("hom", "wom")]).values()) == {0.0}


def test_a_score_of_which_the_targets_have_no_case_is_left_out(train):
    for pair in train[:200]:
        assert set(phenomena.phenomena([pair.target], [pair.target]).values()) == {1.0}
    verbs_only = phenomena.phenomena([("wom",)], [("wom",)])
    assert "order" not in verbs_only
    assert verbs_only["form_recall"] == 1


def damaged(word, pattern, replacement):
    """A word with a match of the pattern replaced, where the stem is between `/` and `-`."""
    stem = stem_of(word) or word
    prefix, _, suffix = word.partition(stem)
    return re.sub(pattern, replacement, f"{prefix}/{stem}-{suffix}").replace("/", "").replace("-", "")


def scores_after(pairs, pattern, replacement):
    targets = [tuple(damaged(word, pattern, replacement) for word in gold) for gold in golds(pairs)]
    return phenomena.phenomena(targets, golds(pairs))


@pytest.mark.parametrize(
    ("pattern", "replacement", "lower"),
    [
        ("-lar", "-bos", "number"),
        ("-ler", "-lar", "harmony"),
        ("-t[ui]$", "-", "case"),
        ("^(oz)?i(?=[lbr]/)", "\\1u", "verb_agreement"),
        ("-mub$", "-mur", "adjective_agreement"),
        ("^oz", "", "negation"),
        ("z[ae]$", "", "mood"),
        ("-ros", "-du", "tense"),
    ],
)
def test_a_wrong_mark_lowers_its_own_score_and_that_of_forms(train, pattern, replacement, lower):
    scores = scores_after(train[:1000], pattern, replacement)
    assert {name for name, value in scores.items() if value < 1} == {"form_recall", lower}


def test_another_stem_lowers_the_recall_of_lemmas_and_forms(train):
    scores = scores_after(train[:1000], "^/meb-", "nebam")
    assert {name for name, value in scores.items() if value < 1} == {"form_recall", "lemma_recall"}
    assert scores["form_recall"] == scores["lemma_recall"]


def test_shuffling_lowers_the_order_only(test):
    random = Random(0)
    scores = phenomena.phenomena([shuffled(gold, random) for gold in golds(test)], golds(test))
    assert 0.4 < scores.pop("order") < 0.6
    assert set(scores.values()) == {1.0}


def test_words_with_the_same_lemma_are_matched_by_form_then_by_nearness():
    assert phenomena.align(("mebti", "pyl", "meb"), ("meb", "pyl", "mebti")) == {0: 2, 1: 1, 2: 0}
    assert phenomena.align(("meb", "pyl", "meb"), ("mebti", "pyl", "meb")) == {0: 0, 1: 1, 2: 2}
    assert phenomena.align(("meb",), ("mebga", "mebti")) == {0: 0}


def test_order_is_the_fraction_of_pairs_in_order():
    gold = ("meb", "pyl", "wom", "hes")
    assert phenomena.phenomena([("wom", "meb", "pyl")], [gold])["order"] == pytest.approx(1 / 3)
    assert phenomena.phenomena([gold[::-1]], [gold])["order"] == 0


@given(
    st.sampled_from(lexicon.NOUNS + lexicon.NAMES + lexicon.PRONOUNS),
    st.sampled_from(["singular", "dual", "plural"]),
    st.sampled_from(["nominative", "accusative", "genitive", "dative", "locative"]),
)
def test_a_noun_is_analysed_as_it_was_formed(noun, number, case):
    found = phenomena.analyse(lexicon.noun_form(noun, number, case))
    assert (found.lemma, dict(found.marks)) == (noun.stem.text, {"number": number, "case": case})


agreements = st.tuples(st.integers(0, 3), st.sampled_from(["singular", "dual", "plural"]))


@given(st.sampled_from(lexicon.VERBS), st.sampled_from(["past", "present", "future"]), st.booleans(), agreements,
       st.none() | agreements, st.sampled_from(["main", "relative", "conditional"]))  # fmt: skip
def test_a_verb_is_analysed_as_it_was_formed(verb, tense, negative, subject, object_, mood):
    found = phenomena.analyse(lexicon.verb_form(verb, tense, negative, subject, object_, mood))
    assert found.lemma in [stem.text for stem in verb.senses]
    assert dict(found.marks) == {
        "verb_agreement": (object_, *subject),
        "tense": tense,
        "negation": (negative, negative),
        "mood": mood,
    }


@given(st.text(max_size=8), st.sampled_from(["", "oz", "meb", "il", "hom", "Mibir"]))
def test_an_unknown_form_has_no_marks_and_no_wrong_lemma(text, beginning):
    found = phenomena.analyse(beginning + "q" + text)
    assert not found.marks
    assert found.lemma in (beginning + "q" + text, beginning)


def test_trivial_baselines_score_near_0(test):
    def bleu(outputs):
        gold = [" ".join(pair.target) for pair in test]
        return sacrebleu.corpus_bleu([" ".join(words) for words in outputs], [gold], force=True).score

    assert bleu([copying(pair.source) for pair in test]) < 2
    assert bleu([dictionary(pair.source) for pair in test]) < 5
    assert bleu([shuffled(pair.target, Random(i)) for i, pair in enumerate(test)]) < 15
    assert bleu(golds(test)) == pytest.approx(100)


def test_the_dictionary_gives_citation_forms_in_the_order_of_the_source():
    source = ("ka", "mo", "pidu", "dile", "da", "ne", "milo", "Mibir", "mi", "kovu", "le", "ta")
    assert dictionary(source) == ("huk", "pumon", "meb", "varub", "Mibir", "wan", "lad", "hom")
