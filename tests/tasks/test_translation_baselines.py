"""Trivial systems: copying, and word by word with the lexicon of IBM Model 1."""

import random

import pytest

from tests.tasks.translation_tasks import sources, translation, write
from tfstudy.tasks.translation.corpus import Sentences
from tfstudy.tasks.translation.trivial import MAX_WORDS, lexicon, translated

PAIRS = [Sentences(*p) for p in [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")]]


def test_the_lexicon_of_a_worked_example_is_right():
    """The example of Koehn (2010), Statistical Machine Translation, figure 4.4."""
    assert lexicon(PAIRS) == {"das": "the", "haus": "house", "buch": "book", "ein": "a"}


def test_a_lexicon_is_recovered_from_sentences_in_another_order():
    draw = random.Random(0)
    words = {f"s{i}": f"t{i}" for i in range(50)}
    lines = [draw.sample(sorted(words), 6) for _ in range(400)]
    pairs = [Sentences(" ".join(line), " ".join(words[w] for w in sorted(line))) for line in lines]
    assert lexicon(pairs) == words


def test_the_lexicon_does_not_depend_on_letter_case_or_punctuation_of_sources():
    assert lexicon([Sentences("Das Haus.", "the house!"), *PAIRS[1:]]) == lexicon(PAIRS)


def test_pairs_that_are_too_long_and_empty_text_are_not_learnt_from():
    assert lexicon([*PAIRS, Sentences("das " * (MAX_WORDS + 1), "x")]) == lexicon(PAIRS)
    assert lexicon([]) == lexicon([Sentences("...", "!")]) == {}


def test_a_target_without_words_is_not_learnt_from_either():
    assert lexicon([PAIRS[0], Sentences("das Haus", "@@"), *PAIRS[1:]]) == lexicon(PAIRS)


@pytest.mark.parametrize(
    ("source", "target"),
    [("Das Buch", "the book"), ('"Buch", (das)!', '"book", (the)!'), ("das  Tier 7", "the  Tier 7"), ("", "")],
)
def test_words_are_replaced_and_everything_else_stays(source, target):
    assert translated(source, lexicon(PAIRS)) == target


def test_baselines_are_the_tokens_of_their_text(tmp_path):
    root = write(tmp_path, train=PAIRS, test=[("ein Haus, das Auto", "a house, the car")])
    for shared in (True, False):
        task = translation(split="corpus", root=root, shared_subwords=shared)
        found = task.baselines("test")
        assert {name: [task.text(tokens) for tokens in lines] for name, lines in found.items()} == {
            "copy": ["ein Haus, das Auto"], "word by word": ["a house, the Auto"]
        }  # fmt: skip
        assert set().union(*found["copy"], *found["word by word"]) <= task.vocabulary()[1]
        assert task.score(found["word by word"], task.examples("test"))["chrf"] > 0.5


def test_the_embedded_pair_has_baselines_and_word_by_word_is_the_better(embedded):
    scores = {
        name: embedded.score(lines, embedded.examples("test"))["chrf"]
        for name, lines in embedded.baselines("test").items()
    }
    assert scores["word by word"] > scores["copy"]
    assert [embedded.text(tokens) for tokens in embedded.baselines("test")["copy"]] == sources(embedded, "test")
