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

from tests.tasks.corpora import FORMS, PAIRS, SPLITS, TEST, Sentences, corpus, pair, read, read_splits, tsv, write
from tfstudy.errors import UserError
from tfstudy.tasks import reading
from tfstudy.tasks.reading import lines

SWAPPED = dict.fromkeys(("codes", "header of codes", "translation", "parallel, one gzipped"), "de,en")
SWAPPED |= dict.fromkeys(("header", "source and target"), "source=target,target=source")


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_same_pairs_and_columns_can_be_swapped(tmp_path, form):
    root = corpus(tmp_path, form)
    assert read_splits(root, columns="en,de" if "de,en" in SWAPPED.get(form, "") else "") == SPLITS
    swapped = {name: [Sentences(p.target, p.source) for p in pairs] for name, pairs in SPLITS.items()}
    assert read_splits(root, columns=SWAPPED.get(form, "target,source")) == swapped


def test_the_files_of_two_corpora_are_never_paired_and_roles_have_the_names_that_files_have(tmp_path):
    def files(*names):
        return {name: name.partition(".")[0] + "\n" for name in names}

    both = files("train.src", "train.tgt", "test.src", "test.tgt")
    more = write(tmp_path / "more", both | files("train_small.src", "train_small.tgt"))
    assert read_splits(more)["train"] == [("train", "train")]
    odd = write(tmp_path / "odd", both | files("train_bt.src"))
    assert read_splits(odd)["train"] == [("train", "train")]
    two = files("train_a.src", "train_a.tgt", "train_b.src", "test.src", "test.tgt")
    with pytest.raises(UserError, match="are both for 'train'"):
        read(write(tmp_path / "two", two))
    named = write(tmp_path / "named", dict.fromkeys(("a.tsv", "b.tsv", "c.tsv"), "x\ty\n"))
    assert {*read_splits(named, roles="a.tsv=Train,b.tsv=dev,c.tsv=mine")} == {"train", "validation", "mine"}


def test_a_first_line_is_a_header_if_it_names_what_was_set_or_is_the_same_codes_in_all_files(tmp_path):
    assert read(corpus(tmp_path / "codes", "header of codes")).splits["train"].first == 2, "lines are those of the file"
    one = write(tmp_path / "one", {"train.tsv": f"id\tno\n{tsv(PAIRS)}", "test.tsv": tsv(TEST)})
    assert read_splits(one)["train"] == [("id", "no"), *PAIRS], "two words of one file are a pair"
    row = json.dumps({"source": "wmt", "target": "news", "en": "a", "de": "b", "id": None}) + "\n"
    write(tmp_path / "both", {"train.jsonl": row, "test.jsonl": row})
    assert read_splits(tmp_path / "both")["test"] == [("wmt", "news")]
    assert read_splits(tmp_path / "both", columns="en,de")["test"] == [("a", "b")]


# nothing is quoted, missing, stripped or a number
ODD = [Sentences(*p) for p in (("NA", "null"), ("1.50", "007"), ('a "b', 'c" d'), ("# x", "\\N"), (" a ", "1e3 "))]


@given(pairs=st.lists(pair, min_size=1, max_size=5))
@pytest.mark.parametrize("form", ["tsv", "source and target", "parallel, one gzipped"])
def test_any_text_is_read_unchanged(tmp_path_factory, form, pairs):
    pairs = [*pairs, *ODD]
    root = corpus(tmp_path_factory.mktemp("corpus"), form, splits={"train": pairs, "test": TEST})
    columns = "en,de" if "parallel" in form else "source,target"
    assert read_splits(root, columns=columns)["train"] == pairs


