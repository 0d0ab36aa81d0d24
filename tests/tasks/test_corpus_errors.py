"""Errors in a corpus folder name the file and the line."""

import gzip
import json

import pytest

from tests.tasks.corpora import (
    EN_DE,
    PAIRS,
    SPLITS,
    corpus,
    tsv,
    write,
)
from tests.tasks.translation_tasks import translation
from tfstudy.errors import UserError
from tfstudy.tasks.translation.corpus import Languages
from tfstudy.tasks.translation.folder import from_folder


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


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train.tsv": "a\tb\na\tb\tc\n"},
         "ROOT/train.tsv:2: expected source<TAB>target, but the line has 3 fields: 'a\\tb\\tc'"),
        ({"train.tsv": "a\tb\n\n"}, "ROOT/train.tsv:2: expected source<TAB>target, but the line has 1 field: ''"),
        ({"dev.tsv": b"a\tb\nc\td\nx\xffy\tz\n"}, "ROOT/dev.tsv:3: byte 2 of the line is not UTF-8"),
        ({"train.tsv": "a\tb\n".encode("utf-16")}, "ROOT/train.tsv is not UTF-8 but looks like UTF-16; convert"),
        ({"train.tsv": "a\tb\n".encode("utf-16-be")}, "ROOT/train.tsv is not UTF-8 but looks like UTF-16"),
        ({"test.tsv": "en\tde\na\tb\n"}, "ROOT/test.tsv:1: the first line names the columns, 'en\\tde': remove it"),
        ({"test.tsv": "source\ttarget\na\tb\n"}, "the first line names the columns, 'source\\ttarget': remove it"),
        ({"test.tsv": "Source\tTarget\na\tb\n"}, "the first line names the columns"),
        ({"test.tsv": "English\tGerman\na\tb\n"}, "the first line names the columns"),
        ({"train.tsv": gzip.compress(b"a\tb\n")}, "ROOT/train.tsv is gzipped: name it train.tsv.gz"),
        ({"train.jsonl": "{}\n"}, "ROOT/train.jsonl:1: expected a source and a target, but the row has no keys"),
        ({"train.tsv": "a\tb\rc\td\r"}, "ROOT/train.tsv ends its lines with carriage returns alone; convert it: tr"),
        ({"train.tsv": ""}, "ROOT/train.tsv is empty"),
        ({"train.tsv": "\ufeff"}, "ROOT/train.tsv is empty"),
        ({"train.tsv.gz": ""}, "ROOT/train.tsv.gz is empty"),
        ({"train.jsonl": '{"en": "a", "de": "b"}\n{"en"\n'}, "ROOT/train.jsonl:2: invalid JSON"),
        ({"train.jsonl": '["a", "b"]\n'}, "train.jsonl:1: expected a JSON object, but the line is '[\"a\", \"b\"]'"),
        ({"train.jsonl": '{"en": 5, "de": "b"}\n'}, "ROOT/train.jsonl:1: 'en' must be text, but is 5"),
        ({"train.jsonl": '{"en": "a", "de": null}\n'}, "ROOT/train.jsonl:1: 'de' must be text, but is null"),
        ({"train.jsonl": '{"en": "\\ud83d", "de": "b"}\n'}, "train.jsonl:1: 'en' contains half of a surrogate pair"),
        ({"train.jsonl": '{"en": "a", "dee": "b"}\n'},
         "ROOT/train.jsonl:1: no 'de' (data.target_language), only en, dee; did you mean 'dee'?"),
        ({"train.jsonl": '{"en": "a", "dee": "b", "source": "a", "target": "b"}\n'},
         "ROOT/train.jsonl:1: no 'de' (data.target_language), only en, dee, source, target; did you mean 'dee'?"),
        ({"train.en": "a\nb\n", "train.de": "c\n"}, "but have 2 and 1"),
        ({"train.en": "a\n"},
         "ROOT/train.en: the file of the other language is missing (data.source_language=en, data.target_language=de)"),
        ({"train.tsv": "a\tb\n", "train.tsv.gz": "a\tb\n"},
         "two parallel files per split, but found train.tsv, train.tsv.gz"),
        ({"dev.tsv": "a\tb\n", "valid.tsv": "a\tb\n"}, "but found dev.tsv, valid.tsv"),
    ],
)  # fmt: skip
def test_an_error_in_a_file_is_reported_with_its_location(tmp_path, files, message):
    assert message in error_of(tmp_path, files)


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-9], lambda data: b"a\tb\n", lambda data: data[:12] + b"\xff" * 9]
)
def test_an_incomplete_gzip_file_is_refused(tmp_path, spoil):
    content = spoil(gzip.compress(tsv(PAIRS * 20).encode()))
    assert "ROOT/train.tsv.gz is not a complete gzip file: " in error_of(tmp_path, {"train.tsv.gz": content})


