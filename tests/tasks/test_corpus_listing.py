"""The list of corpora in a folder."""

import pytest

from tests.tasks.corpora import FORMS, REAL, corpus, write
from tests.tasks.translation_tasks import invented
from tfstudy.errors import UserError
from tfstudy.tasks.translation.listing import licence_of, list_corpora


def row(lines, split):
    [line] = [line for line in lines if line.startswith(f"  {split} ")]
    return line.split()[1:]


@pytest.mark.parametrize("form", FORMS)
def test_every_format_is_listed_without_being_given_its_languages(tmp_path, form):
    corpus(tmp_path / "some-en-de", form)
    lines = list(list_corpora(tmp_path))
    assert lines[0] == "some-en-de  licence: unknown"
    assert row(lines, "train")[0] == "3"
    assert row(lines, "test2017") == ["2", "2", "2", "0", "0", "0"]
    assert row(lines, "validation") == ["1", "1", "1", "0", "0", "0"]


def test_overlap_and_faults_of_every_split_are_listed(tmp_path):
    train = [("a b", "x"), ("a b", "x"), ("a b", "y"), ("c", ""), ("d", "d")]
    root = write(
        tmp_path, {"train.tsv": "".join(f"{a}\t{b}\n" for a, b in train), "test.tsv": "a b\tx\na b\tq\nr\td\n"}
    )
    lines = list(list_corpora(tmp_path))
    assert row(lines, "train") == ["5", "8", "4"]
    assert row(lines, "test") == ["3", "5", "3", "2", "2", "1"]
    assert "  train: 1 with an empty side, 1 with identical sides, 1 that occurred before, 1" in lines[5]
    assert str(tmp_path) == root


def test_splits_with_other_normal_forms_are_listed(tmp_path):
    write(tmp_path, {"train.tsv": "a\tu\u0308\n", "test.tsv": "b\t\u00fc\n"})
    assert "not composed are 100% of train, 0% of test" in " ".join(map(str.strip, list_corpora(tmp_path)))


