"""The task translation: which pairs are trained on and tested, subwords, scores and trivial systems."""

import json
import random
import re

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests.tasks.corpora import Sentences, columns, embedded, few, invented, root, sources, targets, translation
from tfstudy.data.encoding import UNK, UNKNOWN, TaskEncoder
from tfstudy.errors import UserError
from tfstudy.evaluation.breakdown import summarize_errors
from tfstudy.evaluation.evaluate import Output, summarise_outputs
from tfstudy.runs.schema import Prediction
from tfstudy.tasks.base import fingerprint, overlap
from tfstudy.tasks.translation import synthetic
from tfstudy.tasks.translation import task as task_module
from tfstudy.tasks.translation.subwords import learn
from tfstudy.tasks.translation.task import FAULTS, Pair, Translation, faults

__all__ = ["embedded", "few", "root"]  # fixtures


def test_examples_are_the_sentences_of_the_language(embedded):
    for split in ("train", next(iter(synthetic.TESTS))):
        wanted = {" ".join(p.source): p for p in (synthetic.pair(split, i, 0) for i in range(30))}
        found = [e for e in embedded.examples(split)[:30] if embedded.text(e.source) in wanted]
        assert len(found) > 20
        for example in found:
            sentence = wanted[embedded.text(example.source)]
            assert embedded.text(example.target) == " ".join(sentence.target)
            assert example.tags == sentence.tags


def test_fewer_pairs_are_the_first_of_more_and_another_seed_draws_others(few):
    fewer, more, other = (translation(train_pairs=n, seed=seed) for n, seed in ((100, 0), (200, 0), (100, 1)))
    assert sources(fewer) == sources(more)[:100]
    assert not set(sources(fewer)) & set(sources(other))


def test_sentences_that_no_file_holds_are_of_no_corpus(embedded):
    assert embedded.corpus() == ""


def test_no_sentence_of_another_split_is_trained_on(embedded, few, monkeypatch):
    for split in embedded.splits().held_out:
        assert not {*sources(embedded)} & {*sources(embedded, split)}
        assert not {*targets(embedded)} & {*targets(embedded, split)}
    drawn = synthetic.pair  # every third training sentence is one of the test split
    monkeypatch.setattr(
        synthetic, "pair", lambda split, i, seed: drawn("test" if split == "train" and i % 3 == 0 else split, i, seed)
    )
    task = translation(train_pairs=60)
    assert len(task.examples("train")) == 60
    assert 29 <= task.notes()["left_out"]["overlap"] <= 32  # now and then a short sentence is drawn twice


