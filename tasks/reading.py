"""Read pairs of texts as tables: files of a folder (TSV, JSON lines, SCAN's lines, parallel files), or a hub data set.

    a dog sleeps<TAB>ein Hund schläft         .tsv, or any file with tabs; further columns are kept
    {"source": "a dog", "target": "ein Hund"}    .jsonl
    IN: jump twice OUT: I_JUMP I_JUMP         the lines of SCAN (Lake & Baroni 2018)
    train.en, train.de                        parallel files

Each file may be gzipped. Text is kept exactly as it is: line separators other than the line feed, such as U+2028, are
part of a text, a quotation mark is an ordinary character, and "NA" is a word (readers of CSV differ in all three).
"""

import gzip
import json
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tfstudy.errors import UserError, path_of, quoted

VALIDATION = ("validation", "dev", "valid", "val")  # names of the validation split
TEST = re.compile(r"test\w{0,60}")  # names of test splits
MAX_LINE = 2**24  # bytes of one line
UNCHECKED = 2**23  # bytes of text that a gzipped file may hold however small it is
MAX_EXPANSION = 100  # of the bytes beyond: text shrinks by a factor of about 3, a gzip bomb by 1,000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SURROGATES = re.compile("[\ud800-\udfff]")
SCAN_LINE = re.compile(r"\s*IN:\s*(.*?)\s*OUT:\s*(.*?)\s*")
SOURCE_NAMES = ("source", "src", "input", "inputs", "question", "command", "sentence", "lemma")
TARGET_NAMES = ("target", "tgt", "trg", "output", "outputs", "query", "actions", "logical_form", "form")
OTHER_FILES = re.compile(r"(?i)(readme|licen[cs]e|citation|changelog)\b.*|.*\.(md|json|py|ya?ml|pdf|zip|parquet|csv)")


class Table(NamedTuple):
    """The rows of a file, of two parallel files, or of a split on the hub: a text for each column."""

    columns: tuple[str, ...]  # their names; empty if the file does not tell
    rows: list[tuple[Any, ...]]
    places: tuple[str, ...]  # of each column: text such as `train.tsv:`, which the number of a row completes
    first: int = 1  # number of the first row

    def texts(self, column: int) -> list[str]:
        """Return the texts of a column, numbers as text; `UserError` for anything else, with its place."""
        values = [row[column] for row in self.rows]
        for number, value in enumerate(values):
            if isinstance(value, str) and (value.isascii() or not SURROGATES.search(value)):
                continue
            where = f"{self.places[column]}{self.first + number}: {quoted(self.columns[column])}"
            if isinstance(value, str):
                raise UserError(f"{where} contains half of a surrogate pair, which is not a character")
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise UserError(f"{where} must be text, but is {json.dumps(value, default=str)[:60]}")
            values[number] = str(value)
        return values


class Tables(NamedTuple):
    """The tables by split, what was not used with the reason, and the commit of a data set on the hub, if known."""

    splits: dict[str, Table]
    unused: Mapping[str, str]
    commit: str = ""


def split_name(name: str) -> str:
    """Return the split for a file or a hub split with this name; empty if it is none."""
    name = re.sub(r"\W", "_", name)
    if name in VALIDATION:
        return "validation"
    return name if name == "train" or TEST.fullmatch(name) else ""


def stem(path: Path) -> str:
    """Return the name of a file before the first point."""
    return path.name.partition(".")[0]


def folder_files(root: str) -> tuple[Path, list[Path]]:
    """Return a folder and what it contains, sorted, without hidden files."""
    folder = path_of(root)
    try:
        return folder, sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        where = "" if folder.is_absolute() else f" in {Path.cwd()}"
        raise UserError(f"data.root: can't read {folder}{where}: {error.strerror}") from None


def corpora(folder: Path) -> dict[str, list[str]]:
    """Return the corpora in a folder, or the folder itself if it is one: the names of their files by their names."""
    paths = folder_files(str(folder))[1]
    found = {}
    for path in (folder, *filter(Path.is_dir, paths)):
        files = [file for file in folder_files(str(path))[1] if split_name(stem(file))]
        names = {split_name(stem(file)) for file in files}
        if "train" in names and any(map(TEST.fullmatch, names)):
            found[path.resolve().name] = [file.name for file in files]
    if not found:
        raise UserError(f"{folder} has no corpus: neither it nor a folder in it has files called train and test")
    return found


