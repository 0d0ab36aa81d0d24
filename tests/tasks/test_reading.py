"""Corpora in a folder and on the hub: every format gives the same pairs, and an error names the file and the line."""

import gzip
import json
import os
from types import SimpleNamespace
from unittest.mock import Mock

import datasets
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.corpora import (
    FORMS,
    NONE,
    PAIRS,
    SPLITS,
    TEST,
    Sentences,
    columns,
    corpus,
    pair,
    read,
    read_splits,
    translation,
    tsv,
    write,
)
from tfstudy.errors import UserError
from tfstudy.tasks import reading
from tfstudy.tasks.reading import corpora, lines


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_same_pairs(tmp_path, form):
    assert read_splits(corpus(tmp_path, form)) == SPLITS
    if form in ("tsv", "header", "source and target"):  # these need no languages
        assert read_splits(tmp_path, NONE) == SPLITS


def test_two_columns_can_be_read_in_reverse_and_parallel_files_by_swapping_the_languages(tmp_path):
    reverse = read_splits(corpus(tmp_path / "columns"), columns="target,source")["train"]
    assert reverse == [Sentences(p.target, p.source) for p in PAIRS]
    parallel = corpus(tmp_path / "parallel", "parallel, one gzipped")
    assert read_splits(parallel, ("de", "en"))["test"] == [Sentences("zwei", "two")]
    assert read_splits(parallel, columns="de,en")["test"] == [Sentences("zwei", "two")]


def test_a_first_line_is_a_header_if_it_names_what_was_set_or_is_the_same_codes_in_all_files(tmp_path):
    files = {f"{name}.tsv": f"fr\twol\n{tsv(pairs)}" for name, pairs in SPLITS.items()}
    for languages in (NONE, ("fr", "wol")):
        assert read_splits(write(tmp_path / "codes", files), languages) == SPLITS
    assert read_splits(tmp_path / "codes", ("wol", "fr"))["test"] == [Sentences("zwei", "two")]
    assert read(tmp_path / "codes").splits["train"].first == 2, "lines are those of the file"
    one = write(tmp_path / "one", {"train.tsv": f"id\tno\n{tsv(PAIRS)}", "test.tsv": tsv(TEST)})
    assert read_splits(one, NONE)["train"] == [("id", "no"), *PAIRS], "two words of one file are a pair"
    row = json.dumps({"source": "wmt", "target": "news", "en": "a", "de": "b", "id": None}) + "\n"
    write(tmp_path / "both", {"train.jsonl": row, "test.jsonl": row})
    assert read_splits(tmp_path / "both", NONE)["test"] == [("wmt", "news")]
    assert read_splits(tmp_path / "both")["test"] == [("a", "b")]


# nothing is quoted, missing, stripped or a number
ODD = [Sentences(*p) for p in (("NA", "null"), ("1.50", "007"), ('a "b', 'c" d'), ("# x", "\\N"), (" a ", "1e3 "))]


@given(pairs=st.lists(pair, min_size=1, max_size=5))
@pytest.mark.parametrize("form", ["tsv", "codes", "parallel, one gzipped"])
def test_any_text_is_read_unchanged(tmp_path_factory, form, pairs):
    pairs = [*pairs, *ODD]
    root = corpus(tmp_path_factory.mktemp("corpus"), form, splits={"train": pairs, "test": TEST})
    assert read_splits(root)["train"] == pairs


def test_the_corpora_of_a_folder_are_listed_with_their_files(tmp_path):
    corpus(tmp_path / "b", "parallel, one gzipped", {"train": PAIRS, "test": TEST})
    columns(tmp_path / "a", train=PAIRS, dev=TEST, test=TEST)
    columns(tmp_path / "no test", train=PAIRS)
    expected = {"a": ["dev.tsv", "test.tsv", "train.tsv"], "b": ["test.de", "test.en.gz", "train.de", "train.en.gz"]}
    assert corpora(tmp_path) == {tmp_path / name: files for name, files in expected.items()}
    assert corpora(tmp_path / "a") == {tmp_path / "a": expected["a"]}
    for folder, message in (("no test", "has no corpus"), ("nowhere", "No such file or directory")):
        with pytest.raises(UserError, match=message):
            corpora(tmp_path / folder)


# Errors


