"""Selections by hash, checksums and fingerprints."""

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.toy_task import TOKENS, A, B, C, D, E, Toy, example, quick, toy
from tfstudy.tasks.base import (
    Splits,
    as_lines,
    checksum,
    fingerprint,
    hold_out,
    stable_hash,
)

# Hashes


def numbered(count):
    return [example(f"word {n}", "x") for n in range(count)]


def test_a_hash_is_the_same_on_every_machine():
    digest = hashlib.sha256(b"validation\t0\tjump twice").digest()
    assert stable_hash("validation", 0, ("jump", "twice")) == int.from_bytes(digest[:8], "big") == 12744994395943979143


@given(st.sampled_from(["validation", "simple", ""]), st.integers(0, 2**40), TOKENS)
@quick
def test_a_hash_is_a_number_of_64_bits(purpose, seed, source):
    assert 0 <= stable_hash(purpose, seed, tuple(source)) < 2**64


@pytest.mark.parametrize("other", [("simple", 0), ("validation", 1)])
def test_hashes_for_another_purpose_or_seed_are_independent(other):
    low = [[stable_hash(*draw, e.source) < 2**63 for e in numbered(4000)] for draw in (("validation", 0), other)]
    assert 0.45 < sum(low[0]) / 4000 < 0.55
    assert 0.45 < sum(a == b for a, b in zip(*low, strict=True)) / 4000 < 0.55


EXAMPLES = st.lists(st.integers(0, 30).map(lambda n: example(f"word {n}", "x")), max_size=40)
FRACTION = st.floats(0, 0.5)
SEED = st.integers(0, 99)


@given(EXAMPLES, FRACTION, SEED)
@quick
def test_holding_out_keeps_every_example_in_order(train, fraction, seed):
    stays, out = hold_out(train, fraction, seed)
    held = {e.source for e in out}
    assert stays == [e for e in train if e.source not in held]
    assert out == [e for e in train if e.source in held]


@given(EXAMPLES, FRACTION, SEED)
@quick
def test_holding_out_never_takes_a_repeated_example(train, fraction, seed):
    count = Counter(e.source for e in train)
    assert all(count[e.source] == 1 for e in hold_out(train, fraction, seed)[1])


@given(EXAMPLES, FRACTION, SEED, st.randoms(use_true_random=False))
@quick
def test_holding_out_does_not_depend_on_the_order(train, fraction, seed, random):
    shuffled = random.sample(train, len(train))
    assert sorted(hold_out(train, fraction, seed)[1]) == sorted(hold_out(shuffled, fraction, seed)[1])


@given(EXAMPLES, FRACTION, FRACTION, SEED)
@quick
def test_a_larger_validation_contains_the_smaller(train, a, b, seed):
    small, large = (hold_out(train, fraction, seed)[1] for fraction in sorted((a, b)))
    assert {e.source for e in small} <= {e.source for e in large}


def test_new_examples_do_not_move_old_ones():
    few, more = numbered(500), numbered(1000)
    assert hold_out(few, 0.2, 0)[1] == [e for e in hold_out(more, 0.2, 0)[1] if e in few]


def test_holding_out_takes_about_the_fraction_and_another_seed_takes_others():
    train = numbered(5000)
    first, second = (hold_out(train, 0.1, seed)[1] for seed in (0, 1))
    assert abs(len(first) / 5000 - 0.1) < 0.02
    assert first != second
    assert hold_out(train, 0, 0) == (train, [])


# Checksums and fingerprints


def test_lines_join_tokens_by_spaces_and_source_and_target_by_a_tab():
    assert as_lines([A, D]) == ["a aa\tA ä", "d dd\tD ä"]


def test_a_checksum_is_the_sha256_of_the_sorted_lines():
    assert checksum([B, A, B]) == hashlib.sha256("a aa\tA ä\nb bb\tB ä\nb bb\tB ä".encode()).hexdigest()


@given(EXAMPLES, st.randoms(use_true_random=False))
@quick
def test_a_checksum_ignores_order_but_counts_repeats(examples, random):
    assert checksum(random.sample(examples, len(examples))) == checksum(examples)
    assert checksum([*examples, A]) != checksum([*examples, A, A])


def test_the_same_task_has_the_same_fingerprint():
    assert fingerprint(toy()) == fingerprint(toy())


@pytest.mark.parametrize("split", ["train", "validation", "near", "far"])
@pytest.mark.parametrize("change", [{"source": ("z",)}, {"target": ("Z",)}, {"target": ()}], ids=str)
def test_a_fingerprint_changes_with_the_content_of_any_split(split, change):
    task = toy()
    task.parts[split] = [*task.parts[split][:-1], task.parts[split][-1]._replace(**change)]
    assert fingerprint(task) != fingerprint(toy())


@pytest.mark.parametrize(
    "other",
    [
        Toy(train=[B, A], validation=[C], near=[D], far=[E]),
        Toy(train=[A], validation=[B, C], near=[D], far=[E]),
        Toy(train=[A, B, B], validation=[C], near=[D], far=[E]),
        Toy(train=[A, B], validation=[C], near=[E], far=[D]),
        Toy(train=[A, B], near=[D], validation=[C], far=[E]),
        Toy(train=[A, B], validation=[C], near=[D], further=[E]),
        Toy(train=[A, B], validation=[C], near=[D]),
    ],
    ids=["order", "moved", "repeated", "swapped", "exchanged", "name", "dropped"],
)
def test_a_fingerprint_changes_with_order_and_names(other):
    assert fingerprint(other) != fingerprint(toy())


def test_a_fingerprint_changes_with_the_role_of_a_split(monkeypatch):
    before = fingerprint(toy())
    monkeypatch.setattr(Toy, "splits", lambda _: Splits("train", None, ("validation", "near", "far")))
    assert fingerprint(toy()) != before
