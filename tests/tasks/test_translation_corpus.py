"""The task translation with a corpus."""

import json
from types import SimpleNamespace

import datasets
import pytest
from tokenizers import Tokenizer

from tests.tasks.translation_tasks import invented, sources, targets, translation, write
from tfstudy.errors import UserError
from tfstudy.tasks.base import fingerprint, overlap
from tfstudy.tasks.translation import text
from tfstudy.tasks.translation.folder import from_folder


def test_a_corpus_is_its_text(root):
    task = translation(split="corpus", root=root)
    assert sorted(zip(sources(task), targets(task), strict=True)) == sorted(invented("train", 300))
    for split, name, n in (("validation", "dev", 20), ("test", "test", 30)):
        assert [*zip(sources(task, split), targets(task, split), strict=True)] == invented(name, n)
    assert [e.tags for e in task.examples("test")] == [{"length": len(a.split())} for a, _ in invented("test", 30)]


def test_subsets_are_nested_and_do_not_depend_on_the_order(tmp_path, root):
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


def test_a_corpus_is_read_once_for_all_amounts_and_again_when_a_file_changes(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(text, "from_folder", lambda *given: read.append(given) or from_folder(*given))
    root = write(tmp_path, train=invented("train", 50), test=invented("test", 5))
    for config in ({}, {"train_pairs": 9}, {"train_pairs": 9, "lowercase": True}, {}):
        alone = translation(split="corpus", root=root, **config)
        text._LAST.clear()
        again = translation(split="corpus", root=root, **config)
        assert fingerprint(alone) == fingerprint(again)
    before = len(read)
    translation(split="corpus", root=root, train_pairs=20)
    assert len(read) == before
    write(tmp_path, train=invented("other", 60), test=invented("test", 5))
    assert len(sources(translation(split="corpus", root=root))) == 60
    assert len(read) == before + 1


def test_subwords_are_learnt_only_from_the_subset(tmp_path, root):
    small = translation(split="corpus", root=root, train_pairs=40, subword_vocab_size=320)
    pairs = [*zip(sources(small), targets(small), strict=True)]
    other = write(
        tmp_path / "other", train=pairs, dev=[("zzz zzz zzz", "qqq qqq qqq")] * 9, test=[("vvv vvv", "www")] * 9
    )
    assert translation(split="corpus", root=other, subword_vocab_size=320).files() == small.files()
    assert translation(split="corpus", root=root, subword_vocab_size=320).files() != small.files()


def test_one_list_of_subwords_can_serve_all_sizes(root):
    tasks_of = [
        translation(split="corpus", root=root, train_pairs=pairs, subword_pairs=200, subword_vocab_size=320)
        for pairs in (20, 80, 300)
    ]
    assert tasks_of[0].files() == tasks_of[1].files() == tasks_of[2].files()
    assert [len(task.examples("train")) for task in tasks_of] == [20, 80, 300]
    assert (
        tasks_of[0].files() == translation(split="corpus", root=root, train_pairs=200, subword_vocab_size=320).files()
    )


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


def test_the_file_saved_with_a_run_suffices_to_read_its_tokens(root):
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


def test_pairs_of_too_many_subwords_are_dropped_only_from_train(tmp_path):
    root = write(tmp_path, train=[("a", "b"), ("abcdefgh", "b"), ("a", "bcdefgh")], test=[("abcdefgh", "bcdefgh")])
    task = translation(split="corpus", root=root, max_subwords=6, subword_vocab_size=256, drop_overlap=False)
    assert sources(task) == ["a"]
    assert len(task.examples("test")) == 1
    assert task.notes()["left_out"] == {"overlap": 0, "length": 0, "subwords": 2}
    assert task.notes()["overlap"]["test"] == {"sources": 0, "targets": 0, "pairs": 0}
    assert task.notes()["overlap_of_corpus"]["test"] == {"sources": 1, "targets": 1, "pairs": 0}
    assert task.notes()["sizes"]["train"] == {"pairs": 1, "source_tokens": 2, "target_tokens": 2}
    with pytest.raises(UserError, match=r"no train pair is left: .* 1 subwords \(data\.max_subwords\)"):
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
        split="corpus",
        hub="someone/set",
        hub_config="de-en",
        revision="refs/convert/parquet",
        source_language="en",
        target_language="de",
    )
    assert (sources(task), targets(task, "test")) == (["train en"], ["test de"])
    assert task.notes()["commit"] == commit
    assert task.splits().validation is None