@pytest.mark.parametrize(
    ("files", "config", "message"),
    [
        ({"train.tsv": "a\tb\na\tb\tc\n"}, {},
         "ROOT/train.tsv:2: the line has 3 columns, but line 1 has 2: 'a\\tb\\tc'"),
        ({"dev.tsv": b"a\tb\nc\td\nx\xffy\tz\n"}, {}, "ROOT/dev.tsv:3: byte 2 of the line is not UTF-8"),
        ({"train.tsv.gz": gzip.compress(tsv(PAIRS * 20).encode())[:-9]}, {}, "gz is not a complete gzip file"),
        ({"train.tsv.gz": ""}, {}, "ROOT/train.tsv.gz is empty"),
        ({"train.txt": "IN: a OUT: b\nc d\n"}, {}, "train.txt:2: expected 'IN: <source> OUT: <target>'"),
        ({"train.jsonl": '{"en": "a", "de": "b"}\n{"en"\n'}, {}, "ROOT/train.jsonl:2: invalid JSON"),
        ({"train.jsonl": '["a", "b"]\n'}, {}, "expected a JSON object, but the line is '[\"a\", \"b\"]'"),
        ({"train.jsonl": '{"en": "a", "dee": "b", "source": "a"}\n'}, {},
         "ROOT/train.jsonl:1: no target among the columns en, dee, source; say which, such as data.columns=en=source"),
        ({"train.jsonl": '{"src": "a", "tgt": "b"}\n{"src": "a"}\n'}, {}, "train.jsonl:2: 'tgt' must be text, but"),
        ({"train.jsonl": '{"en": "\\ud83d", "de": "b"}\n'}, {}, "'en' contains half of a surrogate pair"),
        ({"train.en": "a\nb\n", "train.de.gz": "c\n"}, {},
         "ROOT/train.en and ROOT/train.de.gz must have the same number of lines, but have 2 and 1"),
        ({"train.en": "a\n"}, {}, "folder contains dev.tsv, test.tsv, train.en (one column, and no parallel file)"),
        ({"train.a": "x\n", "train.b": "y\n"}, {}, "name the source first: data.columns=a,b"),
        ({"dev.tsv": "a\tb\n", "valid.tsv": "a\tb\n"}, {}, "dev.tsv and valid.tsv are both for 'validation'; "),
        ({"train.tsv": "a\tb\tc\n"}, {"columns": "source,target"}, "has 3 columns without names, but data.col"),
        ({"train.tsv": "a\tb\n"}, {"columns": "source,targt=goal"}, "unknown purpose 'goal'"),
        ({"train.tsv": "a\tb\n"}, {"roles": "tests.tsv=test"}, "has no file 'tests.tsv'; did you mean 'test.tsv'?"),
        ({"train.tsv": "a\tb\n"}, {"roles": "test.tsv=none"}, "has no test file"),
    ],
)  # fmt: skip
def test_an_error_in_a_file_is_one_line_with_its_location(tmp_path, files, config, message):
    stems = {name.split(".")[0] for name in files}
    good = {"train.tsv": "a\tb\n", "dev.tsv": "c\td\n", "test.tsv": "e\tf\n"}
    kept = {name: text for name, text in good.items() if name.split(".")[0] not in stems}
    with pytest.raises(UserError) as caught:
        read(write(tmp_path, kept | files), **config)
    text = str(caught.value).replace(str(tmp_path), "ROOT")
    assert message in text
    assert "\n" not in text
    assert len(text) < 1000


def test_a_folder_that_cannot_be_read_is_a_user_error(tmp_path, monkeypatch):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    for path, reason in (("loop", "Too many levels"), ("file", "Not a directory"), ("nowhere", "No such file")):
        with pytest.raises(UserError, match=rf"^data\.root: can't read {path} in {tmp_path}: {reason}"):
            read(path)
    for path in ("~nosuchuser/x", "a\0b", "\ud800"):
        with pytest.raises(UserError, match=r"^data\.root: '.*' can't be a path: "):
            translation(path)


# Lines


def lines_of(path, content):
    path.write_bytes(content)
    return list(lines(path))


