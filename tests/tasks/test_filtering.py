"""Subsets of a corpus, overlap between splits, and splits by length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.corpora import EN_DE, PAIRS, REAL, TEST, pair, write
from tfstudy.errors import UserError
from tfstudy.tasks.translation.corpus import Languages, Sentences, lowercased, shuffled
from tfstudy.tasks.translation.filtering import TrainFilter, overlaps, row_of, split_by_length
from tfstudy.tasks.translation.folder import from_folder

alike = st.builds(Sentences, st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh"))


# Subsets and overlap


@given(pairs=st.lists(pair, max_size=8), data=st.data())
def test_the_order_of_a_subset_does_not_depend_on_the_order_of_the_file(pairs, data):
    assert shuffled(data.draw(st.permutations(pairs)), 3) == shuffled(pairs, 3)
    assert sorted(shuffled(pairs, 3)) == sorted(pairs)


@given(pairs=st.lists(pair, min_size=2, max_size=8, unique=True))
def test_removing_a_pair_keeps_the_order_of_the_others(pairs):
    assert [p for p in shuffled(pairs, 0) if p != pairs[0]] == shuffled(pairs[1:], 0)


def test_a_subset_is_a_sample_of_all_parts_of_a_file():
    pairs = [Sentences(f"part {i // 250}", f"{i}") for i in range(1000)]  # of four origins, one after the other
    for seed in range(3):
        origins = [p.source for p in shuffled(pairs, seed)[:200]]
        assert all(30 < origins.count(f"part {n}") < 70 for n in range(4))  # 50 +- 3 standard deviations


def test_another_subset_seed_draws_other_pairs():
    pairs = [Sentences(f"a{i}", f"b{i}") for i in range(1000)]
    shared = set(shuffled(pairs, 0)[:100]) & set(shuffled(pairs, 1)[:100])
    assert len(shared) < 30  # 10 if the two are independent


def rows(text):
    return [row_of(Sentences(*words.split("/"))) for words in text.split()]


def test_overlap_counts_held_out_pairs_by_source_by_target_and_by_both():
    held_out = {"validation": rows("a/9 a/1 a/1"), "test": rows("b/1 8/2 c/c a/2 3/c")}
    assert overlaps(rows("a/1 b/2 c/3 c/3"), held_out) == {
        "validation": {"sources": 3, "targets": 2, "pairs": 2},
        "test": {"sources": 3, "targets": 3, "pairs": 0},
    }


@given(st.lists(alike, max_size=12), st.lists(alike, max_size=5))
def test_no_held_out_source_or_target_occurs_in_train(train, held_out):
    sieve = TrainFilter({"test": map(row_of, held_out)}, 0)
    kept = [row.pair for row in sieve.keep(map(row_of, train))]
    assert kept == [a for a in train if not any(a.source == b.source or a.target == b.target for b in held_out)]
    assert sieve.left_out == {"overlap": len(train) - len(kept), "length": 0}


def test_overlap_of_a_leaking_corpus_is_counted_and_removed():
    train = rows(" ".join(f"s{i}/t{i}" for i in range(400)))
    leaky = {"test": rows(" ".join(f"s{i}/{'t' if i < 324 else 'u'}{i}" for i in range(300, 1298)))}
    assert overlaps(train, leaky) == {"test": {"sources": 100, "targets": 24, "pairs": 24}}
    kept = list(TrainFilter(leaky, 0).keep(train))
    assert len(kept) == 300
    assert overlaps(kept, leaky) == {"test": {"sources": 0, "targets": 0, "pairs": 0}}


REAL_OVERLAP = {  # as the corpora's own notes give it: sources and targets of dev and of test that stand in train
    "umsuka-en-zu": ((0, 0), (0, 0)),  # upstream 381 of 998 test sources do
    "tanaka-en-ja": ((77, 0), (60, 0)),
    "multi30k-en-de": ((1, 1), (0, 0)),
}


@pytest.mark.parametrize("name", REAL_OVERLAP)
def test_the_overlap_of_real_corpora_is_as_their_notes_say(name):
    if not REAL.is_dir():
        pytest.skip("no copy of the corpora beside the repository")
    found = {
        split: list(map(row_of, pairs)) for split, pairs in from_folder(str(REAL / name), Languages()).splits.items()
    }
    counts = overlaps(found["train"], {split: found[split] for split in ("validation", "test")})
    assert tuple((count["sources"], count["targets"]) for count in counts.values()) == REAL_OVERLAP[name]


# Length


def test_longer_sources_form_test_splits_by_relative_length():
    def of(*lengths):
        return [row_of(Sentences(" ".join("x" * n), f"{n}")) for n in lengths]

    held_out = {"validation": of(1, 4, 5), "test": of(2, 4, 5, 6, 7, 8), "test2017": of(1, 9)}
    found = split_by_length(held_out, 4, [*of(6), *of(16, 17, 10)], [])
    assert {name: [row.length for row in split] for name, split in found.items()} == {
        "validation": [1, 4], "test": [2, 4], "test2017": [1, 9],
        "test_1_5x": [5, 6], "test_2x": [7, 8], "test_4x": [16, 10],
    }  # fmt: skip
    assert split_by_length(held_out, 0, of(9), []) == held_out
    assert set(split_by_length({"test": of(5)}, 4, [], [])) == {"test_1_5x"}
    with pytest.raises(UserError, match=r"data\.max_train_length=8: no source"):
        split_by_length(held_out, 8, [], [])
    with pytest.raises(UserError, match=r"data\.max_train_length adds a split 'test_2x'"):
        split_by_length({"test_2x": of(5)}, 4, [], [])


def test_no_longer_test_pair_has_a_target_of_train():
    def row(source, target):
        return row_of(Sentences(source, target))

    longer = [row("a b c", "one"), row("a b d", "two"), row("a b d", "two")]
    found = split_by_length({"test": [row("x", "y")]}, 2, longer, [row("a", "one")])
    assert [r.pair.target for r in found["test_1_5x"]] == ["two"]


def test_a_train_filter_collects_long_sources():
    sieve = TrainFilter({"test": [row_of(Sentences("d", "d"))]}, 1)
    assert [row.pair.source for row in sieve.keep(map(row_of, [*PAIRS, *TEST, Sentences("d", "e")]))] == ["two"]
    assert [row.pair for row in sieve.longer] == PAIRS
    assert sieve.left_out == {"overlap": 1, "length": 3}


def test_words_are_separated_by_white_space():
    assert row_of(Sentences("a  b\u00a0c.", "x"), {"kind": "odd"}).tags == {"kind": "odd", "length": 3}


def test_lower_case_is_all_text_of_all_splits(tmp_path):
    root = write(tmp_path, {"train.tsv": "A\tÄB\n", "test.tsv": "C\tD\n"})
    assert lowercased(from_folder(root, EN_DE)).splits == {"train": [("a", "äb")], "test": [("c", "d")]}