def test_settings_that_contradict_are_refused():
    for config, message in (
        ({"split": "corpus"}, "exactly one of data.root (a folder of files) and data.hub (an id)"),
        ({"root": "x", "revision": "y"}, "data.revision cannot be set with data.root"),
        ({"clean": True}, "data.clean can only be set with --split corpus"),
        ({"subword_vocab_size": 300, "tokens": "words"}, "can only be set with data.tokens=subwords"),
        (
            {"target_language": "de", "tokens": "words"},
            "data.target_language can only be set with data.tokens=subwords",
        ),
        ({"subword_vocab_size": 255}, "data.subword_vocab_size must be -1 or at least 256 (all bytes), but is 255"),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            translation(**config)


# A corpus


def test_a_corpus_is_its_text_and_subsets_are_nested_and_do_not_depend_on_the_order(tmp_path, root):
    pairs = invented("train", 300)
    whole, large = translation(root), translation(root, train_pairs=100)
    assert sorted(zip(sources(whole), targets(whole), strict=True)) == sorted(pairs)
    for split, name, n in (("validation", "dev", 20), ("test", "test", 30)):
        assert [*zip(sources(whole, split), targets(whole, split), strict=True)] == invented(name, n)
    assert [e.tags for e in whole.examples("test")] == [{"length": len(a.split())} for a, _ in invented("test", 30)]
    other = columns(tmp_path / "other", train=pairs[::-1], dev=invented("dev", 20), test=invented("test", 30))
    small = translation(other, train_pairs=40)
    assert sources(small) == sources(large)[:40] == sources(whole)[:40] != [a for a, _ in pairs[:40]]
    assert sources(translation(root, train_pairs=40, seed=1)) != sources(small)
    assert fingerprint(small) == fingerprint(translation(root, train_pairs=40))
    assert json.loads(json.dumps(whole.notes())) == whole.notes()


def test_training_pairs_that_leak_are_dropped_counted_and_announced(tmp_path):
    train = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5")]
    root = columns(tmp_path, train=train, dev=[("b", "x")], test=[("y", "3"), ("d", "4")])
    task = translation(root)
    assert sorted(sources(task)) == ["a", "e"]
    assert task.notes()["left_out"] == {"overlap": 2, "overlap_target": 1, "length": 0, "subwords": 0}
    assert task.remarks()[1].endswith(
        "train: 2 with a source that is also in another split, 1 with a target that is also in another split"
    )
    assert overlap(task) == {"validation": 0, "test": 0}
    message = r"^2 of 5 train pairs are left, too few for data\.train_pairs=3 \(left out: 2 with a source .*\)$"
    with pytest.raises(UserError, match=message):
        translation(root, train_pairs=3)
    root = columns(tmp_path / "none", train=[("a", "b")], test=[("a", "c")])
    with pytest.raises(UserError, match=r"^0 of 1 train pairs are left, too few \(left out: 1 with a source"):
        translation(root)


def test_only_train_pairs_with_a_fault_are_left_out_each_for_its_first(tmp_path):
    good = [("a dog", "mbwa"), ("a dog", "hao"), ("a b c d e f g h i", "x"), ("a cat", "paka")]
    faulty = [("a dog", " "), ("the " * 10, "mbwa"), ("BBC 2009", "BBC 2009"), ("a dog", "mbwa")]  # one for each fault
    pairs = [Sentences(*p) for p in [*good, *faulty, ("", "")]]
    assert [name for name in faults([Pair(*p, {}) for p in pairs]) if name] == [*FAULTS, "empty_side"]
    japanese = [Sentences("Congratulations!", "おめでとうございます"), Sentences("x", "彼は犬が大好きなんです。" * 2)]
    assert list(faults([Pair(*p, {}) for p in japanese])) == ["", "length_ratio"], "two characters are a word"
    test = [("the new dog", "mbwa mpya"), ("CNN 7", "CNN 7"), ("an " * 10, "kiti")]
    root = columns(tmp_path, train=pairs, test=test)
    message = r"train\.tsv:5: the target is empty \(2 of 9 pairs of train .*; data\.clean=true leaves them out\)"
    with pytest.raises(UserError, match=message):
        translation(root)
    task = translation(root, clean=True)
    assert sorted(zip(sources(task), targets(task), strict=True)) == sorted(good)
    assert [*zip(sources(task, "test"), targets(task, "test"), strict=True)] == test
    none = {"overlap": 0, "overlap_target": 0, "length": 0, "subwords": 0}
    assert task.notes()["left_out"] == {**dict.fromkeys(FAULTS, 1), "empty_side": 2, **none}
    twice = translation(columns(tmp_path / "twice", train=[*good, good[0]], test=[("x y", "z")]))
    repeated = "1 that occurred before (first in line 5); data.clean=true leaves them out"
    assert twice.remarks()[1] == f"faults in the train pairs of the corpus: {repeated}"
    root = columns(tmp_path, train=good, test=[*test, ("", "b")])
    with pytest.raises(UserError, match=r"test\.tsv:4: the source is empty \(1 of 4 pairs of test .*only train pairs"):
        translation(root, clean=True)


def test_pairs_of_too_many_subwords_are_dropped_only_from_train(tmp_path, monkeypatch):
    monkeypatch.setattr(task_module, "MAX_SUBWORDS", 6)
    root = columns(tmp_path, train=[("a", "b"), ("abcdefgh", "b"), ("a", "bcdefgh")], test=[("bcdefghi", "cdefghi")])
    task = translation(root, subword_vocab_size=256)
    assert (sources(task), len(task.examples("test"))) == (["a"], 1)
    assert task.notes()["left_out"] == {"overlap": 0, "overlap_target": 0, "length": 0, "subwords": 2}
    assert task.remarks()[0] == "train has 2 target tokens, for which --preset small is meant"
    monkeypatch.setattr(task_module, "PRESETS", ((1, "small"), (2, "medium")))
    assert "--preset medium" in task.remarks()[0]
    monkeypatch.setattr(task_module, "MAX_EVALUATED", 96)
    for train, test, message in (
        ("a" * 9, "c", r"no train pair is left: all have more than 6 subwords"),
        ("a", "a" * 200, r"^test: at most 96 subwords can be translated, but a sentence has 201: 'aaa"),
    ):
        with pytest.raises(UserError, match=message):
            translation(columns(tmp_path, train=[(train, "b")], test=[(test, "c")]), subword_vocab_size=256)


def test_a_corpus_has_tests_of_length_that_do_not_depend_on_the_subset(root):
    few, every = (translation(root, max_train_length=4, train_pairs=pairs) for pairs in (20, 0))
    assert few.splits() == every.splits()
    assert all(sources(few, split) == sources(every, split) for split in few.splits().held_out)
    for split, least, most in (("train", 1, 4), ("test_1_5x", 5, 6), ("test_2x", 7, 8), ("test_4x", 9, 16)):
        assert all(least <= len(s.split()) <= most for s in sources(few, split)), split
    longer = {a for a, _ in invented("train", 300) if 4 < len(a.split()) <= 16}
    assert longer <= {s for name in ("test_1_5x", "test_2x", "test_4x") for s in sources(few, name)}
    assert len(every.examples("train")) + every.notes()["left_out"]["length"] == 300


# Subwords

TEXTS = [
    " ".join(random.Random(i).choices(["ab", "abc", "bcd", "naïve", "dog", "dogs", "犬", "'ll", "12", "."], k=9))
    for i in range(80)
]
ODD = ["", " ", "  a b ", "a\n\tb", "\u2028", "\ufeffa", "e\u0301 é", "<unk> <pad>", "\x00", "👩‍👩‍👧", "ж"]


@given(st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"])))
def test_subwords_restore_any_text(text):
    subwords = learn(TEXTS, 300)
    [tokens] = subwords.encode([text])
    assert subwords.decode(tokens) == text
    assert set(tokens) <= {*subwords.pieces}
    assert not any(character.isspace() for token in tokens for character in token)


def test_merges_are_those_of_the_most_frequent_neighbours_at_all_positions_of_a_sentence():
    subwords = learn(["ab ab ab abc abc cab"], 256 + 3)
    assert {*subwords.pieces} - {*learn(["abc xyz"], 1000).pieces} == {"ab", "Ġab", "Ġabc"}
    assert learn(TEXTS, 300).tokenizer.to_str() == learn(TEXTS[::-1], 300).tokenizer.to_str(), "in any order"
    assert subwords.encode(["ab abc xy ab"]) == [("Ġab", "Ġabc", "Ġ", "x", "y", "Ġab")]
    assert subwords.decode(("Ġa", "Ã", "<unk>")) == "a\ufffd<unk>", "bytes that form no character are shown"


def test_what_a_run_keeps_of_its_corpus_suffices_to_translate(root):
    task = translation(root, subword_vocab_size=300)
    again = Translation.restored(task.config, task.files())
    source, target = task.vocabulary()
    assert source == target == again.vocabulary()[1]
    assert all({*e.source, *e.target} <= source for split in task.splits().all for e in task.examples(split))
    kept = Tokenizer.from_str(task.files()["tokenizer.json"])
    assert tuple(kept.encode(" Ünseen  text").tokens) == task.tokens(" Ünseen  text")
    assert again.tokens("an old dog") == task.tokens("an old dog")
    assert again.text(task.tokens("an old dog")) == "an old dog"
    assert [*map(again.readable, learn(["naïve naïve"], 300).encode(["naïve 犬"])[0])] == ["▁naïve", "▁", *["�"] * 3]
    assert Translation.restored(task.config, {}) is None


def test_words_are_what_spaces_separate_and_rare_ones_are_unknown(tmp_path):
    pairs = [("ein hund bellt", "a dog barks"), ("ein hund schläft", "a  dog sleeps"), ("kein hund", "no dog in a")]
    task = translation(columns(tmp_path, train=pairs, test=[("ein hund singt", "a dog barks .")]), tokens="words")
    assert task.vocabulary() == ({"ein", "hund"}, {"a", "dog"}), "those that occur twice on their side"
    [example] = task.examples("test")
    assert (example.source, example.target) == (("ein", "hund", "singt"), ("a", "dog", "barks", "."))
    assert TaskEncoder(task).target_vocab.encode(example.target).count(UNK) == 2
    scores = task.score([("a", "dog", UNKNOWN, UNKNOWN)], [example])  # the reference keeps its rare words
    assert scores["bleu"] == pytest.approx(
        sacrebleu.corpus_bleu([f"a dog {UNKNOWN} {UNKNOWN}"], [["a dog barks ."]]).score / 100
    )
    assert scores["token_accuracy"] == 0.5
    assert "tok:none" in task.signatures()["bleu"]
    with pytest.raises(UserError, match="no word occurs twice on its side"):
        translation(columns(tmp_path / "rare", train=[("ein hund hund", "a dog")], test=[("ein", "a")]), tokens="words")
    again = Translation.restored(task.config, task.files())
    assert again.vocabulary() == task.vocabulary()
    assert again.text(again.tokens("ein  hund")) == "ein hund"


# BLEU, chrF and exact match


def scored(root, predictions, **config):
    task = translation(root, **config)
    return task.score([task.tokens(p) for p in predictions], task.examples("test"))


def test_scores_are_those_of_sacrebleu_on_the_raw_text(tmp_path, caplog):
    gold = ["Der Hund, der bellt, schläft.", "Zwei Katzen (grau) spielen!", "Ein Haus am See ist groß."]
    guess = ["Der Hund der schläft, bellt.", "Zwei Katzen spielen!", "Ein Haus am großen See."]
    root = columns(tmp_path, train=[("a dog", "ein Hund")], test=[(f"s{i}", g) for i, g in enumerate(gold)])
    for language, tokenize in (("de", "13a"), ("ZH_tw", "zh")):
        scores = scored(root, guess, target_language=language)
        assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(guess, [gold], tokenize=tokenize).score / 100)
        assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(guess, [gold]).score / 100)
        assert scores["exact_match"] == 0
    assert translation(root).signatures() == {
        "bleu": f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}",
        "chrf": f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{sacrebleu.__version__}",
    }
    tokenised = columns(tmp_path, train=[("a", "b")], test=[(f"a {i}", f"b b {i} b .") for i in range(120)])
    assert scored(tokenised, [f"b b {i} b ." for i in range(120)])["bleu"] == 1.0
    assert caplog.records == [], "tokenised text is scored without warnings"


