"""Faults of a corpus: counted, left out of train on request, and refused where nothing else would be right."""

import json

import pytest

from tests.tasks.translation_tasks import invented, sources, translation, write
from tfstudy.errors import UserError
from tfstudy.tasks.translation.corpus import Corpus, Languages, Sentences
from tfstudy.tasks.translation.profile import OrderProfile
from tfstudy.tasks.translation.quality import (
    FAULTS,
    check_empty,
    check_order,
    counts,
    faults,
    own_script,
    without_faults,
)

ENGLISH = [
    "the dog sees a small house",
    "this is not the time for it",
    "they have been there with them",
    "what is that",
]
SWAHILI = ["mbwa anaona nyumba ndogo", "huu si wakati wake kabisa", "wamekuwa huko pamoja nao", "hicho ni kitu gani"]
KOREAN = ["개가 작은 집을 본다", "지금은 그럴 때가 아니다", "그들은 거기에 함께 있었다", "저것은 무엇인가"]


def made(targets, size, name=""):
    """`size` pairs of the sentences above, each with a number that makes it unique."""
    return [Sentences(f"{ENGLISH[i % 4]} {name}{i}", f"{targets[i % 4]} {name}{i}") for i in range(size)]


def swapped(pairs):
    return [Sentences(pair.target, pair.source) for pair in pairs]


GOOD = made(SWAHILI, 40)
FAULTY = {
    "empty_side": Sentences("a dog", " "),
    "length_ratio": Sentences("the " * 10, "mbwa"),
    "identical_sides": Sentences("BBC 2009", "BBC 2009"),
    "control_characters": Sentences("the \ufeffdog", "mbwa"),
    "other_script": Sentences("the dog sees a house", "개가 작은 집을 본다"),
    "swapped_sides": swapped(GOOD)[0],
    "duplicate": GOOD[3],
}


def found_in(pairs):
    return faults(pairs, OrderProfile(GOOD))


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_and_only_in_the_pair_that_has_it(name):
    found = found_in([*GOOD, FAULTY[name]])
    assert {fault: list(mask.nonzero()[0]) for fault, mask in found.items() if mask.any()} == {name: [40]}


@pytest.mark.parametrize(
    ("pair", "extreme"),
    [
        (("a b c d e f g h i", "x"), False),
        (("a b c d e f g h i j", "x"), True),
        (("x", "a b c d e f g h i j"), True),
        (("Congratulations!", "おめでとうございます"), False),  # two characters count as a word
        (("dogs", "彼は犬が大好きなんです。" * 2), True),
    ],
)
def test_a_length_ratio_above_nine_is_extreme(pair, extreme):
    assert found_in([Sentences(*pair)])["length_ratio"].tolist() == [extreme]


def test_a_pair_is_left_out_for_its_first_fault_and_sources_with_several_targets_stay():
    several = Sentences(GOOD[0].source, "kitu kingine")
    pairs = [*GOOD, several, Sentences("", ""), Sentences("", ""), FAULTY["duplicate"]]
    kept, left_out = without_faults(pairs, found_in(pairs))
    assert kept == [*GOOD, several]
    assert {name: n for name, n in left_out.items() if n} == {"empty_side": 2, "duplicate": 1}
    assert counts(pairs, found_in(pairs))["sources_with_several_targets"] == 1


def test_an_empty_side_is_an_error_with_its_number_its_place_and_the_option(tmp_path):
    train = [*GOOD[:3], ("a", " "), ("", "b")]
    root = write(tmp_path, train=train, test=invented("test", 3))
    message = r"train\.tsv:4: the target is empty \(2 of 5 pairs of train .*; data\.clean=true leaves them out\)"
    with pytest.raises(UserError, match=message):
        translation(split="corpus", root=root)
    task = translation(split="corpus", root=root, clean=True)
    assert sorted(sources(task)) == sorted(pair.source for pair in GOOD[:3])
    assert task.notes()["left_out"]["empty_side"] == task.notes()["quality"]["train"]["empty_side"] == 2
    assert json.loads(json.dumps(task.notes())) == task.notes()


def test_the_side_and_the_file_of_an_empty_sentence_are_named():
    corpus = Corpus({"train": GOOD, "test": [*GOOD[:2], Sentences("", "b")]}, places={"test": ("t.en:", "t.de:")})
    for clean in (False, True):
        with pytest.raises(UserError, match=r"^t\.en:3: the source is empty \(1 of 3 pairs of test .*only train pairs"):
            check_empty(corpus, clean)


