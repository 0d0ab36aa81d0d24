"""What a run says of its corpus before it trains."""

import re
import unicodedata

import pytest

from tests.tasks.translation_tasks import invented, translation, write
from tfstudy.errors import UserError

TRAIN = invented("train", 300)
LONG = ("far " * 300, "weit " * 300)


def remarks(folder, train=(), **config):
    root = write(folder, train=[*TRAIN, *train], dev=invented("dev", 20), test=invented("test", 30))
    return list(translation(split="corpus", root=root, subword_vocab_size=320, **config).remarks())


def test_a_corpus_without_faults_and_languages_of_their_own_say_nothing(tmp_path):
    assert remarks(tmp_path / "set") == []
    assert list(translation(train_pairs=100).remarks()) == []


def test_pairs_that_were_left_out_and_faults_are_counted(tmp_path):
    [left_out, faults] = remarks(tmp_path / "set", [LONG, TRAIN[0], ("same", "same"), invented("test", 1)[0]])
    assert "1 with more than 256 subwords" in left_out
    assert "1 with a side that is also in another split" in left_out
    assert "1 with identical sides, 1 that occurred before; data.clean=true" in faults


def test_cleaned_pairs_are_counted_once_as_left_out(tmp_path):
    [left_out] = remarks(tmp_path / "set", [TRAIN[0], ("same", "same")], clean=True)
    assert "1 with identical sides, 1 that occurred before" in left_out


def test_held_out_pairs_that_a_maximum_length_leaves_in_no_split_are_counted(tmp_path):
    dev, test = [("a b", "x"), ("a b c d e", "y")], [("a c", "x2"), ("b " * 6, "y2"), ("b " * 9, "z2"), LONG]
    root = write(tmp_path / "set", train=[("a a", "w"), ("b a", "v")], dev=dev, test=test)
    task = translation(split="corpus", root=root, subword_vocab_size=256, max_train_length=2)
    lines = [line for line in task.remarks() if "no split" in line]
    assert lines == ["in no split because of data.max_train_length=2: 1 of validation, 2 of test"]


def test_copies_in_a_subset_are_counted_and_cleaned_away(tmp_path):
    for pairs, warned in ((0, False), (50, True)):
        lines = remarks(tmp_path / "set", [TRAIN[i] for i in range(300) for _ in range(4)], train_pairs=pairs)
        assert [line for line in lines if "copies" in line] == [
            "WARNING: only 10 of the 50 train pairs differ, since all copies of a pair are in the same subsets; "
            "data.clean=true leaves copies out"
        ] * warned
    assert not [line for line in remarks(tmp_path / "set", TRAIN * 4, train_pairs=50, clean=True) if "copies" in line]


def test_splits_with_other_normal_forms_are_a_warning(tmp_path):
    accented = [(f"{a} é", f"{b} ü") for a, b in TRAIN]
    decomposed = [tuple(unicodedata.normalize("NFD", text) for text in pair) for pair in accented]
    for name, train, test in (("mixed", decomposed, accented), ("same", decomposed, decomposed)):
        root = write(tmp_path / name, train=train[:280], test=test[280:])
        lines = translation(split="corpus", root=root, subword_vocab_size=320).remarks()
        found = [line for line in lines if "composed" in line]
        assert len(found) == (name == "mixed")
        assert all(line.endswith("not composed are 100% of train, 0% of test") for line in found)


def test_held_out_pairs_that_are_longer_than_any_in_train_are_counted(tmp_path):
    root = write(tmp_path / "set", train=TRAIN, dev=invented("dev", 20), test=[*invented("test", 30), LONG])
    [line] = translation(split="corpus", root=root, subword_vocab_size=320).remarks()
    assert re.fullmatch(r"kept in .*: 1 with more than 256 subwords on a side, at most [\d,]+", line)


def test_a_held_out_sentence_that_nothing_could_translate_is_refused(tmp_path):
    endless = ("far " * 9000, "weit")
    root = write(tmp_path / "set", train=TRAIN, dev=invented("dev", 20), test=[*invented("test", 30), endless])
    with pytest.raises(UserError, match=r"test: a source has [\d,]+ subwords, of which at most 8,192 .*'far far"):
        translation(split="corpus", root=root, subword_vocab_size=320)


@pytest.mark.parametrize(
    ("files", "named", "line"),
    [
        (["dev2.en", "test2.de", "devel.tsv"], False, "dev2.en, devel.tsv, test2.de; parallel files need"),
        (["test3.fr", "test.2016.tsv", "TEST2.tsv"], True, "TEST2.tsv, test.2016.tsv"),
        (["notes.txt"], True, ""),
    ],
)
def test_files_that_look_like_those_of_a_split_but_are_not_read_are_named(tmp_path, files, named, line):
    root = write(tmp_path / "set", train=TRAIN, dev=invented("dev", 20), test=invented("test", 30))
    for name in files:
        (tmp_path / "set" / name).write_text("a\tb\n")
    codes = {"source_language": "en", "target_language": "de"} if named else {}
    found = list(translation(split="corpus", root=root, subword_vocab_size=320, **codes).remarks())
    assert (len(found), found[0].startswith(f"WARNING: not read: {line}") if found else True) == (bool(line), True)


@pytest.mark.parametrize(("side", "name"), [(0, "sources"), (1, "targets")])
def test_a_side_that_is_all_the_same_is_a_warning(tmp_path, side, name):
    train = [("the same", pair[1 - side]) for pair in TRAIN]
    root = write(tmp_path, train=[pair if side == 0 else pair[::-1] for pair in train], test=invented("test", 30))
    lines = translation(split="corpus", root=root, subword_vocab_size=320).remarks()
    assert f"WARNING: all 300 train {name} are the same" in lines


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ({"target_language": "de"}, ""),
        ({"source_language": "en", "target_language": "de"}, ""),
        ({"source_language": "de", "target_language": "en"}, "data.source_language=de and data.target_language=en"),
        ({"source_language": "de", "target_language": "en", "reverse": True}, ""),
        ({"target_language": "fr"}, "data.target_language=fr"),
    ],
)
def test_languages_that_the_name_of_the_folder_contradicts_are_a_warning(tmp_path, config, wrong):
    lines = remarks(tmp_path / "toy-en-de", **config)
    assert lines == ([f"WARNING: by its name toy-en-de is en to de, but {wrong}"] if wrong else [])


@pytest.mark.parametrize("config", [{"target_language": "de"}, {"source_language": "en", "target_language": "de"}])
def test_a_name_of_other_words_says_nothing(tmp_path, config):
    assert remarks(tmp_path / "big-set", **config) == []


def test_the_name_of_a_folder_says_nothing_of_files_that_the_languages_select(tmp_path):
    folder = tmp_path / "toy-en-de"
    folder.mkdir()
    for name, pairs in {"train": TRAIN, "dev": invented("dev", 20), "test": invented("test", 30)}.items():
        for side, code in enumerate(("en", "de")):
            (folder / f"{name}.{code}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    languages = {"source_language": "de", "target_language": "en"}
    assert list(translation(split="corpus", root=str(folder), subword_vocab_size=320, **languages).remarks()) == []
