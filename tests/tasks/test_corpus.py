"""Parallel text: every shape gives the same pairs, text stays as it is, mistakes are named by file and line."""

import csv
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import UserError
from tasks.translation.corpus import (
    Languages,
    Sentences,
    Sieve,
    by_length,
    from_folder,
    from_hub,
    lowercased,
    overlaps,
    pair_of,
    row_of,
    shuffled,
)

HERE = Path(__file__).resolve().parents[2]
REAL = HERE.parent / "shared" / "data" / "translation"  # corpora as two-column files, where there is a copy
EN_DE = Languages("en", "de")
PAIRS = [Sentences("a dog", "ein Hund"), Sentences('"NA" 007', "NA"), Sentences("x\u2028y\x85z\x0b\x1c\rq.", "1.50 é")]
TEST = [Sentences("two", "zwei")]
SPLITS = {"train": PAIRS, "validation": TEST, "test": TEST, "test2017": [*TEST, *TEST]}

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff")
sentence = st.text(characters, min_size=1, max_size=12).filter(str.strip)
pair = st.builds(Sentences, sentence, sentence)
alike = st.builds(Sentences, st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh"))


def tsv(pairs):
    return "".join(f"{p.source}\t{p.target}\n" for p in pairs)


def jsonl(pairs, form):
    return "".join(json.dumps(form(p)) + "\n" for p in pairs)


FORMS = {
    "tsv": lambda name, pairs: {f"{name}.tsv": tsv(pairs)},
    "no last line end": lambda name, pairs: {f"{name}.tsv": tsv(pairs).removesuffix("\n")},
    "carriage returns": lambda name, pairs: {f"{name}.tsv": tsv(pairs).replace("\n", "\r\n")},
    "byte order mark": lambda name, pairs: {f"{name}.tsv": "\ufeff" + tsv(pairs)},
    "tsv.gz": lambda name, pairs: {f"{name}.tsv.gz": tsv(pairs)},
    "source and target": lambda name, pairs: {f"{name}.jsonl": jsonl(pairs, Sentences._asdict)},
    "codes": lambda name, pairs: {f"{name}.jsonl": jsonl(pairs, lambda p: {"id": 1, "de": p.target, "en": p.source})},
    "translation": lambda name, pairs: {
        f"{name}.jsonl.gz": jsonl(pairs, lambda p: {"translation": {"en": p.source, "de": p.target}, "id": "7"})
    },
    "parallel": lambda name, pairs: {
        f"{name}.en": "".join(f"{p.source}\n" for p in pairs), f"{name}.de": "".join(f"{p.target}\n" for p in pairs)
    },
    "parallel, one gzipped": lambda name, pairs: {
        f"{name}.en.gz": "".join(f"{p.source}\n" for p in pairs), f"{name}.de": "".join(f"{p.target}\n" for p in pairs)
    },
}  # fmt: skip


def write(folder, files):
    """A folder of files of text or bytes; those called .gz are gzipped, if they are text."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        zipped = name.endswith(".gz") and isinstance(content, str)
        (folder / name).write_bytes(gzip.compress(data) if zipped else data)
    return str(folder)


def corpus(folder, form="tsv", dev="dev", splits=SPLITS):
    files = {}
    for name, pairs in splits.items():
        files |= FORMS[form](dev if name == "validation" else name, pairs)
    return write(folder, files)


def error_of(folder, files, languages=EN_DE):
    """The message about a corpus whose other files are right."""
    good = {"train.tsv": "a\tb\n", "dev.tsv": "c\td\n", "test.tsv": "e\tf\n"}
    stems = {name.split(".")[0] for name in files}
    kept = {name: text for name, text in good.items() if name.split(".")[0] not in stems}
    with pytest.raises(UserError) as caught:
        from_folder(write(folder, kept | files), languages)
    text = str(caught.value)
    assert "\n" not in text
    return text.replace(str(folder), "ROOT")


# Reading


@pytest.mark.parametrize("form", FORMS)
def test_every_shape_holds_the_same_pairs(tmp_path, form):
    assert from_folder(corpus(tmp_path, form), EN_DE).splits == SPLITS


@pytest.mark.parametrize("dev", ["dev", "validation", "valid", "val"])
def test_a_validation_split_may_be_called_by_any_of_its_names(tmp_path, dev):
    assert from_folder(corpus(tmp_path, dev=dev), Languages()).splits == SPLITS


def test_two_columns_and_source_and_target_need_no_languages(tmp_path):
    for form in ("tsv", "source and target"):
        assert from_folder(corpus(tmp_path / form, form), Languages()).splits == SPLITS


def test_a_validation_split_may_be_missing(tmp_path):
    assert set(from_folder(corpus(tmp_path, splits={"train": PAIRS, "test": TEST}), EN_DE).splits) == {"train", "test"}


def test_shapes_may_differ_between_splits(tmp_path):
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
    with pytest.raises(UserError, match=r"data\.reverse is for two-column files.*dev\.de, dev\.en: swap data"):
        from_folder(root, EN_DE, reverse=True)


def test_nothing_is_quoted_missing_or_a_number(tmp_path):
    odd = [("NA", "null"), ("", "nan"), ("1.50", "007"), ('a "b', 'c" d'), ("'", '"'), ("# x", "\\N"), ("a,b", "1e3")]
    odd = [(a or "None", b) for a, b in odd]
    root = write(tmp_path, {"train.tsv": "".join(f"{a}\t{b}\n" for a, b in odd), "test.tsv": "a\tb\n"})
    assert from_folder(root, EN_DE).splits["train"] == odd


@given(pairs=st.lists(pair, min_size=1, max_size=5))
@pytest.mark.parametrize("form", ["tsv", "codes", "parallel"])
def test_any_text_is_read_as_it_was_written(tmp_path_factory, form, pairs):
    root = corpus(tmp_path_factory.mktemp("corpus"), form, splits={"train": pairs, "test": TEST})
    assert from_folder(root, EN_DE).splits["train"] == pairs


def test_a_line_of_json_may_hold_line_ends_and_tabs(tmp_path):
    odd = [Sentences("a\nb\tc", "d\r\ne")]
    assert from_folder(corpus(tmp_path, "codes", splits={"train": odd, "test": TEST}), EN_DE).splits["train"] == odd


def test_blanks_around_a_sentence_stay(tmp_path):
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


# What is wrong with a folder


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train.tsv": "a\tb\na\tb\tc\n"},
         "ROOT/train.tsv:2: a line must be source<TAB>target, but has 3 fields: 'a\tb\tc'"),
        ({"train.tsv": "a\tb\n\n"}, "ROOT/train.tsv:2: a line must be source<TAB>target, but has 1 field: ''"),
        ({"test.tsv": "a\tb\nc\t \n"}, "ROOT/test.tsv:2: a sentence must not be empty"),
        ({"test.tsv": "\tb\n"}, "ROOT/test.tsv:1: a sentence must not be empty"),
        ({"dev.tsv": b"a\tb\nc\td\nx\xffy\tz\n"}, "ROOT/dev.tsv:3: byte 2 of the line is not UTF-8"),
        ({"train.tsv": "a\tb\n".encode("utf-16")}, "ROOT/train.tsv:1: byte 1 of the line is not UTF-8"),
        ({"train.tsv": ""}, "ROOT/train.tsv is empty"),
        ({"train.tsv": "\ufeff"}, "ROOT/train.tsv is empty"),
        ({"train.tsv.gz": ""}, "ROOT/train.tsv.gz is empty"),
        ({"train.jsonl": '{"en": "a", "de": "b"}\n{"en"\n'}, "ROOT/train.jsonl:2: a line must be JSON, but is not"),
        ({"train.jsonl": '["a", "b"]\n'}, "ROOT/train.jsonl:1: a line must be a JSON object, but is '[\"a\", \"b\"]'"),
        ({"train.jsonl": '{"en": 5, "de": "b"}\n'}, "ROOT/train.jsonl:1: 'en' must be text, but is 5"),
        ({"train.jsonl": '{"en": "a", "de": null}\n'}, "ROOT/train.jsonl:1: 'de' must be text, but is null"),
        ({"train.jsonl": '{"en": "a", "de": ""}\n'}, "ROOT/train.jsonl:1: 'de' must not be empty"),
        ({"train.jsonl": '{"en": "\\ud83d", "de": "b"}\n'}, "ROOT/train.jsonl:1: 'en' holds half of a surrogate pair"),
        ({"train.jsonl": '{"en": "a", "dee": "b"}\n'},
         "ROOT/train.jsonl:1: unknown data.target_language 'de'; expected one of: en, dee; did you mean 'dee'?"),
        ({"train.en": "a\nb\n", "train.de": "c\n"}, "but have 2 and 1"),
        ({"train.en": "a\nb\n", "train.de": "c\n\n"}, "ROOT/train.de:2: a sentence must not be empty"),
        ({"train.en": "a\n"}, "ROOT/train.en must have a file of the other language beside it, of en and de"),
        ({"train.tsv": "a\tb\n", "train.tsv.gz": "a\tb\n"},
         "ROOT: a split must be one file or two parallel ones, but one is train.tsv, train.tsv.gz"),
        ({"dev.tsv": "a\tb\n", "valid.tsv": "a\tb\n"}, "but one is dev.tsv, valid.tsv"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_is_named_with_its_place(tmp_path, files, message):
    assert message in error_of(tmp_path, files)


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-9], lambda data: b"a\tb\n", lambda data: data[:12] + b"\xff" * 9]
)
def test_a_gzip_file_that_is_not_whole_is_refused(tmp_path, spoil):
    content = spoil(gzip.compress(tsv(PAIRS * 20).encode()))
    assert "ROOT/train.tsv.gz is not a whole gzip file: " in error_of(tmp_path, {"train.tsv.gz": content})


def test_parallel_files_of_unequal_length_are_both_named(tmp_path):
    assert error_of(tmp_path, {"test.en": "a\n", "test.de.gz": "b\nc\n"}) == (
        "ROOT/test.en and ROOT/test.de.gz must have the same number of lines, but have 1 and 2"
    )


@pytest.mark.parametrize("missing", ["train", "test"])
def test_a_folder_without_train_or_test_is_met_with_what_it_holds(tmp_path, missing):
    root = corpus(tmp_path, splits={name: pairs for name, pairs in SPLITS.items() if not name.startswith(missing)})
    held = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(UserError) as caught:
        from_folder(root, EN_DE)
    assert f"must hold a {missing} split as {missing}.tsv, {missing}.jsonl, or {missing}.<source>" in str(caught.value)
    assert str(caught.value).endswith(f"but holds {', '.join(held)}")


def test_parallel_files_need_the_languages_to_be_seen(tmp_path):
    root = corpus(tmp_path, "parallel")
    for languages in (Languages(), Languages("fr", "it")):
        with pytest.raises(UserError, match=r"train\.<target> with data\.source and data\.target.*holds dev\.de, dev"):
            from_folder(root, languages)


def test_columns_of_languages_need_to_be_named(tmp_path):
    root = corpus(tmp_path, "translation")
    for languages in (Languages(), Languages("en", ""), Languages("", "de")):
        with pytest.raises(
            UserError, match=r"dev\.jsonl\.gz:1: data\.source and data\.target must be set, to two of en, de$"
        ):
            from_folder(root, languages)


def test_a_folder_that_is_not_there_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match=r"^data\.root: can't read .*nowhere: No such file or directory$"):
        from_folder(str(tmp_path / "nowhere"), EN_DE)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"^data\.root: can't read .*file: Not a directory$"):
        from_folder(str(tmp_path / "file"), EN_DE)


def test_a_folder_called_like_a_file_is_a_user_error(tmp_path):
    (tmp_path / "train.tsv").mkdir()
    assert error_of(tmp_path, {"train.x": ""}) == "can't read ROOT/train.tsv: Is a directory"


# The hub


def rows_of(form):
    [content] = FORMS[form]("x", PAIRS).values()
    return [json.loads(line) for line in content.removesuffix("\n").split("\n")]


@pytest.mark.parametrize("form", ["source and target", "codes", "translation"])
def test_one_adapter_reads_every_shape_of_row(form):
    assert [pair_of(row, EN_DE, "here") for row in rows_of(form)] == PAIRS


def test_columns_called_source_and_target_need_no_codes_and_give_way_to_codes():
    row = {"source": "wmt", "target": "news", "en": "a", "de": "b"}
    assert pair_of(row, Languages(), "here") == ("wmt", "news")
    assert pair_of(row, EN_DE, "here") == ("a", "b")


COMMIT = "0123456789abcdef0123456789abcdef01234567"


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


def loaded(splits=("train", "validation", "test", "test2017"), form="translation"):
    return datasets.DatasetDict({name: datasets.Dataset.from_list(rows_of(form)) for name in splits})


def test_the_hub_gives_the_same_pairs_and_the_commit_they_are_of(hub):
    asked = hub(loaded)
    found = from_hub("someone/set", "de-en", "refs/convert/parquet", EN_DE)
    assert asked == [("someone/set", "de-en", "refs/convert/parquet")]
    assert found.commit == COMMIT
    assert found.splits == dict.fromkeys(("train", "validation", "test", "test2017"), PAIRS)


@pytest.mark.parametrize("commit", [None, "", "0123456789abcdef"])
def test_neither_configuration_nor_revision_nor_commit_need_be_known(hub, commit):
    asked = hub(loaded, commit)
    assert from_hub("someone/set", "", "", EN_DE).commit == ""
    assert asked == [("someone/set", None, None)]


def test_splits_of_the_hub_without_a_role_are_left_alone(hub):
    hub(lambda: loaded(("train", "dev", "test", "unsupervised")))
    assert set(from_hub("someone/set", "", "", EN_DE).splits) == {"train", "validation", "test"}


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (("train", "dev"), "'someone/set' must have a train and a test split, but has train, dev"),
        (("test",), "'someone/set' must have a train and a test split, but has test"),
        (
            ("train", "dev", "validation", "test"),
            "'someone/set' has two splits of one role: train, dev, validation, test",
        ),
    ],
)
def test_a_set_without_the_splits_is_refused(hub, splits, message):
    hub(lambda: loaded(splits))
    with pytest.raises(UserError, match=f"^data.hub: {message}$"):
        from_hub("someone/set", "", "", EN_DE)


def test_a_row_of_the_hub_that_is_no_pair_is_named(hub):
    good, bad = {"en": "a", "de": "b"}, {"en": "c", "de": None}
    parts = {"train": [good, bad], "test": [good]}
    hub(lambda: datasets.DatasetDict({name: datasets.Dataset.from_list(part) for name, part in parts.items()}))
    with pytest.raises(UserError, match=r"^data\.hub: 'someone/set', row 2 of train: 'de' must be text, but is null$"):
        from_hub("someone/set", "", "", EN_DE)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("Dataset scripts are no longer supported, but found wmt14.py"),
         r"Dataset scripts are .*wmt14\.py\. Its parquet copy.* is at data\.revision=refs/convert/parquet"),
        (ConnectionError("Couldn't reach 'x' on the Hub (OfflineModeIsEnabled)\nmore"),
         r"Couldn't reach 'x' .*\. Offline, use data\.root, or load it once while online"),
        (ValueError("Config name is missing.\nPlease pick one"), r"Config name is missing\."),
        (KeyError(), "KeyError"),
    ],
)  # fmt: skip
def test_whatever_fails_on_the_hub_is_one_line_with_a_way_out(hub, error, message):
    def answer():
        raise error

    hub(answer)
    with pytest.raises(UserError, match=f"^data.hub: can't load 'someone/set': {message}$"):
        from_hub("someone/set", "", "", EN_DE)


def test_the_library_itself_is_called_rightly(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    root = corpus(tmp_path / "set", "codes", dev="validation", splits={"train": PAIRS, "test": TEST})
    try:
        datasets.disable_progress_bars()
        assert from_hub(root, "", "", EN_DE) == ({"train": PAIRS, "test": TEST}, "")
    finally:
        datasets.enable_progress_bars()


def test_a_hub_that_is_out_of_reach_is_a_user_error(tmp_path):
    code = (
        "from tasks.translation.corpus import Languages, from_hub\nfrom tasks.errors import UserError\n"
        "try:\n    from_hub('someone/set', '', '', Languages())\nexcept UserError as error:\n    print(error)\n"
    )
    offline = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, env=offline, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("data.hub: can't load 'someone/set': ")
    assert done.stdout.endswith("Offline, use data.root, or load it once while online\n")
    assert done.stdout.count("\n") == 1


# Subsets and overlap


@given(pairs=st.lists(pair, max_size=8), data=st.data())
def test_the_order_of_a_draw_knows_nothing_of_the_order_of_the_file(pairs, data):
    assert shuffled(data.draw(st.permutations(pairs)), 3) == shuffled(pairs, 3)
    assert sorted(shuffled(pairs, 3)) == sorted(pairs)


@given(pairs=st.lists(pair, min_size=2, max_size=8, unique=True))
def test_a_pair_keeps_its_place_among_the_others_when_one_is_taken_away(pairs):
    assert [p for p in shuffled(pairs, 0) if p != pairs[0]] == shuffled(pairs[1:], 0)


def test_a_subset_is_a_sample_of_all_parts_of_a_file():
    pairs = [Sentences(f"part {i // 250}", f"{i}") for i in range(1000)]  # of four origins, one after the other
    for seed in range(3):
        origins = [p.source for p in shuffled(pairs, seed)[:200]]
        assert all(30 < origins.count(f"part {n}") < 70 for n in range(4))  # 50 +- 3 standard deviations


def test_another_subset_seed_draws_other_pairs():
    pairs = [Sentences(f"a{i}", f"b{i}") for i in range(1000)]
    shared = set(shuffled(pairs, 0)[:100]) & set(shuffled(pairs, 1)[:100])
    assert len(shared) < 30  # 10 if the two are independent


def rows(text):
    return [row_of(Sentences(*words.split("/"))) for words in text.split()]


def test_overlap_counts_held_out_pairs_by_source_by_target_and_by_both():
    held_out = {"validation": rows("a/9 a/1 a/1"), "test": rows("b/1 8/2 c/c a/2 3/c")}
    assert overlaps(rows("a/1 b/2 c/3 c/3"), held_out) == {
        "validation": {"sources": 3, "targets": 2, "pairs": 2},
        "test": {"sources": 3, "targets": 3, "pairs": 0},
    }


@given(st.lists(alike, max_size=12), st.lists(alike, max_size=5))
def test_nothing_that_is_held_out_by_source_or_target_is_trained_on(train, held_out):
    sieve = Sieve({"test": map(row_of, held_out)}, 0)
    kept = [row.pair for row in sieve.kept(map(row_of, train))]
    assert kept == [a for a in train if not any(a.source == b.source or a.target == b.target for b in held_out)]
    assert sieve.left_out == {"overlap": len(train) - len(kept), "length": 0}


def test_a_corpus_that_leaks_is_found_out():
    train = rows(" ".join(f"s{i}/t{i}" for i in range(400)))
    leaky = {"test": rows(" ".join(f"s{i}/{'t' if i < 324 else 'u'}{i}" for i in range(300, 1298)))}
    assert overlaps(train, leaky) == {"test": {"sources": 100, "targets": 24, "pairs": 24}}
    kept = list(Sieve(leaky, 0).kept(train))
    assert len(kept) == 300
    assert overlaps(kept, leaky) == {"test": {"sources": 0, "targets": 0, "pairs": 0}}


REAL_OVERLAP = {  # as the corpora's own notes give it: sources and targets of dev and of test that stand in train
    "umsuka-en-zu": ((0, 0), (0, 0)),  # upstream 381 of 998 test sources do
    "tanaka-en-ja": ((77, 0), (60, 0)),
    "multi30k-en-de": ((1, 1), (0, 0)),
}


@pytest.mark.parametrize("name", REAL_OVERLAP)
def test_the_overlap_of_real_corpora_is_as_their_notes_say(name):
    if not REAL.is_dir():
        pytest.skip("no copy of the corpora beside the repository")
    found = {
        split: list(map(row_of, pairs)) for split, pairs in from_folder(str(REAL / name), Languages()).splits.items()
    }
    counts = overlaps(found["train"], {split: found[split] for split in ("validation", "test")})
    assert tuple((count["sources"], count["targets"]) for count in counts.values()) == REAL_OVERLAP[name]


# Length


def test_longer_sources_are_tests_by_how_much_longer_they_are():
    def of(*lengths):
        return [row_of(Sentences(" ".join("x" * n), f"{n}")) for n in lengths]

    held_out = {"validation": of(1, 4, 5), "test": of(2, 4, 5, 6, 7, 8), "test2017": of(1, 9)}
    found = by_length(held_out, 4, [*of(6), *of(16, 17, 10)], [])
    assert {name: [row.length for row in split] for name, split in found.items()} == {
        "validation": [1, 4], "test": [2, 4], "test2017": [1, 9],
        "test_1_5x": [5, 6], "test_2x": [7, 8], "test_4x": [16, 10],
    }  # fmt: skip
    assert by_length(held_out, 0, of(9), []) == held_out
    assert set(by_length({"test": of(5)}, 4, [], [])) == {"test_1_5x"}
    with pytest.raises(
        UserError, match=r"data\.max_train_length must be less than the words of the longest source, but is 8"
    ):
        by_length(held_out, 8, [], [])
    with pytest.raises(
        UserError, match=r"data\.max_train_length makes a split 'test_2x', but the corpus has one already"
    ):
        by_length({"test_2x": of(5)}, 4, [], [])


def test_no_longer_test_pair_has_a_target_that_is_trained_on():
    def row(source, target):
        return row_of(Sentences(source, target))

    longer = [row("a b c", "one"), row("a b d", "two"), row("a b d", "two")]
    found = by_length({"test": [row("x", "y")]}, 2, longer, [row("a", "one")])
    assert [r.pair.target for r in found["test_1_5x"]] == ["two"]


def test_a_sieve_keeps_long_sources_apart():
    sieve = Sieve({"test": [row_of(Sentences("d", "d"))]}, 1)
    assert [row.pair.source for row in sieve.kept(map(row_of, [*PAIRS, *TEST, Sentences("d", "e")]))] == ["two"]
    assert [row.pair for row in sieve.longer] == PAIRS
    assert sieve.left_out == {"overlap": 1, "length": 3}


def test_words_are_what_stands_between_white_space():
    assert row_of(Sentences("a  b\u00a0c.", "x"), {"kind": "odd"}).tags == {"kind": "odd", "length": 3}


def test_lower_case_is_all_text_of_all_splits(tmp_path):
    root = write(tmp_path, {"train.tsv": "A\tÄB\n", "test.tsv": "C\tD\n"})
    assert lowercased(from_folder(root, EN_DE)).splits == {"train": [("a", "äb")], "test": [("c", "d")]}
