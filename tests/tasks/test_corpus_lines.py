"""Lines of text files that are hostile: compressed bombs, pipes, folders, other encodings, very long lines."""

import gzip
import os

import pytest

from tfstudy.errors import UserError
from tfstudy.tasks.translation import lines as module
from tfstudy.tasks.translation.lines import lines


def read(path, content):
    path.write_bytes(content)
    return list(lines(path))


def test_only_line_feeds_end_lines(tmp_path):
    assert read(tmp_path / "a", b"a\r\nb\rc\x0bd\xe2\x80\xa8e\n\nf") == ["a", "b\rc\x0bd\u2028e", "", "f"]
    assert read(tmp_path / "a.gz", gzip.compress(b"a\nb\n")) == ["a", "b"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_other_encodings_are_named_with_the_conversion(tmp_path, encoding):
    with pytest.raises(UserError, match="looks like UTF-16; convert it: iconv -f UTF-16 -t UTF-8"):
        read(tmp_path / "a", "a dog\tein Hund\n".encode(encoding))


def test_a_few_zero_bytes_are_text(tmp_path):
    assert read(tmp_path / "a", b"a dog\0\tein Hund\n") == ["a dog\0\tein Hund"]


def test_a_gzip_bomb_is_refused_before_it_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "UNCHECKED", 2**16)
    for bomb in (b"\n" * 2**23, b"a\tb\n" * 2**20):
        with pytest.raises(UserError, match="expands to more than 100 times its size"):
            read(tmp_path / "a.gz", gzip.compress(bomb))
    assert len(read(tmp_path / "a", b"a\tb\n" * 2**18)) == 2**18


def test_one_endless_line_is_refused_with_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_LINE", 2**20)
    with pytest.raises(UserError, match=r"a:2: the line is longer than 1 MiB"):
        read(tmp_path / "a", b"a\n" + b"x" * (2**20 + 1))
    assert len(read(tmp_path / "a", b"x" * 2**20)[0]) == 2**20


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.gz")
    with pytest.raises(UserError, match=r"can't read .*a\.gz: not a regular file"):
        next(lines(tmp_path / "a.gz"))


def test_folders_and_missing_files_are_user_errors(tmp_path):
    (tmp_path / "a").mkdir()
    for name, reason in (("a", "Is a directory"), ("b", "No such file")):
        with pytest.raises(UserError, match=f"can't read .*{name}: {reason}"):
            next(lines(tmp_path / name))
