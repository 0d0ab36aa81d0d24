"""Profiles of characters: scripts, and the order of a pair by its trigrams."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.corpora import REAL, pair
from tests.tasks.translation_tasks import invented
from tfstudy.tasks.translation.corpus import Languages, Sentences, shuffled
from tfstudy.tasks.translation.folder import from_folder
from tfstudy.tasks.translation.profile import MIN_EVIDENCE, OrderProfile, main_script, script_shares


@pytest.mark.parametrize(
    ("text", "script"),
    [("a dog", "LATIN"), ("собака dog спит", "CYRILLIC"), ("犬 は イヌ です", "CJK"), ("12 ?!", ""), ("", "")],
)
def test_the_main_script_is_that_of_most_letters(text, script):
    assert main_script([text]) == script


def test_shares_of_a_script_are_of_letters_only():
    texts = ["abc 123", "abcд", "дд", "...", ""]
    assert script_shares(texts, "LATIN").tolist() == [1, 0.75, 0, 1, 1]
    assert script_shares([], "LATIN").tolist() == []


@given(st.lists(pair, min_size=1, max_size=20))
def test_the_evidence_of_a_swapped_pair_is_the_negative(pairs):
    profile = OrderProfile(pairs)
    swapped = [Sentences(p.target, p.source) for p in pairs]
    assert np.allclose(profile.evidence(pairs), -profile.evidence(swapped))


@given(st.lists(pair, max_size=20), st.integers(0, 20))
def test_the_evidence_of_a_pair_does_not_depend_on_its_neighbours(pairs, first):
    profile = OrderProfile([Sentences(*p) for p in invented("train", 50)])
    assert np.allclose(profile.evidence(pairs)[first:], profile.evidence(pairs[first:]))


def test_two_sides_of_the_same_language_give_no_evidence():
    texts = [a for a, _ in invented("train", 400)]
    pairs = [Sentences(*p) for p in zip(texts[::2], texts[1::2], strict=True)]
    assert (abs(OrderProfile(pairs).evidence(pairs)) < MIN_EVIDENCE).all()


@pytest.mark.parametrize(("name", "least"), [("multi30k-en-de", 0.99), ("tanaka-en-ja", 0.99), ("umsuka-en-zu", 0.95)])
def test_swapped_pairs_of_real_corpora_are_found_and_hardly_any_other(name, least):
    if not REAL.is_dir():
        pytest.skip("no copy of the corpora beside the repository")
    pairs = shuffled(from_folder(str(REAL / name), Languages()).splits["train"], 0)[:3000]
    swapped = set(random.Random(0).sample(range(len(pairs)), len(pairs) // 20))
    mixed = [Sentences(p.target, p.source) if i in swapped else p for i, p in enumerate(pairs)]
    found = set(np.flatnonzero(OrderProfile(mixed).evidence(mixed) < -MIN_EVIDENCE))
    assert len(found & swapped) >= least * len(swapped)
    assert len(found - swapped) <= 1  # a French source with an English target
