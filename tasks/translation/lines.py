"""Read the lines of a text file, gzipped or not, one at a time and with bounded memory."""

import gzip
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tfstudy.errors import UserError

MAX_LINE = 2**24  # bytes of one line
UNCHECKED = 2**23  # bytes of text that a gzipped file may hold however small it is
MAX_EXPANSION = 100  # of the bytes beyond: text shrinks by a factor of about 3, a gzip bomb by 1,000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file (gzipped if its name ends in .gz) without line ends and byte order mark.

    A line ends with a line feed, optionally after a carriage return. Raise `UserError` for anything but a regular file
    of UTF-8, for a line of more than 16 MiB, and for a gzipped file that expands to more than 100 times its size.
    """
    try:
        with _opened(path) as raw, gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
                if len(line) > MAX_LINE:
                    raise UserError(f"{path}:{number}: the line is longer than {MAX_LINE // 2**20} MiB")
                if file is not raw:
                    _check_expansion(path, file.tell(), raw.tell())
                yield _text(path, number, line if number > 1 else _first(path, line))
            if not file.tell():
                raise UserError(f"{path} is empty")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path} is not a complete gzip file: {error}") from None
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None


def _opened(path: Path) -> BinaryIO:
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a pipe would wait for its writer
        raise UserError(f"can't read {path}: not a regular file")
    return path.open("rb")


def _check_expansion(path: Path, expanded: int, compressed: int) -> None:
    if expanded > max(UNCHECKED, MAX_EXPANSION * compressed):
        raise UserError(
            f"{path} expands to more than {MAX_EXPANSION} times its size, which text does not; if it is right, "
            "decompress it"
        )


def _first(path: Path, line: bytes) -> bytes:
    """Return the first line without its byte order mark.

    Raise `UserError` if it looks like gzip, UTF-16 or UTF-32, or holds the whole file.
    """
    if line.startswith(b"\x1f\x8b"):
        raise UserError(f"{path} is gzipped: name it {path.name}.gz")
    if line.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")) or 3 * line.count(0) > len(line):
        raise UserError(f"{path} is not UTF-8 but looks like UTF-16; convert it: iconv -f UTF-16 -t UTF-8")
    if line.count(b"\r") > 1 and not line.endswith(b"\n"):
        raise UserError(f"{path} ends its lines with carriage returns alone; convert it: tr '\\r' '\\n'")
    if line == BYTE_ORDER_MARK:
        raise UserError(f"{path} is empty")
    return line.removeprefix(BYTE_ORDER_MARK)


def _text(path: Path, number: int, line: bytes) -> str:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}:{number}: byte {error.start + 1} of the line is not UTF-8") from None
