"""Subwords: lossless, deterministic, and of the size that was asked for."""

import json
import os
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.translation_tasks import HERE
from tfstudy.tasks.translation.corpus import Sentences
from tfstudy.tasks.translation.subwords import Words, coders, learn, size_for

TEXTS = [
    " ".join(random.Random(i).choices(["ab", "abc", "bcd", "naïve", "dog", "dogs", "犬", "'ll", "12", "."], k=9))
    for i in range(80)
]
text = st.text(st.characters(exclude_categories=["Cs"]))


def test_a_subword_is_read_as_text_with_a_mark_for_a_space():
    subwords = learn(["naïve naïve"], 300)
    [tokens] = subwords.encode(["naïve 犬"])
    assert list(map(subwords.readable, tokens)) == ["▁naïve", "▁", *["�"] * 3]
    assert subwords.readable("<eos>") == "<eos>"
    assert Words().readable("a") == "a"


@given(text)
def test_subwords_restore_the_text(given_text):
    subwords = learn(TEXTS, 300)
    [tokens] = subwords.encode([given_text])
    assert subwords.decode(tokens) == given_text
    assert set(tokens) <= subwords.vocabulary()
    assert not any(character.isspace() for token in tokens for character in token)


@pytest.mark.parametrize(
    "odd", ["", " ", "  a b ", "a\n\tb", "\u2028", "\ufeffa", "e\u0301 é", "<unk> <pad>", "\x00", "👩‍👩‍👧"]
)
def test_subwords_restore_unusual_text(odd):
    subwords = learn(TEXTS, 300)
    assert subwords.decode(subwords.encode([odd])[0]) == odd


def test_a_word_has_the_same_subwords_at_all_positions():
    subwords = learn(TEXTS, 300)
    first, later = subwords.encode(["dogs", "abc dogs"])
    assert later[-len(first) :] == first


def test_unseen_letters_are_bytes():
    [tokens] = learn(["a b"], 300).encode(["ж"])
    assert tokens == ("Ġ", "Ð", "¶")


def test_merges_are_those_of_the_most_frequent_neighbours():
    subwords = learn(["ab ab ab abc abc cab"], 256 + 3)
    assert subwords.vocabulary() - learn(["ab"], 256).vocabulary() == {"ab", "Ġab", "Ġabc"}
    assert subwords.encode(["ab abc xy"]) == [("Ġab", "Ġabc", "Ġ", "x", "y")]


def test_neighbours_that_occur_once_are_not_merged():
    assert len(learn(["abc xyz"], 1000).vocabulary()) == 256


def test_bytes_that_form_no_character_are_shown():
    subwords = learn(TEXTS, 300)
    assert subwords.decode(("Ġa", "Ã", "<unk>")) == "a\ufffd<unk>"
    assert subwords.decode(()) == ""


def test_subwords_do_not_depend_on_the_order_of_the_text():
    assert learn(TEXTS, 300).json() == learn(TEXTS[::-1], 300).json() == learn(sorted(TEXTS), 300).json()


def test_subwords_are_the_same_in_another_process_with_other_threads():
    learned = "print(learn(json.load(sys.stdin), 300).json())"
    code = f"import sys, json\nfrom tfstudy.tasks.translation.subwords import learn\n{learned}"
    for threads, hashing in ((1, 1), (4, 2)):
        environment = os.environ | {"RAYON_NUM_THREADS": str(threads), "PYTHONHASHSEED": str(hashing)}
        done = subprocess.run([sys.executable, "-c", code], cwd=HERE, env=environment, input=json.dumps(TEXTS),
                              capture_output=True, text=True, check=True)  # fmt: skip
        assert done.stdout.strip() == learn(TEXTS, 300).json()


@pytest.mark.parametrize(
    ("pairs", "size"),
    [
        (1, 1000),
        (1000, 1000),
        (1500, 1000),
        (1501, 2000),
        (2000, 2000),
        (5000, 2000),
        (10_000, 4000),
        (20_000, 8000),
        (50_000, 8000),
    ],
)
def test_few_pairs_have_few_subwords(pairs, size):
    assert size_for(pairs) == size


def test_each_side_has_its_own_subwords_if_they_are_not_shared():
    pairs = [Sentences("aa bb aa bb", "xx yy xx yy")]
    source, target = coders(pairs, 300, shared=False)
    assert source.encode(["aa"]) == [("Ġaa",)]
    assert target.encode(["aa"]) == [("Ġ", "a", "a")]
    one, same = coders(pairs, 300, shared=True)
    assert one is same
    assert one.encode(["aa xx"]) == [("Ġaa", "Ġxx")]


def test_words_are_separated_by_white_space():
    assert Words().encode([" a  b\u00a0c. "]) == [("a", "b", "c.")]
    assert Words().decode(("a", "b")) == "a b"