def test_only_train_pairs_are_left_out(tmp_path):
    bad = [FAULTY["identical_sides"], FAULTY["length_ratio"], FAULTY["control_characters"]]
    root = write(tmp_path, train=[*GOOD, *bad], test=[("the new dog", "mbwa mpya"), *bad])
    whole, clean = (translation(split="corpus", root=root, drop_overlap=False, clean=c) for c in (False, True))
    assert len(whole.examples("train")) == 43
    assert sorted(sources(clean)) == sorted(pair.source for pair in GOOD)
    assert clean.examples("test") != []
    assert sources(clean, "test") == sources(whole, "test") == ["the new dog", *(pair.source for pair in bad)]
    assert whole.notes()["quality"] == clean.notes()["quality"]
    assert whole.notes()["left_out"] == {"overlap": 0, "length": 0, "subwords": 0}


def test_swapped_sides_of_one_split_are_refused():
    corpus = Corpus({"train": GOOD, "validation": made(SWAHILI, 20, "d"), "test": swapped(made(SWAHILI, 20, "t"))})
    with pytest.raises(UserError, match=r"^test: source and target look swapped, compared with train \(in 100%"):
        check_order(corpus, OrderProfile(GOOD), Languages())
    corpus.splits["test"] = [*swapped(made(SWAHILI, 5, "t")), *made(SWAHILI, 15, "u")]
    check_order(corpus, OrderProfile(GOOD), Languages())  # some swapped pairs are counted and no error


@pytest.mark.parametrize("train", [[("a b", "c d")], [(a, "c d") for a, _ in GOOD]])
def test_a_corpus_with_hardly_any_text_says_nothing_about_the_order(train):
    pairs = [Sentences(*pair) for pair in train * (40 // len(train))]
    profile = OrderProfile(pairs)
    for test in (GOOD, swapped(GOOD), [Sentences(*pair) for pair in invented("test", 50)]):
        check_order(Corpus({"train": pairs, "test": test}), profile, Languages())


@pytest.mark.parametrize("codes", [("en", "ko"), ("", "ko"), ("en", "kor")])
def test_a_corpus_whose_script_is_that_of_the_other_language_is_refused_with_the_setting(tmp_path, codes):
    settings = {"split": "corpus", "source_language": codes[0], "target_language": codes[1]}
    root = write(tmp_path / "wrong", train=swapped(made(KOREAN, 30)), test=swapped(made(KOREAN, 5, "t")))
    with pytest.raises(UserError, match=r"the sources look like kor? .*HANGUL and LATIN.*: set data\.reverse=true"):
        translation(root=root, **settings)
    assert sources(translation(root=root, reverse=True, **settings), "test")[0].startswith("the dog")
    right = write(tmp_path / "right", train=made(KOREAN, 30), test=made(KOREAN, 5, "t"))
    with pytest.raises(UserError, match=r"set data\.reverse=false"):
        translation(root=right, reverse=True, **settings)


@pytest.mark.parametrize(("code", "script"), [("ja_JP", "CJK"), ("RU", "CYRILLIC"), ("en", ""), ("", "")])
def test_languages_with_a_script_of_their_own_are_known_by_code(code, script):
    assert own_script(code) == script


@pytest.mark.parametrize(
    ("codes", "sides"),
    [(("ja_Latn", "ja"), ("kore wa hon desu", "これは本です")), (("kk", "ru"), ("bul kitap jana", "это новая книга"))],
)
def test_a_language_in_another_script_than_its_usual_one_is_not_swapped(codes, sides):
    corpus = Corpus({"train": [Sentences(*sides)] * 30, "test": [Sentences(*sides)] * 5})
    check_order(corpus, OrderProfile(corpus.splits["train"]), Languages(*codes))


def test_words_of_tibetan_are_not_separated_by_spaces():
    pair = Sentences("this is a sentence of twelve words about a dog that barks", "ཁྱི་ཞིག་གི་སྐོར་ལ་ཚིག་གྲུབ་ཅིག་ཡིན།")
    assert not faults([pair], OrderProfile([pair]))["length_ratio"].any()


def test_a_first_line_with_two_empty_sides_is_no_header(tmp_path):
    root = write(tmp_path, train=[("", ""), *GOOD], test=made(SWAHILI, 5, "t"))
    assert translation(split="corpus", root=root, clean=True).notes()["left_out"]["empty_side"] == 1