@pytest.mark.parametrize(
    ("files", "licence"),
    [
        ({"README.md": "# About\n\n- **Licence:** CC BY 4.0 (see there)\n"}, "CC BY 4.0 (see there)"),
        ({"README": "License: MIT\n"}, "MIT"),
        ({"LICENSE": "\nMIT License\n\nCopyright\n"}, "MIT License"),
        ({"corpus.yaml": "license: CC0\n", "README.md": "Licence: other"}, "CC0"),
        ({"corpus.yaml": "a: [", "README.md": "Licensed to nobody"}, "unknown"),
        ({"LICENSE": b"\xff\xfe\x00"}, "\ufffd\ufffd"),
        ({"README.md": "licence" + ":" * 90_000}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_the_licence_is_read_from_its_usual_places(tmp_path, files, licence):
    write(tmp_path, files)
    assert licence_of(tmp_path).rstrip("\0") == licence


def test_a_broken_corpus_among_others_is_one_message(tmp_path):
    corpus(tmp_path / "good")
    write(tmp_path / "broken", {"train.tsv": "a\n", "test.tsv": "a\tb\n"})
    (tmp_path / "other").mkdir()
    lines = list(list_corpora(tmp_path))
    assert lines[0].startswith("broken: ")
    assert any(line.startswith("good  licence: unknown") for line in lines)
    with pytest.raises(UserError, match=r"train\.tsv:1: expected source<TAB>target"):
        list(list_corpora(tmp_path / "broken"))


@pytest.mark.parametrize(
    ("name", "message"), [("none", "No such file"), ("file", "Not a directory"), ("", "no corpus")]
)
def test_a_folder_without_corpora_is_an_error(tmp_path, name, message):
    if name == "file":
        (tmp_path / name).touch()
    with pytest.raises(UserError, match=message):
        list(list_corpora(tmp_path / name))


def test_swapped_languages_are_shown_by_the_name_of_the_folder(tmp_path):
    lines = [(f"собака номер {i}", a) for i, (a, _) in enumerate(invented("train", 30))]
    text = "".join(f"{a}\t{b}\n" for a, b in lines)
    write(tmp_path / "some-en-ru", {"train.tsv": text, "test.tsv": text})
    assert "set data.reverse=true" in " ".join(list_corpora(tmp_path))


def parallel(folder, *names):
    return write(folder, dict.fromkeys(names, "a\nb\n"))


@pytest.mark.parametrize("stray", ["train.md", "train.log", "test_2018.cs", "train.py"])
def test_files_that_only_one_split_has_are_no_languages(tmp_path, stray):
    parallel(tmp_path, "train.en", "train.de", "test.en", "test.de", stray)
    assert row(list_corpora(tmp_path), "train")[0] == "2"


@pytest.mark.parametrize("stray", ["train.log", "train.tsv~", "train.tsv.bak", "test.log"])
def test_other_files_beside_two_column_ones_are_no_languages(tmp_path, stray):
    write(tmp_path, {"train.tsv": "a\tb\n", "train.txt": "x", stray: "x", "test.tsv": "a\tb\n"})
    assert row(list_corpora(tmp_path), "train")[0] == "1"


def test_a_further_column_of_text_is_no_language(tmp_path):
    line = '{"en": "a", "de": "b", "domain": "news"}\n'
    write(tmp_path, {"train.jsonl": line, "test.jsonl": line})
    assert row(list_corpora(tmp_path), "train")[0] == "1"


def test_files_of_three_languages_need_a_name_that_chooses_two(tmp_path):
    names = [f"{split}.{code}" for split in ("train", "test") for code in ("en", "de", "fr")]
    parallel(tmp_path / "talks", *names)
    message = "has files of 3 languages, de, en, fr: end its name with two of them, such as talks-de-en"
    assert message in " ".join(map(str.strip, list_corpora(tmp_path)))
    parallel(tmp_path / "talks-en-fr", *names)
    assert row(list_corpora(tmp_path / "talks-en-fr"), "train")[0] == "2"


def test_swapped_parallel_files_are_to_be_renamed(tmp_path):
    files = {"en": [f"собака номер {i}" for i in range(30)], "ru": [source for source, _ in invented("train", 30)]}
    text = {code: "".join(f"{line}\n" for line in lines) for code, lines in files.items()}
    write(tmp_path / "some-en-ru", {f"{split}.{code}": text[code] for split in ("train", "test") for code in files})
    assert "swap the names of the files" in " ".join(map(str.strip, list_corpora(tmp_path)))


def test_columns_stand_below_each_other_with_long_names_of_splits(tmp_path):
    write(tmp_path, dict.fromkeys(("train.tsv", "test_a_long_name.tsv"), "a\tb\n"))
    _, _, head, *rows = list_corpora(tmp_path)
    assert {len(line[: line.index(" 1 ")]) for line in rows[:2]} == {head.index("pairs") + len("pairs") - 2}


def test_a_readme_that_can_not_be_read_is_no_licence(tmp_path, monkeypatch):
    corpus(tmp_path)
    write(tmp_path, {"README.md": "Licence: MIT"})
    monkeypatch.setattr(type(tmp_path), "open", refused)
    assert licence_of(tmp_path) == "unknown"


def refused(*_, **__):
    raise PermissionError(13, "Permission denied")


def test_real_corpora_fit_80_columns_with_the_sizes_of_their_notes():
    if not REAL.is_dir():
        pytest.skip("no copy of the corpora beside the repository")
    lines = list(list_corpora(REAL / "umsuka-en-zu"))
    assert row(lines, "train") == ["3,119", "75,391", "54,905"]
    assert row(lines, "test") == ["998", "23,285", "16,866", "0", "0", "0"]
    assert lines[0].startswith("umsuka-en-zu  licence: CC BY 4.0.")
    assert max(map(len, lines)) <= 80


def test_text_of_a_corpus_is_never_printed_with_control_characters(tmp_path):
    write(tmp_path / "a\x1b[31m", {"train.tsv": "x\n", "README": "Licence: \x1b[31mred"})
    assert all(line.isprintable() for line in list_corpora(tmp_path))


@pytest.mark.parametrize(
    ("text", "licence"),
    [("licence: " + "[" * 90_000, "unknown"), ("a: &a [x]\nb: [*a, *a]\nlicense: 'CC0'\n", "CC0")],
    ids=["deep", "aliases"],
)
def test_a_corpus_yaml_is_read_as_lines(tmp_path, text, licence):
    (tmp_path / "corpus.yaml").write_text(text)
    assert licence_of(tmp_path) == licence
