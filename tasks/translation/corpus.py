"""Read parallel text: from a folder of .tsv, .jsonl or parallel files (also gzipped), or from the Hugging Face hub.

    a dog sleeps<TAB>ein Hund schläft  ->  Sentences(source='a dog sleeps', target='ein Hund schläft')

Text is kept exactly as it is. Line separators other than the line feed, such as U+2028 and U+0085, are part of a
sentence, a quotation mark is an ordinary character, and "NA" is a word (readers of CSV differ in all three).
"""

import gzip
import json
import re
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tfstudy.errors import UserError, nearest, path_of, quoted

VALIDATION = ("validation", "dev", "valid", "val")  # names of the validation split
TEST = re.compile(r"test\w{0,60}")  # names of test splits
MAX_LINE = 2**24  # bytes of one line
UNCHECKED = 2**23  # bytes of text that a gzipped file may hold however small it is
MAX_EXPANSION = 100  # of the bytes beyond: text shrinks by a factor of about 3, a gzip bomb by 1,000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Sentences(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


class Languages(NamedTuple):
    """Language codes such as `en` and `de`, which select files and columns; empty if not needed."""

    source: str = ""
    target: str = ""


class Corpus(NamedTuple):
    """The splits `train`, `validation` (optional) and `test...`, and the commit of the data set, if known.

    `places` says where a split is: for its sources and its targets, text such as `train.tsv:` that a number completes.
    """

    splits: dict[str, list[Sentences]]
    places: Mapping[str, tuple[str, str]]
    commit: str = ""


def split_name(name: str) -> str:
    """Return the split for a file or a hub split with this name; empty if it is none."""
    name = re.sub(r"\W", "_", name)
    if name in VALIDATION:
        return "validation"
    return name if name == "train" or TEST.fullmatch(name) else ""


def _missing(splits: Sequence[str]) -> str:
    """Return `train` or `test` if there is no such split, else an empty text."""
    return "train" if "train" not in splits else "" if any(map(TEST.fullmatch, splits)) else "test"


def corpora(folder: Path) -> dict[str, list[str]]:
    """Return the corpora in a folder, or the folder itself if it is one: the names of their files by their names."""
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir())
        files = {path: [file for file in sorted(path.iterdir()) if _split(file)] for path in (folder, *inside)}
    except OSError as error:
        raise UserError(f"can't read {folder}: {error.strerror}") from None
    found = {
        path.resolve().name: [f.name for f in own] for path, own in files.items() if not _missing([*map(_split, own)])
    }
    if not found:
        raise UserError(f"{folder} has no corpus: neither it nor a folder in it has files called train and test")
    return found


def from_folder(root: str, languages: Languages, reverse: bool = False) -> Corpus:
    """Read the files `train`, `dev` or `validation`, and `test...` of a folder, in any of the known formats.

    With `reverse`, the columns of two-column files are target and source.
    """
    folder = path_of(root)
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        where = "" if folder.is_absolute() else f" in {Path.cwd()}"
        raise UserError(f"data.root: can't read {folder}{where}: {error.strerror}") from None
    files: dict[str, list[Path]] = {}
    for path in paths:
        if (split := _split(path)) and _form(path) in {"tsv", "jsonl", *filter(None, languages)}:
            files.setdefault(split, []).append(path)
    if missing := _missing([*files]):
        expected = "parallel files {0}.CODE with the codes of data.source_language and data.target_language"
        raise UserError(
            f"data.root: {folder} has no {missing} split; expected {missing}.tsv, {missing}.jsonl, or "
            f"{expected.format(missing)} (optionally .gz), but the folder contains "
            + (", ".join(path.name for path in paths[:20]) or "nothing")
        )
    return Corpus(
        {split: list(_read(own, languages, reverse)) for split, own in files.items()},
        {split: _places(own, languages) for split, own in files.items()},
    )


def _split(path: Path) -> str:
    """Return the split that a file is called after; empty if it is none."""
    return split_name(path.name.partition(".")[0])


def _form(path: Path) -> str:
    """Return the format of a file: tsv, jsonl or a language code."""
    return path.name.removesuffix(".gz").partition(".")[2]


def _places(paths: Sequence[Path], languages: Languages) -> tuple[str, str]:
    sides = {_form(path): f"{path}:" for path in paths}
    return (sides[languages.source], sides[languages.target]) if len(paths) == 2 else (f"{paths[0]}:",) * 2


def _read(paths: Sequence[Path], languages: Languages, reverse: bool) -> Iterator[Sentences]:
    """Yield the pairs of one split, from one file or two parallel files. Sides may be empty."""
    names = ", ".join(path.name for path in paths)
    if len(paths) == 1 and _form(paths[0]) == "tsv":
        return _tsv(paths[0], reverse)
    if reverse:
        raise UserError(
            f"data.reverse is for .tsv files, not {names}: swap data.source_language and data.target_language, or the "
            "keys 'source' and 'target'"
        )
    if len(paths) == 1 and _form(paths[0]) == "jsonl":
        return _jsonl(paths[0], languages)
    sides = {_form(path): path for path in paths}
    if len(paths) == 2 and set(sides) == set(languages):
        return _parallel(sides[languages.source], sides[languages.target])
    raise UserError(
        f"{paths[0].parent}: expected one file or two parallel files per split, but found {names} "
        f"(data.source_language={languages.source}, data.target_language={languages.target})"
    )