def test_only_line_feeds_end_lines_and_what_would_fill_the_memory_or_block_is_refused(tmp_path, monkeypatch):
    assert lines_of(tmp_path / "a", b"a\r\nb\rc\x0bd\xe2\x80\xa8e\n\nf\0") == ["a", "b\rc\x0bd\u2028e", "", "f\0"]
    assert lines_of(tmp_path / "a.gz", gzip.compress(b"a\nb\n")) == ["a", "b"]
    monkeypatch.setattr(reading, "UNCHECKED", 2**16)
    for bomb in (b"\n" * 2**20, b"a\tb\n" * 2**18):
        with pytest.raises(UserError, match="expands to more than 100 times its size"):
            lines_of(tmp_path / "a.gz", gzip.compress(bomb))
    monkeypatch.setattr(reading, "MAX_LINE", 2**20)
    with pytest.raises(UserError, match=r"a:2: the line is longer than 1 MiB"):
        lines_of(tmp_path / "a", b"a\n" + b"x" * (2**20 + 1))
    assert len(lines_of(tmp_path / "a", b"x" * 2**20)[0]) == 2**20
    os.mkfifo(tmp_path / "pipe.gz")
    with pytest.raises(UserError, match=r"can't read .*pipe.gz: not a regular file"):
        next(lines(tmp_path / "pipe.gz"))


# The hub

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = [{"translation": p._asdict() | {"en": p.source, "de": p.target}} for p in PAIRS]


@pytest.fixture
def hub(monkeypatch):
    """`hub(answer, commit)`: a hub whose data sets are all `answer()` at `commit`; returns what was asked of it."""

    def hub(answer, commit=COMMIT):
        asked = []

        def builder(name, config=None, *, revision=None):
            asked.append((name, config, revision))
            return SimpleNamespace(hash=commit, download_and_prepare=lambda: None, as_dataset=answer)

        monkeypatch.setattr(datasets, "load_dataset_builder", builder)
        return asked

    return hub


def loaded(*names, rows=ROWS):
    return datasets.DatasetDict({name: datasets.Dataset.from_list(rows) for name in names})


@pytest.mark.parametrize(("commit", "recorded"), [(COMMIT, COMMIT), ("0123456789abcdef", "")])
def test_the_hub_gives_the_same_pairs_and_the_commit_they_are_of(hub, commit, recorded):
    asked = hub(lambda: loaded("train", "dev", "test", "test2017", "unsupervised"), commit)
    found = read(hub="someone/set", hub_config="de-en", revision="refs/convert/parquet")
    assert asked == [("someone/set", "de-en", "refs/convert/parquet")]
    assert found.commit == recorded
    names = ("train", "validation", "test", "test2017", "unsupervised")
    assert read_splits(hub="someone/set") == dict.fromkeys(names, PAIRS)
    assert "unsupervised" not in read_splits(hub="someone/set", roles="unsupervised=none")


def test_a_set_without_the_splits_or_with_an_invalid_row_is_refused(hub):
    rows = [{"en": "a", "de": "b"}, {"en": "c", "de": None}]
    for splits, message in (
        (loaded("train", "dev"), " needs a train and a test split: train, dev; set data.roles"),
        (loaded("train", "dev", "val", "test"), " has two splits with the same role: train, dev, val, test; set"),
        (loaded("train", "test", rows=rows), ", train, row 2: 'de' must be text, but is null$"),
    ):
        hub(lambda splits=splits: splits)
        with pytest.raises(UserError, match=f"^data.hub: 'someone/set'{message}"):
            read(hub="someone/set")


def test_audio_beside_the_sentences_is_not_read_and_named(hub):
    text, speech = datasets.Value("string"), [{"bytes": b"no audio", "path": ""}]
    schema = datasets.Features({"en": text, "de": text, "speech": datasets.Audio()}).arrow_schema
    rows = datasets.Dataset(pyarrow.table({"en": ["a"], "de": ["b"], "speech": speech}, schema))
    hub(lambda: datasets.DatasetDict({"train": rows, "test": rows}))
    found = read(hub="someone/set")
    assert (found.splits["train"].sources, found.splits["train"].targets) == (["a"], ["b"])
    assert found.unused == {"column speech": "neither text nor numbers"}


def test_any_error_of_the_hub_is_one_line_with_a_way_out(hub):
    for error, message in (
        (ConnectionError("no route\nand much more"), "no route. A folder of text files is set with data.root"),
        (RuntimeError("Dataset scripts are no longer supported"), "If the hub has a parquet copy, use data.revision="),
        (ValueError(), "ValueError. A folder of text"),
    ):
        hub(Mock(side_effect=error))
        with pytest.raises(UserError, match=rf"^data\.hub: can't load 'someone/set': .*{message}"):
            read(hub="someone/set")