def test_correct_translations_score_exactly_one_and_empty_ones_zero(root, embedded):
    for task in (translation(root), embedded):
        examples = task.examples("test")[:30]
        scores = task.score([e.target for e in examples], examples)
        assert [scores[name] for name in ("bleu", "chrf", "exact_match", "token_accuracy")] == [1.0] * 4
        assert set(task.score([()] * len(examples), examples).values()) == {0.0}
        assert all(value != value for value in list(task.score([], []).values())[:4])


@pytest.mark.parametrize(("gold", "made"), [("彼女 は 医者 です 。", "彼女は 医者 です 。"), ("ein  Hund", "ein Hund")])
def test_all_scores_agree_on_what_is_right(tmp_path, gold, made):
    """Exact match, exact match at the oracle length, and the counts of errors."""
    root = columns(tmp_path, train=[("a", f"{gold} {gold}")], test=[("she", gold)])
    task = translation(root, target_language="ja" if "彼" in gold else "de")
    output = Output(task.target_tokens(made), task.target_tokens(made), 1.0, False)
    found = summarise_outputs(task, task.examples("test"), [output])["metrics"]
    assert (found["exact_match"], found["oracle_length_exact_match"]) == (1, 1)
    prediction = Prediction("she", gold, made)
    assert list(summarize_errors([prediction])) == ["correct"]


