"""The task translation with the embedded languages, and settings that are refused."""

import gzip
import random

import pytest

from tests.tasks.translation_tasks import HERE, sources, targets, translation, write
from tfstudy import tasks
from tfstudy.errors import UserError
from tfstudy.tasks.base import overlap
from tfstudy.tasks.export import to_datasets
from tfstudy.tasks.translation import synthetic
from tfstudy.tasks.translation.phenomena import phenomena
from tfstudy.tasks.translation.task import Translation

REAL = HERE.parent / "shared" / "data" / "translation"  # corpora as two-column files, where there is a copy


# The embedded languages


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


def test_the_number_of_removed_pairs_is_recorded(few, monkeypatch):
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


def test_a_maximum_length_that_leaves_too_few_pairs_is_refused(few):
    with pytest.raises(UserError, match=r"data\.max_train_length=1 leaves 0 of 50"):
        translation(train_pairs=50, max_train_length=1)


def test_phenomena_are_scored_with_the_embedded_pair(embedded):
    examples = embedded.examples("test")[:40]
    words = [embedded.text(e.target).split() for e in examples]
    shuffled = [random.Random(i).sample(w, len(w)) for i, w in enumerate(words)]
    predictions = [embedded.tokens(" ".join(w)) for w in shuffled]
    scores = embedded.score(predictions, examples)
    found = phenomena(shuffled, words)
    assert {name: scores[name] for name in found} == found
    assert list(scores)[:4] == ["bleu", "chrf", "exact_match", "token_accuracy"]
    assert scores["bleu"] < 0.5 < scores["lemma_recall"]


# Invalid settings


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"split": "corpsu"}, "split scheme 'corpsu'; did you mean 'corpus'? Expected one of: embedded, corpus"),
        ({"split": "corpus"}, "exactly one of data.root (a folder) and data.hub (an id)"),
        ({"split": "corpus", "root": "x", "hub": "y"}, "exactly one of data.root"),
        ({"split": "corpus", "root": "x", "source_language": "en", "target_language": "en"}, "are both 'en'"),
        ({"split": "corpus", "root": "x", "seed": 1}, "data.subset_seed selects the pairs of a corpus"),
        ({"split": "corpus", "root": "x", "revision": "y"}, "data.revision cannot be set with data.root"),
        ({"split": "corpus", "hub": "x", "reverse": True}, "data.reverse cannot be set with data.hub"),
        ({"root": "x"}, "data.root can only be set with --split corpus"),
        ({"bleu_tokenizer": "zh"}, "data.bleu_tokenizer can only be set with --split corpus"),
        ({"subset_seed": 3}, "data.subset_seed can only be set with --split corpus"),
        ({"subword_vocab_size": 255}, "data.subword_vocab_size must be -1, 0 or at least 256 (all bytes), but is 255"),
    ],
)  # fmt: skip
def test_settings_that_contradict_are_refused(config, message):
    with pytest.raises(UserError) as caught:
        translation(**config)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["train_pairs", "subword_pairs"])
def test_too_many_pairs_are_refused_with_the_available_number(root, key):
    assert len(translation(split="corpus", root=root, **{key: 300}).examples("train")) == 300
    with pytest.raises(UserError, match=rf"^data\.{key} must be at most 300, .*left out: none.*, but is 301$"):
        translation(split="corpus", root=root, **{key: 301})


def test_a_corpus_without_remaining_pairs_is_refused(tmp_path):
    root = write(tmp_path, train=[("a", "b")], test=[("a", "c")])
    with pytest.raises(
        UserError, match=r"^no train pair is left of 1 \(left out: 1 with a side that is also in another split\)$"
    ):
        translation(split="corpus", root=root)


def test_an_unknown_split_is_refused(embedded):
    with pytest.raises(UserError, match="did you mean 'test'"):
        embedded.examples("tset")


# Export and real corpora


def test_every_split_exports_as_a_dataset(embedded):
    exported = to_datasets(embedded)
    assert set(exported) == set(embedded.splits().all)
    for split in ("train", "test", "longer"):
        row, example = exported[split][0], embedded.examples(split)[0]
        assert embedded.tokens(row["source"]) == example.source
        assert embedded.target_tokens(row["target"]) == example.target
        assert "Ġ" not in row["source"] + row["target"], "text, not subwords"
        assert {tag: row[tag] for tag in example.tags} == example.tags


def test_a_real_corpus_is_a_task():
    if not REAL.is_dir():
        pytest.skip("no copy of the corpora beside the repository")
    task = translation(
        split="corpus", root=str(REAL / "umsuka-en-zu"), source_language="en", target_language="zu", train_pairs=1000
    )
    with gzip.open(REAL / "umsuka-en-zu" / "test.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        raw = [line.rstrip("\n").split("\t") for line in file]
    assert [list(pair) for pair in zip(sources(task, "test"), targets(task, "test"), strict=True)] == raw
    assert task.notes()["sizes"]["train"]["pairs"] == 1000 - task.notes()["left_out"]["subwords"] == 999
    assert task.notes()["vocabulary"] == {"source": 1000, "target": 1000}
    assert task.notes()["overlap"]["test"] == {"sources": 0, "targets": 0, "pairs": 0}