@pytest.mark.parametrize(
    ("files", "config", "message"),
    [
        ({"train.tsv": "de\ten\n"}, {"columns": "de,en"},
         "ROOT/train.tsv:1 has the names of columns, but no pairs follow"),
        ({"train.tsv": "a\tb\na\tb\tc\n"}, {},
         "ROOT/train.tsv:2: the line has 3 columns, but line 1 has 2: 'a\\tb\\tc'"),
        ({"dev.tsv": b"a\tb\nc\td\nx\xffy\tz\n"}, {}, "ROOT/dev.tsv:3: byte 2 of the line is not UTF-8"),
        ({"train.tsv.gz": gzip.compress(tsv(PAIRS * 20).encode())[:-9]}, {}, "gz is not a complete gzip file"),
        ({"train.tsv.gz": ""}, {}, "ROOT/train.tsv.gz is empty"),
        ({"train.txt": "IN: a OUT: b\nc d\n"}, {}, "train.txt:2: expected 'IN: <source> OUT: <target>'"),
        ({"train.jsonl": '{"src": "a", "tgt": "b"}\n{"en"\n'}, {}, "ROOT/train.jsonl:2: invalid JSON"),
        ({"train.jsonl": '["a", "b"]\n'}, {}, "expected a JSON object, but the line is '[\"a\", \"b\"]'"),
        ({"train.jsonl": '{"en": "a", "de": "b"}\n'}, {},
         "ROOT/train.jsonl:1: no source among the columns en, de; say which, such as data.columns=en=source,de=target"),
        ({"train.jsonl": '{"src": "a", "tgt": "b"}\n{"src": "a"}\n'}, {}, "train.jsonl:2: 'tgt' must be text, but"),
        ({"train.jsonl": '{"src": "\\ud83d", "tgt": "b"}\n'}, {}, "'src' contains half of a surrogate pair"),
        ({"train.en": "a\nb\n", "train.de.gz": "c\n"}, {"columns": "en,de"},
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
SPEECH = {"en": datasets.Value("string"), "de": datasets.Value("string"), "speech": datasets.Audio()}
HUB = {"hub": "someone/set", "columns": "en,de"}


@pytest.fixture
def hub(monkeypatch):
    """`hub(answer, commit)`: a hub whose data sets are all `answer()` at `commit`; returns what is asked."""

    def hub(answer, commit=COMMIT):
        found = SimpleNamespace(hash=commit, download_and_prepare=lambda: None, as_dataset=answer)
        monkeypatch.setattr(datasets, "load_dataset_builder", Mock(return_value=found))
        return datasets.load_dataset_builder

    return hub


def loaded(*names, rows):
    return lambda: datasets.DatasetDict({name: datasets.Dataset.from_list(rows) for name in names})


def test_the_hub_gives_the_same_pairs_and_the_commit_they_are_of(hub):
    rows = [{"translation": {"en": p.source, "de": p.target}} for p in PAIRS]
    asked = hub(loaded("train", "dev", "test", "test2017", "unsupervised", rows=rows))
    found = read(**HUB, hub_config="de-en", revision="refs/convert/parquet")
    asked.assert_called_once_with("someone/set", "de-en", revision="refs/convert/parquet")
    assert found.commit == COMMIT
    names = ("train", "validation", "test", "test2017", "unsupervised")
    assert read_splits(**HUB) == dict.fromkeys(names, PAIRS)
    assert "unsupervised" not in read_splits(**HUB, roles="unsupervised=none")
    hub(loaded("train", "test", rows=rows), "0123456789abcdef")
    assert read(**HUB).commit == "", "the hash of a folder is no commit"


def test_audio_beside_the_sentences_is_not_read_and_named(hub):
    columns = {"en": ["a"], "de": ["b"], "speech": [{"bytes": b"no audio", "path": ""}]}
    rows = datasets.Dataset(pyarrow.table(columns, datasets.Features(SPEECH).arrow_schema))
    hub(lambda: datasets.DatasetDict({"train": rows, "test": rows}))
    found = read(**HUB)
    assert (found.splits["train"].sources, found.splits["train"].targets) == (["a"], ["b"])
    assert found.unused == {"column speech": "neither text nor numbers"}


ROWS = [{"en": "a", "de": "b"}, {"en": "c", "de": None}]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (loaded("train", "dev", rows=ROWS[:1]), " needs a train and a test split: train, dev; set data.roles"),
        (loaded("train", "dev", "val", "test", rows=ROWS[:1]), " has two splits with the same role: train, dev, val,"),
        (loaded("train", "test", rows=ROWS), ", train, row 2: 'de' must be text, but is null$"),
        (Mock(side_effect=ConnectionError("no route\nand more")), ": no route. A folder of text files is set with"),
        (Mock(side_effect=RuntimeError("scripts are no longer supported")), ".* parquet copy, use data.revision="),
        (Mock(side_effect=ValueError()), ": ValueError. A folder of text"),
    ],
)
def test_an_error_of_the_hub_is_one_line_with_a_way_out(hub, answer, message):
    hub(answer)
    with pytest.raises(UserError, match=f"^data.hub: (can't load )?'someone/set'{message}"):
        read(**HUB)