def test_japanese_is_scored_by_character_without_spaces(tmp_path):
    test = [("i like dogs", "私 は 犬 が 好き です 。"), ("he runs", "彼 は 走 る 。")]
    root = columns(tmp_path, train=[("a dog", "犬")], test=test)
    guess, gold = ["私は猫が好きです。", "彼は走る。"], [t.replace(" ", "") for _, t in test]
    wanted = sacrebleu.corpus_bleu(guess, [gold], tokenize="char").score / 100
    scores = scored(root, ["私は犬が好きです。", "彼 は 走る。"])
    assert (scores["bleu"], scores["chrf"], scores["exact_match"]) == (1.0, 1.0, 1.0)
    assert scored(root, guess)["bleu"] == pytest.approx(wanted)
    assert "tok:char" in translation(root).signatures()["bleu"], "by the script"


def test_the_baseline_copies_the_source_and_exact_match_compares_the_text(tmp_path):
    task = translation(columns(tmp_path, train=[("das Haus", "the house")], test=[("ein  Haus, 7", "a  house, 7")]))
    [copied] = task.baselines("test")["copy"]
    assert task.text(copied) == "ein  Haus, 7"
    assert {*copied} <= task.vocabulary()[1]
    example = task.examples("test")[0]
    scores = task.score([learn([], 256).encode([task.text(example.target)])[0]], [example])
    assert scores["exact_match"] == 1.0
    assert scores["token_accuracy"] < 1.0, "other subwords of the same text"