def _tsv(path: Path, reverse: bool) -> Iterator[Sentences]:
    for number, line in enumerate(lines(path), 1):
        fields = line.split("\t")
        if len(fields) != 2:
            raise UserError(
                f"{path}:{number}: expected source<TAB>target, but the line has {len(fields)} "
                f"field{'s' * (len(fields) > 1)}: {quoted(line)}"
            )
        yield Sentences(*(reversed(fields) if reverse else fields))


def _jsonl(path: Path, languages: Languages) -> Iterator[Sentences]:
    for number, line in enumerate(lines(path), 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}:{number}: invalid JSON ({error}): {quoted(line)}") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}:{number}: expected a JSON object, but the line is {quoted(line)}")
        yield pair_of(row, languages, f"{path}:{number}")


def _parallel(source: Path, target: Path) -> Iterator[Sentences]:
    counts = [0, 0]
    for pair in zip_longest(lines(source), lines(target)):
        counts = [count + (side is not None) for count, side in zip(counts, pair, strict=True)]
        if None not in pair:
            yield Sentences(*pair)
    if counts[0] != counts[1]:
        raise UserError(
            f"{source} and {target} must have the same number of lines, but have {counts[0]:,} and {counts[1]:,}"
        )


def pair_of(row: Mapping[str, Any], languages: Languages, where: str) -> Sentences:
    """Return the pair in a row `{translation: {xx, yy}}`, `{xx, yy}` or `{source, target}`; sides may be empty."""
    nested = row.get("translation")
    row = nested if isinstance(nested, Mapping) else row
    keys = languages if all(languages) and set(languages) & set(row) else Languages("source", "target")
    if missing := [key for key in keys if key not in row]:
        raise UserError(
            f"{where}: no {quoted(missing[0])}, only {quoted(', '.join(row) or 'no keys', 200, '')}"
            f"{nearest(missing[0], row)}; set data.source_language and data.target_language to the two columns of text"
        )
    for key in keys:
        if not isinstance(row[key], str):
            raise UserError(f"{where}: '{key}' must be text, but is {json.dumps(row[key], default=str)[:60]}")
        if re.search("[\ud800-\udfff]", row[key]):
            raise UserError(f"{where}: '{key}' contains half of a surrogate pair, which is not a character")
    return Sentences(*(row[key] for key in keys))


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
                if file is not raw and file.tell() > max(UNCHECKED, MAX_EXPANSION * raw.tell()):
                    raise UserError(f"{path} expands to more than {MAX_EXPANSION} times its size: decompress it")
                yield _text(path, number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line)
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


def _text(path: Path, number: int, line: bytes) -> str:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}:{number}: byte {error.start + 1} of the line is not UTF-8") from None


def from_hub(hub: str, config: str, revision: str, languages: Languages) -> Corpus:
    """Return the corpus of a data set on the Hugging Face hub, at `revision` if it is not empty."""
    from datasets import load_dataset_builder

    try:
        builder = load_dataset_builder(hub, config or None, revision=revision or None)
        builder.download_and_prepare()
        loaded = builder.as_dataset()
        named = {name: split for name in loaded if (split := split_name(str(name)))}
    except Exception as error:  # the errors of the hub have no common base class
        raise UserError(f"data.hub: can't load '{hub}': {_reason(error, hub)}") from None
    names = ", ".join(map(str, loaded))
    if len({*named.values()}) < len(named):
        raise UserError(f"data.hub: '{hub}' has two splits with the same role: {names}")
    if _missing([*named.values()]):
        raise UserError(f"data.hub: '{hub}' needs a train and a test split, but has {names}")
    places = {name: f"data.hub: '{hub}', {name}, row " for name in named}
    try:
        pairs = {
            split: [
                pair_of(row, languages, f"{places[name]}{number}")
                for number, row in enumerate(loaded[name].select_columns(_text_columns(loaded[name])), 1)
            ]
            for name, split in named.items()
        }
    except UserError:
        raise
    except Exception as error:  # of the formats that it reads
        raise UserError(f"data.hub: can't read '{hub}': {_reason(error, hub)}") from None
    # For a repository the hash is the commit; for a folder it is a shorter hash of the library.
    commit = builder.hash if re.fullmatch("[0-9a-f]{40}", builder.hash or "") else ""
    return Corpus(pairs, {split: (places[name],) * 2 for name, split in named.items()}, commit)


def _text_columns(rows: Any) -> list[str]:
    """Return the columns that can hold sentences: not audio or images, which need further packages to be read."""
    from datasets import Translation, Value

    return [name for name, feature in rows.features.items() if isinstance(feature, (dict, Translation, Value))]


def _reason(error: Exception, hub: str) -> str:
    """Return the error in one line, with a way to fix it."""
    text = str(error).strip().split("\n")[0][:160] or type(error).__name__
    if "scripts are no longer supported" in text:
        return f"{text}. If the hub has a parquet copy, use data.revision=refs/convert/parquet"
    if Path(hub).is_dir():
        return f"{text}. A folder of text files is set with data.root"
    if isinstance(error, ConnectionError) or "offline" in text.lower():
        return f"{text}. Offline, use data.root, or load the data set once while online"
    return text
