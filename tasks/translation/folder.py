"""Read a corpus from a folder of .tsv, .jsonl or parallel files, also gzipped.

A line ends with a line feed, optionally after a carriage return. Other line separators such as U+2028 and U+0085 are
part of a sentence, a quotation mark is an ordinary character, and "NA" is a word (readers of CSV differ in all three).
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tasks.errors import UserError
from tasks.translation.corpus import TEST, Corpus, Languages, Sentences, checked_text, pair_of, split_name

EXPECTED_FILES = (
    "{0}.tsv, {0}.jsonl, or parallel files {0}.<source_language> and {0}.<target_language> (optionally .gz)"
)


def from_folder(root: str, languages: Languages, reverse: bool = False) -> Corpus:
    """Read the files `train`, `dev` or `validation`, and `test...` of a folder, in any of the known formats.

    With `reverse`, the columns of two-column files are target and source.
    """
    folder = Path(root).expanduser()
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise UserError(f"data.root: can't read {folder}: {error.strerror}") from None
    files: dict[str, list[Path]] = {}
    for name in names:
        split = split_name(name.partition(".")[0])
        if split and name.removesuffix(".gz").partition(".")[2] in {"tsv", "jsonl", *filter(None, languages)}:
            files.setdefault(split, []).append(folder / name)
    if "train" not in files or not any(TEST.fullmatch(split) for split in files):
        missing = "test" if "train" in files else "train"
        raise UserError(
            f"data.root: {folder} has no {missing} split; expected {EXPECTED_FILES.format(missing)}, "
            f"but the folder contains {', '.join(names[:20]) or 'nothing'}"
        )
    return Corpus({split: list(_read(paths, languages, reverse)) for split, paths in files.items()})


def _read(paths: Sequence[Path], languages: Languages, reverse: bool) -> Iterator[Sentences]:
    """Yield the pairs of one split, from one file or two parallel files."""
    names = ", ".join(path.name for path in paths)
    if len(paths) == 1 and _form(paths[0]) == "tsv":
        return _tsv(paths[0], reverse)
    if reverse:
        raise UserError(
            f"data.reverse is for .tsv files, not {names}: swap data.source_language and data.target_language"
        )
    if len(paths) == 1 and _form(paths[0]) == "jsonl":
        return _jsonl(paths[0], languages)
    sides = {_form(path): path for path in paths}
    if len(paths) == 2 and set(sides) == set(languages):
        return _parallel(sides[languages.source], sides[languages.target])
    if len(paths) == 1:
        raise UserError(f"{paths[0]}: the file of the other language is missing ({' and '.join(languages)})")
    raise UserError(f"{paths[0].parent}: expected one file or two parallel files per split, but found {names}")


def _form(path: Path) -> str:
    """Return the format of a file: tsv, jsonl or a language code."""
    return path.name.removesuffix(".gz").partition(".")[2]


def _tsv(path: Path, reverse: bool) -> Iterator[Sentences]:
    for number, line in enumerate(_lines(path), 1):
        fields = line.split("\t")
        if len(fields) != 2:
            raise UserError(
                f"{path}:{number}: expected source<TAB>target, but the line has {len(fields)} "
                f"field{'s' * (len(fields) > 1)}: '{line[:60]}'"
            )
        first, second = (checked_text(field, "a sentence", f"{path}:{number}") for field in fields)
        yield Sentences(second, first) if reverse else Sentences(first, second)


def _jsonl(path: Path, languages: Languages) -> Iterator[Sentences]:
    for number, line in enumerate(_lines(path), 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}:{number}: invalid JSON ({error}): '{line[:60]}'") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}:{number}: expected a JSON object, but the line is '{line[:60]}'")
        yield pair_of(row, languages, f"{path}:{number}")


def _parallel(source: Path, target: Path) -> Iterator[Sentences]:
    sides = list(_lines(source)), list(_lines(target))
    if len(sides[0]) != len(sides[1]):
        raise UserError(
            f"{source} and {target} must have the same number of lines, but have {len(sides[0]):,} "
            f"and {len(sides[1]):,}"
        )
    for number, (a, b) in enumerate(zip(*sides, strict=True), 1):
        yield Sentences(
            checked_text(a, "a sentence", f"{source}:{number}"), checked_text(b, "a sentence", f"{target}:{number}")
        )


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file (gzipped if its name ends in .gz) without line ends and byte order mark."""
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path} is not a complete gzip file: {error}") from None
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content:
        raise UserError(f"{path} is empty")
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), 1):
        try:
            yield line.removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            raise UserError(f"{path}:{number}: byte {error.start + 1} of the line is not UTF-8") from None