def test_parallel_files_of_unequal_length_are_both_named(tmp_path):
    assert error_of(tmp_path, {"test.en": "a\n", "test.de.gz": "b\nc\n"}) == (
        "ROOT/test.en and ROOT/test.de.gz must have the same number of lines, but have 1 and 2"
    )


@pytest.mark.parametrize(("languages", "reverse"), [(EN_DE, True), (Languages(), False)])
def test_a_first_line_of_codes_is_recognised_reversed_and_by_the_name_of_the_folder(tmp_path, languages, reverse):
    root = corpus(tmp_path / "toy-en-de")
    (tmp_path / "toy-en-de/test.tsv").write_text("en\tde\na\tb\n")
    with pytest.raises(UserError, match="the first line names the columns"):
        from_folder(root, languages, reverse)


def test_a_name_of_a_test_set_that_no_file_of_predictions_could_have_is_none(tmp_path):
    root = corpus(tmp_path)
    (tmp_path / f"test{'a' * 200}.tsv").write_text("a\tb\n")
    read = from_folder(root, EN_DE)
    assert (set(read.splits), [name[:6] for name in read.unread]) == (set(SPLITS), ["testaa"])


@pytest.mark.parametrize("missing", ["train", "test"])
def test_a_folder_without_train_or_test_is_refused_with_its_contents(tmp_path, missing):
    root = corpus(tmp_path, splits={name: pairs for name, pairs in SPLITS.items() if not name.startswith(missing)})
    held = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(UserError) as caught:
        from_folder(root, EN_DE)
    assert f"has no {missing} split; expected {missing}.tsv, {missing}.jsonl" in str(caught.value)
    assert str(caught.value).endswith(f"contains {', '.join(held)}")


def test_parallel_files_need_the_languages(tmp_path):
    root = corpus(tmp_path, "parallel")
    with pytest.raises(UserError, match=r"set data\.source_language and data\.target_language to two of de, en$"):
        from_folder(root, Languages())
    with pytest.raises(UserError, match=r"unknown data\.target_language 'dee'; did you mean 'de'\?"):
        from_folder(root, Languages("en", "dee"))


def test_columns_of_languages_need_the_languages(tmp_path):
    root = corpus(tmp_path, "translation")
    for languages in (Languages(), Languages("en", ""), Languages("", "de")):
        with pytest.raises(
            UserError, match=r"dev\.jsonl\.gz:1: .*data\.source_language and data\.target_language.* en, de$"
        ):
            from_folder(root, languages)


def test_a_folder_of_corpora_is_refused_with_one_of_them(tmp_path):
    corpus(tmp_path / "corpora/toy-en-de", "tsv")
    with pytest.raises(UserError, match=r"did you mean '.*corpora/toy-en-de'\? Expected train\.tsv"):
        from_folder(str(tmp_path / "corpora"), EN_DE)


def test_a_relative_folder_is_looked_for_in_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=rf"can't read corpora/toy in {tmp_path}: No such file or directory$"):
        from_folder("corpora/toy", EN_DE)


@pytest.mark.parametrize("root", ["~nosuchuser/x", "a\0b", "\ud800"])
def test_what_can_not_be_a_path_is_a_user_error(root):
    with pytest.raises(UserError, match=r"^data\.root: '.*' can't be a path: "):
        translation(split="corpus", root=root)


def test_a_link_to_itself_is_a_user_error(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(UserError, match=r"^data\.root: can't read .*loop: Too many levels of symbolic links"):
        translation(split="corpus", root=str(tmp_path / "loop"))


def test_of_a_row_with_many_keys_some_are_shown(tmp_path):
    row = json.dumps(dict.fromkeys(map(str, range(100_000)), "a"))
    message = error_of(tmp_path, {"train.jsonl": row + "\n"})
    assert message.startswith("ROOT/train.jsonl:1: no 'en' (data.source_language), only 0, 1, 2, ")
    assert len(message) < 1000


def test_a_missing_folder_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match=r"^data\.root: can't read .*nowhere: No such file or directory$"):
        from_folder(str(tmp_path / "nowhere"), EN_DE)
    (tmp_path / "corpora/toy-en-de").mkdir(parents=True)
    with pytest.raises(UserError, match=r"No such file or directory; did you mean 'toy-en-de'\?$"):
        from_folder(str(tmp_path / "corpora/toy-en-dee"), EN_DE)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"^data\.root: can't read .*file: Not a directory$"):
        from_folder(str(tmp_path / "file"), EN_DE)


def test_a_folder_called_like_a_file_is_a_user_error(tmp_path):
    (tmp_path / "train.tsv").mkdir()
    assert error_of(tmp_path, {"train.x": ""}) == "can't read ROOT/train.tsv: Is a directory"