def read_files(paths: Sequence[Path], sides: Sequence[str] = ()) -> Table:
    """Return the table in one file, or in two parallel files, whose names end with the two `sides`."""
    if len(paths) == 2:
        return _parallel(*sorted(paths, key=lambda path: [*sides].index(extension(path))))
    [path] = paths
    if extension(path).endswith("jsonl"):
        return _jsonl(path)
    texts = [*lines(path)]
    while texts and not texts[-1].strip(" "):
        texts.pop()
    if texts and SCAN_LINE.fullmatch(texts[0]):
        rows = [_scan_line(path, number, text) for number, text in enumerate(texts, 1)]
        return Table(("source", "target"), rows, (f"{path}:",) * 2)
    rows = [tuple(text.split("\t")) for text in texts]
    width = len(rows[0]) if rows else 0
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            plural = "s" * (len(row) != 1)
            raise UserError(
                f"{path}:{number}: the line has {len(row)} column{plural}, but line 1 has {width}: "
                f"{quoted(texts[number - 1])}"
            )
    names = tuple(name.strip().lower() for name in rows[0]) if rows else ()
    if {*names} & {*SOURCE_NAMES} and {*names} & {*TARGET_NAMES} and len({*names}) == width:
        return Table(names, rows[1:], (f"{path}:",) * width, 2)
    return Table((), rows, (f"{path}:",) * width)


def extension(path: Path) -> str:
    """Return what follows the first point of a file's name, without .gz."""
    return path.name.removesuffix(".gz").partition(".")[2]


def _scan_line(path: Path, number: int, text: str) -> tuple[str, ...]:
    if not (match := SCAN_LINE.fullmatch(text)):
        raise UserError(f"{path}:{number}: expected 'IN: <source> OUT: <target>', but the line is {quoted(text)}")
    return match.groups()


def _jsonl(path: Path) -> Table:
    rows = []
    for number, line in enumerate(lines(path), 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}:{number}: invalid JSON ({error}): {quoted(line)}") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}:{number}: expected a JSON object, but the line is {quoted(line)}")
        nested = row.pop("translation", None)  # {translation: {xx, yy}}, as many data sets of the hub
        rows.append({**row, **nested} if isinstance(nested, dict) else row)
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    if not columns:
        raise UserError(f"{path}:1: the JSON object has no keys")
    return Table(columns, [tuple(map(row.get, columns)) for row in rows], (f"{path}:",) * len(columns))


def _parallel(source: Path, target: Path) -> Table:
    both = [*zip_longest(lines(source), lines(target))]
    counts = [sum(pair[side] is not None for pair in both) for side in (0, 1)]
    if counts[0] != counts[1]:
        raise UserError(
            f"{source} and {target} must have the same number of lines, but have {counts[0]:,} and {counts[1]:,}"
        )
    return Table((extension(source), extension(target)), both, (f"{source}:", f"{target}:"))


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


def from_hub(hub: str, config: str, revision: str, name_of: Callable[[str], str]) -> Tables:
    """Return the splits of a data set on the Hugging Face hub, at `revision` if it is not empty.

    `name_of` returns the name of a split here for its name on the hub, or an empty text: it is not read then.
    """
    from datasets import load_dataset_builder

    folder = Path(hub)
    files: dict[str, list[str]] = {}  # of a plain folder: the library would leave out splits of other names
    for path in [] if (folder / "README.md").exists() else sorted(folder.glob("*.parquet")):
        files.setdefault(re.sub(r"-\d+-of-\d+$", "", stem(path)), []).append(str(path))
    try:
        if files:
            builder = load_dataset_builder("parquet", data_files=files)
        else:
            builder = load_dataset_builder(hub, config or None, revision=revision or None)
        builder.download_and_prepare()
        loaded = builder.as_dataset()
        named = {str(name): name_of(str(name)) for name in loaded}
        tables = {name: _hub_table(loaded[name], f"data.hub: '{hub}', {name}, row ") for name in named if named[name]}
    except UserError:
        raise
    except Exception as error:  # the errors of the hub have no common base class
        raise UserError(f"data.hub: can't load '{hub}': {_reason(error, hub)}") from None
    found = [split for split in named.values() if split]
    if len({*found}) < len(found):
        raise UserError(f"data.hub: '{hub}' has two splits with the same role: {', '.join(named)}")
    if "train" not in found or not {*found} - {"train", "validation"}:
        raise UserError(f"data.hub: '{hub}' needs a train and a test split, but has {', '.join(named)}")
    # For a repository the hash is the commit; for a folder it is a shorter hash of the library.
    commit = builder.hash if re.fullmatch("[0-9a-f]{40}", builder.hash or "") else ""
    unused = {f"split {name}": "it has no known role" for name, split in named.items() if not split}
    return Tables({named[name]: table for name, table in tables.items()}, unused, commit)


def _hub_table(rows: Any, place: str) -> Table:
    """Return the columns of texts and numbers: not audio or images, which need further packages to be read."""
    from datasets import Translation, Value

    values: dict[str, list[Any]] = {}
    for name, feature in rows.features.items():
        if isinstance(feature, Value):
            values[name] = [*rows[name]]
        elif isinstance(feature, dict | Translation):
            values |= {key: [row[key] for row in rows[name]] for key in (rows[name][0] if len(rows) else {})}
    return Table(tuple(values), [*zip(*values.values(), strict=True)], (place,) * len(values))


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
