"""Translation: subwords that lose nothing, subsets, scores of text, the embedded pair and corpora as a task."""

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import datasets
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

import tasks
from tasks.base import fingerprint, overlap, to_datasets
from tasks.errors import UserError
from tasks.translation import synthetic
from tasks.translation.corpus import Sentences
from tasks.translation.subwords import Words, coders, learn, size_for
from tasks.translation.task import Translation

HERE = Path(__file__).resolve().parents[2]
REAL = HERE.parent / "shared" / "data" / "translation"  # corpora as two-column files, where there is a copy
TEXTS = [
    " ".join(random.Random(i).choices(["ab", "abc", "bcd", "naïve", "dog", "dogs", "犬", "'ll", "12", "."], k=9))
    for i in range(80)
]

text = st.text(st.characters(exclude_categories=["Cs"]))


def translation(**config):
    return Translation(Translation.Config(**config))


def write(folder, **splits):
    """A folder of two-column files."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in splits.items():
        (folder / f"{split}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return str(folder)


def invented(name, n):
    """`n` pairs of short sentences, of which none occurs twice."""
    draw = random.Random(name)
    words = ["red", "blue", "old", "young", "dog", "cat", "bird", "tree", "sees", "likes", "finds", "near", "under"]
    return [
        (
            f"{' '.join(draw.choices(words, k=draw.randint(2, 9)))} {name}{i}",
            f"{name}{i} {' '.join(draw.choices(words, k=4))[::-1]}",
        )
        for i in range(n)
    ]


@pytest.fixture
def root(tmp_path):
    return write(tmp_path / "set", train=invented("train", 300), dev=invented("dev", 20), test=invented("test", 30))


@pytest.fixture(scope="module")
def embedded():
    """The embedded pair with few pairs to train on."""
    return translation(train_pairs=400)


@pytest.fixture
def few(monkeypatch):
    """Small held-out splits of the embedded pair, which take most of its time."""
    monkeypatch.setattr("tasks.translation.task.DRAWN", {"validation": 30, "test": 100})
    monkeypatch.setattr("tasks.translation.task.FEW", 10)


def sources(task, split="train"):
    return [task.text(e.source) for e in task.examples(split)]


def targets(task, split="train"):
    return [task.text(e.target) for e in task.examples(split)]


# Subwords


@given(text)
def test_text_comes_back_from_subwords_as_it_was(given_text):
    subwords = learn(TEXTS, 300)
    [tokens] = subwords.encode([given_text])
    assert subwords.decode(tokens) == given_text
    assert set(tokens) <= subwords.vocabulary()
    assert not any(character.isspace() for token in tokens for character in token)


@pytest.mark.parametrize(
    "odd", ["", " ", "  a b ", "a\n\tb", "\u2028", "\ufeffa", "e\u0301 é", "<unk> <pad>", "\x00", "👩‍👩‍👧"]
)
def test_odd_text_comes_back_too(odd):
    subwords = learn(TEXTS, 300)
    assert subwords.decode(subwords.encode([odd])[0]) == odd


def test_a_word_is_the_same_subwords_at_the_beginning_and_later():
    subwords = learn(TEXTS, 300)
    first, later = subwords.encode(["dogs", "abc dogs"])
    assert later[-len(first) :] == first


def test_letters_that_were_never_seen_are_bytes():
    [tokens] = learn(["a b"], 300).encode(["ж"])
    assert tokens == ("Ġ", "Ð", "¶")


def test_merges_are_those_of_the_most_frequent_neighbours():
    subwords = learn(["ab ab ab abc abc cab"], 256 + 3)
    assert subwords.vocabulary() - learn(["ab"], 256).vocabulary() == {"ab", "Ġab", "Ġabc"}
    assert subwords.encode(["ab abc xy"]) == [("Ġab", "Ġabc", "Ġ", "x", "y")]


def test_what_occurs_once_is_not_merged():
    assert len(learn(["abc xyz"], 1000).vocabulary()) == 256


def test_bytes_that_make_no_character_are_shown_and_no_failure():
    subwords = learn(TEXTS, 300)
    assert subwords.decode(("Ġa", "Ã", "<unk>")) == "a\ufffd<unk>"
    assert subwords.decode(()) == ""


def test_subwords_know_nothing_of_the_order_of_what_they_are_learnt_from():
    assert learn(TEXTS, 300).json() == learn(TEXTS[::-1], 300).json() == learn(sorted(TEXTS), 300).json()


def test_subwords_are_the_same_in_another_process_with_other_threads():
    learned = "print(learn(json.load(sys.stdin), 300).json())"
    code = f"import sys, json\nfrom tasks.translation.subwords import learn\n{learned}"
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


def test_words_are_what_stands_between_white_space():
    assert Words().encode([" a  b\u00a0c. "]) == [("a", "b", "c.")]
    assert Words().decode(("a", "b")) == "a b"


# The embedded pair


def test_the_embedded_pair_needs_nothing_and_is_the_default(embedded):
    assert Translation.Config() == Translation.Config(split="embedded")
    assert tasks.find("translation") is Translation
    assert set(Translation.split_schemes()) == {"embedded", "corpus"}
    assert embedded.splits().tests == ("test", *synthetic.TESTS)
    sizes = {split: len(embedded.examples(split)) for split in embedded.splits().all}
    assert sizes == {"train": 400, "validation": 500, "test": 1000, **dict.fromkeys(synthetic.TESTS, 300)}


@pytest.mark.parametrize("split", ["train", "test", *synthetic.TESTS])
def test_examples_are_the_sentences_of_the_language(embedded, split):
    wanted = [synthetic.pair(split, i, 0) for i in range(30)]
    found = embedded.examples(split)[:30]
    kept = [p for p in wanted if " ".join(p.source) in sources(embedded, split)]
    assert len(kept) > 20
    for pair, example in zip(kept, found, strict=False):
        assert embedded.text(example.source) == " ".join(pair.source)
        assert embedded.text(example.target) == " ".join(pair.target)
        assert example.tags == {**pair.tags, "length": len(pair.source)}


def test_fewer_pairs_are_the_first_of_more(few):
    fewer, more = translation(train_pairs=100), translation(train_pairs=200)
    assert sources(fewer) == sources(more)[:100]
    for split in fewer.splits().held_out:
        assert sources(fewer, split) == sources(more, split)


def test_another_seed_draws_other_sentences(few):
    assert not set(sources(translation(train_pairs=100, seed=1))) & set(sources(translation(train_pairs=100)))


def test_no_sentence_of_another_split_is_trained_on(embedded):
    train = {*sources(embedded)}, {*targets(embedded)}
    for split in embedded.splits().held_out:
        assert not train[0] & {*sources(embedded, split)}
        assert not train[1] & {*targets(embedded, split)}
    assert set(overlap(embedded).values()) == {0}


def test_what_was_left_out_is_noted(few, monkeypatch):
    """Every third training sentence is one of the test split."""
    drawn = synthetic.pair
    monkeypatch.setattr(
        synthetic, "pair", lambda split, i, seed: drawn("test" if split == "train" and i % 3 == 0 else split, i, seed)
    )
    task = translation(train_pairs=60)
    assert len(task.examples("train")) == 60
    assert 29 <= task.notes()["left_out"]["overlap"] <= 32  # now and then a short sentence is drawn twice
    whole = translation(train_pairs=60, drop_overlap=False)
    train = {synthetic.pair("train", i, 0).source for i in range(60)}
    held = sum(synthetic.pair("test", i, 0).source in train for i in range(len(whole.examples("test"))))
    assert held >= 20
    assert whole.notes()["left_out"]["overlap"] == 0
    assert whole.notes()["overlap"]["test"]["sources"] == held == overlap(whole)["test"]


def test_the_embedded_pair_also_has_tests_of_length(few):
    task = translation(train_pairs=200, max_train_length=6)
    lengths = {split: [e.tags["length"] for e in task.examples(split)] for split in task.splits().all}
    for split in ("train", "validation", "test"):
        assert max(lengths[split]) <= 6
    assert len(lengths["train"]) == 200
    assert {*lengths["test_1_5x"]} <= {7, 8, 9}
    assert {*lengths["test_2x"]} <= {10, 11, 12}
    assert {*lengths["test_4x"]} <= set(range(13, 25))
    assert min(len(lengths[f"test_{times}x"]) for times in ("1_5", "2", "4")) >= 20
    assert task.by_length() == ()


def test_a_bound_that_leaves_too_few_pairs_is_refused(few):
    with pytest.raises(UserError, match=r"data\.max_train_length must leave 50 training pairs, but 1 leaves 0"):
        translation(train_pairs=50, max_train_length=1)


def test_phenomena_are_scored_with_the_embedded_pair(embedded):
    examples = embedded.examples("test")[:40]
    words = [embedded.text(e.target).split() for e in examples]
    shuffled = [random.Random(i).sample(w, len(w)) for i, w in enumerate(words)]
    predictions = [embedded.tokens(" ".join(w)) for w in shuffled]
    scores = embedded.score(predictions, examples)
    found = synthetic.phenomena(shuffled, words)
    assert {name: scores[name] for name in found} == found
    assert list(scores)[:4] == ["bleu", "chrf", "exact_match", "token_accuracy"]
    assert scores["bleu"] < 0.5 < scores["lemma_recall"]


# A corpus


def test_a_corpus_is_its_text(root):
    task = translation(split="corpus", root=root)
    assert sorted(zip(sources(task), targets(task), strict=True)) == sorted(invented("train", 300))
    for split, name, n in (("validation", "dev", 20), ("test", "test", 30)):
        assert [*zip(sources(task, split), targets(task, split), strict=True)] == invented(name, n)
    assert [e.tags for e in task.examples("test")] == [{"length": len(a.split())} for a, _ in invented("test", 30)]


def test_a_subset_is_nested_and_knows_no_order(tmp_path, root):
    pairs = invented("train", 300)
    other = write(tmp_path / "other", train=pairs[::-1], dev=invented("dev", 20), test=invented("test", 30))
    large = translation(split="corpus", root=root, train_pairs=100)
    small = translation(split="corpus", root=other, train_pairs=40)
    assert sources(small) == sources(large)[:40]
    assert sources(small) != [a for a, _ in pairs[:40]]
    assert sources(translation(split="corpus", root=root, train_pairs=40, subset_seed=1)) != sources(small)
    cased = write(tmp_path / "cased", train=[(a.title(), b) for a, b in pairs], test=invented("test", 30))
    lower, upper = (
        translation(split="corpus", root=cased, train_pairs=40, lowercase=lowercase) for lowercase in (True, False)
    )
    assert sources(lower) == [source.lower() for source in sources(upper)]
    assert fingerprint(small) == fingerprint(translation(split="corpus", root=root, train_pairs=40))


def test_subwords_are_learnt_from_the_subset_alone(tmp_path, root):
    small = translation(split="corpus", root=root, train_pairs=40, subword_vocab_size=320)
    pairs = [*zip(sources(small), targets(small), strict=True)]
    other = write(
        tmp_path / "other", train=pairs, dev=[("zzz zzz zzz", "qqq qqq qqq")] * 9, test=[("vvv vvv", "www")] * 9
    )
    assert translation(split="corpus", root=other, subword_vocab_size=320).files() == small.files()
    assert translation(split="corpus", root=root, subword_vocab_size=320).files() != small.files()


def test_one_list_of_subwords_can_serve_all_sizes(root):
    tasks_of = [
        translation(split="corpus", root=root, train_pairs=pairs, subword_pairs=200, subword_vocab_size=320) for pairs in (20, 80, 300)
    ]
    assert tasks_of[0].files() == tasks_of[1].files() == tasks_of[2].files()
    assert [len(task.examples("train")) for task in tasks_of] == [20, 80, 300]
    assert tasks_of[0].files() == translation(split="corpus", root=root, train_pairs=200, subword_vocab_size=320).files()


def test_subwords_by_size_go_by_the_pairs_they_are_learnt_from(root):
    notes = [translation(split="corpus", root=root, train_pairs=20, subword_pairs=n).notes() for n in (0, 300)]
    assert 256 < notes[0]["vocabulary"]["source"] < notes[1]["vocabulary"]["source"] <= 1000


def test_the_model_has_every_subword_and_no_token_of_any_split_is_unknown(root):
    task = translation(split="corpus", root=root, train_pairs=20)
    source, target = task.vocabulary()
    assert source == target
    for split in task.splits().all:
        for example in task.examples(split):
            assert {*example.source, *example.target} <= source


def test_unshared_subwords_are_two_vocabularies_and_two_files(root):
    task = translation(split="corpus", root=root, shared_subwords=False)
    source, target = task.vocabulary()
    assert source != target
    assert set(task.files()) == {"source.tokenizer.json", "target.tokenizer.json"}
    assert sorted(targets(task)) == sorted(b for _, b in invented("train", 300))


def test_whole_words_are_those_of_the_training_pairs(root):
    task = translation(split="corpus", root=root, subword_vocab_size=0)
    first = task.examples("test")[0]
    assert (" ".join(first.source), " ".join(first.target)) == invented("test", 1)[0]
    assert task.vocabulary()[0] == {word for a, _ in invented("train", 300) for word in a.split()}
    assert task.files() == {}
    assert task.tokens("an old  dog") == ("an", "old", "dog")


def test_the_file_kept_with_a_run_is_all_it_takes_to_read_its_tokens(root):
    task = translation(split="corpus", root=root)
    kept = Tokenizer.from_str(task.files()["tokenizer.json"])
    for sentence in ("an old dog", " Ünseen  text", *sources(task, "test")):
        assert tuple(kept.encode(sentence).tokens) == task.tokens(sentence)
        assert kept.decode(kept.encode(sentence).ids) == sentence


def test_lower_case_is_of_both_sides_and_of_what_a_user_types(tmp_path):
    root = write(tmp_path, train=[("A B", "Ä B")], test=[("C", "D")])
    task = translation(split="corpus", root=root, lowercase=True)
    assert (sources(task), targets(task), targets(task, "test")) == (["a b"], ["ä b"], ["d"])
    assert task.tokens("A B") == task.examples("train")[0].source
    assert "case:lc" in task.signatures()["bleu"]
    assert targets(translation(split="corpus", root=root)) == ["Ä B"]


def test_training_pairs_that_leak_are_dropped_and_counted(tmp_path):
    train = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5")]
    root = write(tmp_path, train=train, dev=[("b", "x")], test=[("y", "3"), ("d", "4")])
    task = translation(split="corpus", root=root)
    assert sorted(sources(task)) == ["a", "e"]
    assert task.notes()["left_out"] == {"overlap": 3, "length": 0, "subwords": 0}
    assert task.notes()["overlap_of_corpus"] == {
        "validation": {"sources": 1, "targets": 0, "pairs": 0}, "test": {"sources": 1, "targets": 2, "pairs": 1}
    }  # fmt: skip
    whole = translation(split="corpus", root=root, drop_overlap=False)
    assert sorted(sources(whole)) == ["a", "b", "c", "d", "e"]
    assert whole.notes()["overlap"] == task.notes()["overlap_of_corpus"]
    assert overlap(whole) == {"validation": 1, "test": 1}


def test_pairs_of_too_many_subwords_are_dropped_from_train_alone(tmp_path):
    root = write(tmp_path, train=[("a", "b"), ("abcdefgh", "b"), ("a", "bcdefgh")], test=[("abcdefgh", "bcdefgh")])
    task = translation(split="corpus", root=root, max_subwords=6, subword_vocab_size=256, drop_overlap=False)
    assert sources(task) == ["a"]
    assert len(task.examples("test")) == 1
    assert task.notes()["left_out"] == {"overlap": 0, "length": 0, "subwords": 2}
    assert task.notes()["overlap"]["test"] == {"sources": 0, "targets": 0, "pairs": 0}
    assert task.notes()["overlap_of_corpus"]["test"] == {"sources": 1, "targets": 1, "pairs": 0}
    assert task.notes()["sizes"]["train"] == {"pairs": 1, "source_tokens": 2, "target_tokens": 2}
    with pytest.raises(UserError, match=r"data\.max_subwords leaves no training pair: all have more than 1"):
        translation(split="corpus", root=root, max_subwords=1, subword_vocab_size=256)


def test_a_corpus_has_tests_of_length_that_do_not_depend_on_the_subset(root):
    few, all_ = (translation(split="corpus", root=root, max_train_length=4, train_pairs=pairs) for pairs in (20, 0))
    assert few.splits() == all_.splits()
    for split in few.splits().held_out:
        assert few.examples(split)
        assert sources(few, split) == sources(all_, split)
    assert max(len(s.split()) for s in sources(all_)) == 4
    longer = {a for a, _ in invented("train", 300) if 4 < len(a.split()) <= 16}
    assert longer == longer & {s for name in ("test_1_5x", "test_2x", "test_4x") for s in sources(few, name)}
    assert len(all_.examples("train")) + all_.notes()["left_out"]["length"] == 300


def test_notes_are_json(root, embedded):
    for task in (translation(split="corpus", root=root), embedded):
        assert json.loads(json.dumps(task.notes())) == task.notes()


def test_the_hub_is_read_with_its_commit(monkeypatch):
    commit = "0123456789abcdef0123456789abcdef01234567"
    rows = {split: [{"translation": {"de": f"{split} de", "en": f"{split} en"}}] for split in ("train", "test")}

    def builder(name, config, *, revision):
        assert (name, config, revision) == ("someone/set", "de-en", "refs/convert/parquet")
        loaded = datasets.DatasetDict({split: datasets.Dataset.from_list(part) for split, part in rows.items()})
        return SimpleNamespace(hash=commit, download_and_prepare=lambda: None, as_dataset=lambda: loaded)

    monkeypatch.setattr(datasets, "load_dataset_builder", builder)
    task = translation(
        split="corpus", hub="someone/set", hub_config="de-en", revision="refs/convert/parquet", source_language="en", target_language="de"
    )
    assert (sources(task), targets(task, "test")) == (["train en"], ["test de"])
    assert task.notes()["commit"] == commit
    assert task.splits().validation is None


# What a user can put right


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"split": "corpsu"}, "split scheme 'corpsu'; expected one of: embedded, corpus; did you mean 'corpus'?"),
        ({"split": "corpus"}, "needs one of data.root (a folder) and data.hub (an id), and not both"),
        ({"split": "corpus", "root": "x", "hub": "y"}, "and not both"),
        ({"split": "corpus", "root": "x", "seed": 1}, "which pairs of a corpus are drawn is data.subset_seed"),
        ({"split": "corpus", "root": "x", "revision": "y"}, "data.revision has no meaning with data.root"),
        ({"split": "corpus", "hub": "x", "reverse": True}, "data.reverse has no meaning with data.hub"),
        ({"root": "x"}, "data.root has a meaning with data.split=corpus only"),
        ({"bleu_tokenizer": "zh"}, "data.bleu_tokenizer has a meaning with data.split=corpus only"),
        ({"subset_seed": 3}, "data.subset_seed has a meaning with data.split=corpus only"),
        ({"subword_vocab_size": 255}, "data.subword_vocab_size must be -1, 0 or at least 256 (the bytes), but is 255"),
    ],
)  # fmt: skip
def test_settings_that_contradict_are_refused(config, message):
    with pytest.raises(UserError) as caught:
        translation(**config)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["pairs", "subword_pairs"])
def test_more_pairs_than_there_are_are_refused_with_how_many_there_are(root, key):
    assert len(translation(split="corpus", root=root, **{key: 300}).examples("train")) == 300
    with pytest.raises(UserError, match=rf"^data\.{key} must be at most 300, .*left out: 0 for overlap.*, but is 301$"):
        translation(split="corpus", root=root, **{key: 301})


def test_a_corpus_of_which_nothing_is_left_is_refused(tmp_path):
    root = write(tmp_path, train=[("a", "b")], test=[("a", "c")])
    with pytest.raises(UserError, match=r"^no training pair is left, of 1 \(left out: 1 for overlap, 0 for length\)$"):
        translation(split="corpus", root=root)


def test_a_split_that_is_not_there_is_refused(embedded):
    with pytest.raises(UserError, match="did you mean 'test'"):
        embedded.examples("tset")


# Scores


def scored(root, predictions, **config):
    task = translation(split="corpus", root=root, **config)
    return task.score([task.tokens(p) for p in predictions], task.examples("test"))


def test_scores_are_those_of_sacrebleu_on_the_raw_text(tmp_path):
    gold = ["Der Hund, der bellt, schläft.", "Zwei Katzen (grau) spielen!", "Ein Haus am See ist groß."]
    guess = ["Der Hund der schläft, bellt.", "Zwei Katzen spielen!", "Ein Haus am großen See."]
    root = write(tmp_path, train=[("a dog", "ein Hund")], test=[(f"s{i}", g) for i, g in enumerate(gold)])
    for tokenize in ("13a", "intl", "char"):
        scores = scored(root, guess, bleu_tokenizer=tokenize)
        assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(guess, [gold], tokenize=tokenize).score / 100)
        assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(guess, [gold]).score / 100)
    assert scores["exact_match"] == 0
    assert list(scores) == ["bleu", "chrf", "exact_match", "token_accuracy"]


def test_bleu_is_what_its_paper_says(tmp_path):
    """Precisions 5/6, 3/5, 2/4 and 1/3 and a brevity penalty of exp(1 - 7/6), by hand."""
    root = write(tmp_path, train=[("a", "b")], test=[("s", "a b c d e f g")])
    bleu = scored(root, ["a b c d x f"])["bleu"]
    assert bleu == pytest.approx((5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25 * 2.718281828 ** (1 - 7 / 6))


def test_what_is_right_scores_one_and_nothing_more(root, embedded):
    for task in (translation(split="corpus", root=root), embedded):
        for n in (1, 30):
            examples = task.examples("test")[:n]
            scores = task.score([e.target for e in examples], examples)
            assert set(scores.values()) <= {0.0, 1.0}  # a phenomenon may not occur in one sentence
            assert [scores[name] for name in ("bleu", "chrf", "exact_match", "token_accuracy")] == [1.0] * 4


def test_bleu_has_nothing_to_say_on_targets_of_less_than_four_words(tmp_path):
    root = write(tmp_path, train=[("a", "b")], test=[("s", "a b c")])
    scores = scored(root, ["a b c"])
    assert (scores["bleu"], scores["chrf"], scores["exact_match"]) == (0.0, 1.0, 1.0)


def test_predictions_of_nothing_score_nothing(root):
    task = translation(split="corpus", root=root)
    examples = task.examples("test")
    assert set(task.score([()] * len(examples), examples).values()) == {0.0}
    assert all(value != value for value in task.score([], []).values())


def test_exact_match_is_of_the_text_however_it_is_cut(root):
    task = translation(split="corpus", root=root)
    example = task.examples("test")[0]
    cut = learn([], 256).encode([task.text(example.target)])[0]
    assert cut != example.target
    scores = task.score([cut], [example])
    assert scores["exact_match"] == scores["bleu"] == 1.0
    assert scores["token_accuracy"] < 1.0


def test_signatures_say_how_scores_were_computed(root):
    task = translation(split="corpus", root=root, bleu_tokenizer="intl")
    assert task.signatures() == {
        "bleu": f"nrefs:1|case:mixed|eff:no|tok:intl|smooth:exp|version:{sacrebleu.__version__}",
        "chrf": f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{sacrebleu.__version__}",
    }


def test_tokenised_text_is_scored_without_a_word_of_warning(tmp_path, caplog):
    root = write(tmp_path, train=[("a", "b")], test=[(f"a {i}", f"b b {i} b .") for i in range(120)])
    assert scored(root, [f"b b {i} b ." for i in range(120)])["bleu"] == 1.0
    assert caplog.records == []


JAPANESE = [("i like dogs", "私 は 犬 が 好き です 。"), ("he runs", "彼 は 走 る 。")]


@pytest.mark.parametrize("code", ["ja", "JA", "ja_JP", "jpn"])
def test_japanese_is_scored_by_character_without_blanks(tmp_path, code):
    root = write(tmp_path, train=[("a dog", "犬")], test=JAPANESE)
    scores = scored(root, ["私は犬が好きです。", "彼 は 走る。"], target_language=code)
    assert (scores["bleu"], scores["chrf"], scores["exact_match"]) == (1.0, 1.0, 1.0)
    guess, gold = ["私は猫が好きです。", "彼は走る。"], [t.replace(" ", "") for _, t in JAPANESE]
    wanted = sacrebleu.corpus_bleu(guess, [gold], tokenize="char").score / 100
    assert scored(root, guess, target_language=code)["bleu"] == pytest.approx(wanted)
    assert "tok:char" in translation(split="corpus", root=root, target_language=code).signatures()["bleu"]


def test_targets_that_look_japanese_must_say_so(tmp_path):
    root = write(tmp_path, train=JAPANESE, test=[("a dog", "犬")])
    with pytest.raises(UserError, match=r"look Japanese or Chinese: set data\.target_language=ja \(or zh\), or data\.bleu_tokenizer"):
        translation(split="corpus", root=root)
    for config in ({"target_language": "ja"}, {"target_language": "zh"}, {"bleu_tokenizer": "char"}, {"reverse": True}):
        assert translation(split="corpus", root=root, **config)


def test_chinese_is_scored_by_sacrebleus_own_tokeniser(tmp_path):
    root = write(tmp_path, train=[("a dog", "狗")], test=[("i like dogs", "我喜欢狗。")])
    assert "tok:zh" in translation(split="corpus", root=root, target_language="zh").signatures()["bleu"]


# With the rest


def test_every_split_exports_as_a_dataset(embedded):
    exported = to_datasets(embedded)
    assert set(exported) == set(embedded.splits().all)
    for split in ("train", "test", "longer"):
        row, example = exported[split][0], embedded.examples(split)[0]
        assert tuple(row["source"].split(" ")) == example.source
        assert tuple(row["target"].split(" ")) == example.target
        assert {tag: row[tag] for tag in example.tags} == example.tags


def test_a_real_corpus_is_a_task():
    if not REAL.is_dir():
        pytest.skip("no copy of the corpora beside the repository")
    task = translation(split="corpus", root=str(REAL / "umsuka-en-zu"), source_language="en", target_language="zu", train_pairs=1000)
    with gzip.open(REAL / "umsuka-en-zu" / "test.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        raw = [line.rstrip("\n").split("\t") for line in file]
    assert [list(pair) for pair in zip(sources(task, "test"), targets(task, "test"), strict=True)] == raw
    assert task.notes()["sizes"]["train"]["pairs"] == 1000
    assert task.notes()["vocabulary"] == {"source": 1000, "target": 1000}
    assert task.notes()["overlap"]["test"] == {"sources": 0, "targets": 0, "pairs": 0}
