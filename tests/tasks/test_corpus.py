"""Corpora in a folder: every format gives the same pairs, and text stays as it is."""

import csv
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.corpora import (
    EN_DE,
    FORMS,
    PAIRS,
    REAL,
    SPLITS,
    TEST,
    corpus,
    pair,
    write,
)
from tfstudy.errors import UserError
from tfstudy.tasks.translation.corpus import Languages, Sentences
from tfstudy.tasks.translation.folder import from_folder


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_same_pairs(tmp_path, form):
    assert from_folder(corpus(tmp_path, form), EN_DE).splits == SPLITS


@pytest.mark.parametrize("dev", ["dev", "validation", "valid", "val"])
def test_a_validation_split_can_have_any_of_its_names(tmp_path, dev):
    assert from_folder(corpus(tmp_path, dev=dev), Languages()).splits == SPLITS


def test_two_columns_and_source_and_target_need_no_languages(tmp_path):
    for form in ("tsv", "source and target"):
        assert from_folder(corpus(tmp_path / form, form), Languages()).splits == SPLITS


def test_a_validation_split_may_be_missing(tmp_path):
    assert set(from_folder(corpus(tmp_path, splits={"train": PAIRS, "test": TEST}), EN_DE).splits) == {"train", "test"}


def test_formats_can_differ_between_splits(tmp_path):
    files = FORMS["tsv.gz"]("train", PAIRS) | FORMS["parallel"]("test", TEST) | {"README.md": "about", "notes": ""}
    assert from_folder(write(tmp_path, files), EN_DE).splits == {"train": PAIRS, "test": TEST}


def test_every_further_test_file_is_a_split_with_a_name_of_letters_and_digits(tmp_path):
    root = corpus(tmp_path, splits={"train": PAIRS, "test-2017": TEST, "test_coco": TEST, "attest": TEST})
    assert set(from_folder(root, EN_DE).splits) == {"train", "test_2017", "test_coco"}


def test_two_columns_can_be_read_in_reverse(tmp_path):
    found = from_folder(corpus(tmp_path), EN_DE, reverse=True).splits["train"]
    assert found == [Sentences(p.target, p.source) for p in PAIRS]


def test_parallel_files_are_reversed_by_swapping_the_languages(tmp_path):
    root = corpus(tmp_path, "parallel")
    assert from_folder(root, Languages("de", "en")).splits["test"] == [Sentences("zwei", "two")]
    with pytest.raises(UserError, match=r"data\.reverse .*dev\.de, dev\.en: swap data"):
        from_folder(root, EN_DE, reverse=True)


def test_nothing_is_quoted_missing_or_a_number(tmp_path):
    odd = [("NA", "null"), ("", "nan"), ("1.50", "007"), ('a "b', 'c" d'), ("'", '"'), ("# x", "\\N"), ("a,b", "1e3")]
    odd = [(a or "None", b) for a, b in odd]
    root = write(tmp_path, {"train.tsv": "".join(f"{a}\t{b}\n" for a, b in odd), "test.tsv": "a\tb\n"})
    assert from_folder(root, EN_DE).splits["train"] == odd


@given(pairs=st.lists(pair, min_size=1, max_size=5))
@pytest.mark.parametrize("form", ["tsv", "codes", "parallel"])
def test_any_text_is_read_unchanged(tmp_path_factory, form, pairs):
    root = corpus(tmp_path_factory.mktemp("corpus"), form, splits={"train": pairs, "test": TEST})
    assert from_folder(root, EN_DE).splits["train"] == pairs


def test_a_line_of_json_may_hold_line_ends_and_tabs(tmp_path):
    odd = [Sentences("a\nb\tc", "d\r\ne")]
    assert from_folder(corpus(tmp_path, "codes", splits={"train": odd, "test": TEST}), EN_DE).splits["train"] == odd


def test_spaces_around_a_sentence_stay(tmp_path):
    root = write(tmp_path, {"train.tsv": " a \t b \n", "test.tsv": "a\tb\n"})
    assert from_folder(root, EN_DE).splits["train"] == [(" a ", " b ")]


@pytest.mark.parametrize("name", ["multi30k-en-de", "tanaka-en-ja", "globalvoices-en-sw", "umsuka-en-zu"])
def test_real_files_are_read_as_an_unquoting_csv_reader_reads_them(name):
    if not REAL.is_dir():
        pytest.skip("no copy of the corpora beside the repository")
    found = from_folder(str(REAL / name), Languages()).splits
    with gzip.open(REAL / name / "test.tsv.gz", "rt", encoding="utf-8", newline="\n") as lines:
        assert [tuple(row) for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)] == found["test"]
    sizes = {"multi30k-en-de": 29000, "tanaka-en-ja": 50000, "globalvoices-en-sw": 28617, "umsuka-en-zu": 3119}
    assert len(found["train"]) == sizes[name]
