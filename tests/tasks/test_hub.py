"""Corpora on the Hugging Face hub."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import datasets
import pyarrow
import pytest

from tests.tasks.corpora import EN_DE, FORMS, HERE, PAIRS, TEST, corpus
from tfstudy.errors import UserError
from tfstudy.tasks.translation.corpus import Languages, pair_of
from tfstudy.tasks.translation.hub import from_hub


def rows_of(form):
    [content] = FORMS[form]("x", PAIRS).values()
    return [json.loads(line) for line in content.removesuffix("\n").split("\n")]


@pytest.mark.parametrize("form", ["source and target", "codes", "translation"])
def test_every_format_of_row_is_read(form):
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
def test_configuration_revision_and_commit_are_optional(hub, commit):
    asked = hub(loaded, commit)
    assert from_hub("someone/set", "", "", EN_DE).commit == ""
    assert asked == [("someone/set", None, None)]


def test_splits_of_the_hub_without_a_role_are_ignored(hub):
    hub(lambda: loaded(("train", "dev", "test", "unsupervised")))
    assert set(from_hub("someone/set", "", "", EN_DE).splits) == {"train", "validation", "test"}


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (("train", "dev"), "'someone/set' needs a train and a test split, but has train, dev"),
        (("test",), "'someone/set' needs a train and a test split, but has test"),
        (
            ("train", "dev", "validation", "test"),
            "'someone/set' has two splits with the same role: train, dev, validation, test",
        ),
    ],
)
def test_a_set_without_the_splits_is_refused(hub, splits, message):
    hub(lambda: loaded(splits))
    with pytest.raises(UserError, match=f"^data.hub: {message}$"):
        from_hub("someone/set", "", "", EN_DE)


def test_an_invalid_row_of_the_hub_is_reported(hub):
    good, bad = {"en": "a", "de": "b"}, {"en": "c", "de": None}
    parts = {"train": [good, bad], "test": [good]}
    hub(lambda: datasets.DatasetDict({name: datasets.Dataset.from_list(part) for name, part in parts.items()}))
    with pytest.raises(UserError, match=r"^data\.hub: 'someone/set', train, row 2: 'de' must be text, but is null$"):
        from_hub("someone/set", "", "", EN_DE)


def test_audio_beside_the_sentences_is_not_read(hub):
    text, speech = datasets.Value("string"), [{"bytes": b"no audio", "path": ""}]
    schema = datasets.Features({"en": text, "de": text, "speech": datasets.Audio()}).arrow_schema
    rows = datasets.Dataset(pyarrow.table({"en": ["a"], "de": ["b"], "speech": speech}, schema))
    hub(lambda: datasets.DatasetDict({"train": rows, "test": rows}))
    assert from_hub("someone/set", "", "", EN_DE).splits["train"] == [("a", "b")]


def test_text_of_the_hub_that_is_not_utf8_is_one_line(hub):
    columns = {"test": ["b"], "train": pyarrow.array([b"\xff"]).cast(pyarrow.string(), safe=False)}
    parts = {name: datasets.Dataset(pyarrow.table({"en": ["a"], "de": column})) for name, column in columns.items()}
    hub(lambda: datasets.DatasetDict(parts))
    with pytest.raises(UserError, match=r"^data\.hub: can't read 'someone/set': 'utf-8' codec can't decode"):
        from_hub("someone/set", "", "", EN_DE)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("Dataset scripts are no longer supported, but found wmt14.py"),
         r"Dataset scripts are .*wmt14\.py\. .*data\.revision=refs/convert/parquet"),
        (ConnectionError("Couldn't reach 'x' on the Hub (OfflineModeIsEnabled)\nmore"),
         r"Couldn't reach 'x' .*\. Offline, use data\.root, or load the data set once while online"),
        (ValueError("Config name is missing.\nPlease pick one"), r"Config name is missing\."),
        (KeyError(), "KeyError"),
    ],
)  # fmt: skip
def test_any_error_of_the_hub_is_one_line_with_a_solution(hub, error, message):
    def answer():
        raise error

    hub(answer)
    with pytest.raises(UserError, match=f"^data.hub: can't load 'someone/set': {message}$"):
        from_hub("someone/set", "", "", EN_DE)


def test_the_library_itself_is_called_correctly(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    root = corpus(tmp_path / "set", "codes", dev="validation", splits={"train": PAIRS, "test": TEST})
    try:
        datasets.disable_progress_bars()
        assert from_hub(root, "", "", EN_DE)[:2] == ({"train": PAIRS, "test": TEST}, "")
    finally:
        datasets.enable_progress_bars()


def test_a_local_folder_of_parquet_files_is_a_data_set(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "set" / "data"
    folder.mkdir(parents=True)
    datasets.disable_progress_bars()
    try:
        for split, rows in loaded(("train", "validation", "test")).items():
            rows.to_parquet(str(folder / f"{split}-00000-of-00001.parquet"))
        found = from_hub(str(tmp_path / "set"), "", "", EN_DE)
    finally:
        datasets.enable_progress_bars()
    assert found.splits == dict.fromkeys(("train", "validation", "test"), PAIRS)
    assert found.places["test"][0].endswith(", test, row ")


def test_an_unreachable_hub_is_a_user_error(tmp_path):
    code = (
        "from tfstudy.tasks.translation.corpus import Languages\nfrom tfstudy.tasks.translation.hub import from_hub\n"
        "from tfstudy.errors import UserError\n"
        "try:\n    from_hub('someone/set', '', '', Languages())\nexcept UserError as error:\n    print(error)\n"
    )
    offline = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, env=offline, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("data.hub: can't load 'someone/set': ")
    assert done.stdout.endswith("Offline, use data.root, or load the data set once while online\n")
    assert done.stdout.count("\n") == 1
