"""Scores of translations by words: what is repeated, memorised, invented and copied."""

import pytest

from tests.tasks.translation_tasks import translation, write
from tfstudy.tasks.translation.words import SCORES, Seen, Translated, word_scores, words

NOTHING = Seen(set(), set())


def test_words_are_without_the_punctuation_around_them():
    assert list(words("Er sagte: „Ja!“ - (der E-Mail-Nutzer) zahlt 1,5 € ...")) == [
        "Er", "sagte", "Ja", "der", "E-Mail-Nutzer", "zahlt", "1,5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("prediction", "target", "without"),
    [
        ("a b c a b c", "x", 0),
        ("a b c, A B C!", "x", 0),
        ("a b a b", "x", 1),
        ("a a a", "x", 1),
        ("a a a a", "x", 0),
        ("a b c a b c", "a b c d a b c", 1),
        ("a b c a b c a b c", "a b c d a b c", 0),
    ],
)
def test_a_repetition_is_a_phrase_of_three_words_more_often_than_in_the_target(prediction, target, without):
    assert word_scores([Translated("s", prediction, target)], NOTHING, 6)["no_repetition"] == without


def test_an_output_is_memorised_if_it_is_the_target_of_another_train_pair_word_for_word():
    seen = Seen(set(), {"ein hund .", "eine katze ."})
    for prediction, target, without in (
        ("Ein Hund .", "Ein Haus .", 0),
        ("Ein Hund .", "ein Hund .", 1),
        ("Ein Hund", "Ein Haus .", 1),
        ("Ein Hund . Eine Katze .", "Ein Haus .", 1),
    ):
        assert word_scores([Translated("s", prediction, target)], seen, 6)["no_memorisation"] == without


def test_known_words_are_those_of_train_of_the_source_and_of_the_target():
    scores = word_scores(
        [Translated("Mibir sleeps", "mibir the invented Right", "right there")], Seen({"the"}, set()), 6
    )
    assert scores["known_words"] == 3 / 4


def test_copies_are_words_of_source_and_target_and_long_words_those_of_the_target():
    sentences = [
        Translated("Paris and 12 Ozbek", "12 ozbek Sommer", "Paris und 12 Özbek, Sommer Sommer winters"),
        Translated("x", "y", "z"),
    ]
    scores = word_scores(sentences, NOTHING, 6)
    assert scores["copy_recall"] == 1 / 2, "of Paris and 12"
    assert scores["long_word_recall"] == 2 / 3, "of Sommer, Sommer and winters"


def test_scores_without_cases_are_left_out():
    assert word_scores([], NOTHING, 6) == word_scores([Translated("a", "", "b")], NOTHING, 6) == {}
    assert word_scores([Translated("a", "", "a longer")], NOTHING, 6) == {"copy_recall": 0, "long_word_recall": 0}


def test_a_corpus_is_scored_by_words_with_the_words_of_all_its_train_pairs(tmp_path):
    train = [("a dog", "ein Hund"), ("a cat", "eine Katze"), ("two cats", "zwei Katzen")]
    root = write(tmp_path, train=train, test=[("Basat sees two dogs", "Basat sieht wahrscheinlich zwei Hunde")])
    scores = {}
    for pairs in (1, 3):
        task = translation(split="corpus", root=root, train_pairs=pairs)
        prediction = task.target_tokens("Basat Hund Katzen Hundkatzen wahrscheinlich")
        found = task.score([prediction], task.examples("test"))
        scores[pairs] = {name: found[name] for name in SCORES}
    assert scores[1] == scores[3], "the words of pairs that it was not trained on are known too"
    others = {"known_words": 4 / 5, "copy_recall": 1, "long_word_recall": 1}
    assert scores[1] == {"no_repetition": 1, "no_memorisation": 1} | others


def test_only_what_a_network_was_trained_on_is_memorised(tmp_path):
    targets = ["ein Hund", "eine Katze", "zwei Katzen"]
    root = write(tmp_path, train=list(zip("abc", targets, strict=True)), test=[("d", "zwei Hunde")])
    task = translation(split="corpus", root=root, train_pairs=1)
    [trained], [tested] = task.examples("train"), task.examples("test")
    assert task.score([trained.target] * 2, [tested, trained])["no_memorisation"] == 1 / 2, "its own is translated"
    unseen = [task.target_tokens(text) for text in targets if text != task.text(trained.target)]
    assert task.score(unseen, [tested] * 2)["no_memorisation"] == 1


@pytest.mark.parametrize("language", ["ja", "zh_CN", "cmn", "th_TH"])
@pytest.mark.parametrize(("space", "scored"), [(" ", True), ("", False)])
def test_words_of_a_language_without_spaces_are_scored_if_its_corpus_separates_them(tmp_path, language, space, scored):
    train = [
        ("a dog", f"犬{space}好的"),
        ("no dog", f"犬{space}心"),
        ("iPhone 5", "我 的 iPhone"),
    ]
    root = write(tmp_path, train=train, test=[("a cat", space.join(["猫", "好的", "人", "心"]))])
    task = translation(split="corpus", root=root, target_language=language)
    examples = task.examples("test")
    scores = task.score([examples[0].target], examples)
    expected = {"no_repetition", "no_memorisation", "known_words", "long_word_recall"}
    assert set(SCORES) & set(scores) == (expected if scored else set())
    assert scores.get("long_word_recall", 1) == 1, "words of two characters are long"
    assert scores["bleu"] == 1, "of characters"


def test_the_synthetic_languages_have_scores_of_their_own(embedded):
    examples = embedded.examples("test")[:5]
    assert not set(SCORES) & set(embedded.score([e.target for e in examples], examples))
