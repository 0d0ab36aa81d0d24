"""Read pairs of texts: from the files of a folder (TSV, JSON lines, lines of SCAN, parallel files), or from the hub.

    a dog sleeps<TAB>ein Hund schläft          .tsv, or any file with tabs
    {"source": "a dog", "target": "ein Hund"}     .jsonl
    IN: jump twice OUT: I_JUMP I_JUMP          the lines of SCAN (Lake & Baroni 2018)
    train.en, train.de                         parallel files

Each file may be gzipped. Text is kept exactly as it is: line separators other than the line feed, such as U+2028, are
part of a text, a quotation mark is an ordinary character, and "NA" is a word (readers of CSV differ in all three).

The name of a file or of a split on the hub says what it is for: `train`; `dev`, `valid`, `validation`; any other is a
test set of its own name. What is not read is returned with the reason.
"""

import gzip
import json
import re
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy.errors import UserError, nearest, one_of, path_of, quoted

if TYPE_CHECKING:
    from tfstudy.tasks.corpus import FilesConfig

VALIDATION = ("validation", "dev", "valid", "val")  # names of the validation split
ROLES = {  # of files and splits, by a part of their name
    **dict.fromkeys(("train", "training", "trn"), "train"),
    **dict.fromkeys((*VALIDATION, "development"), "validation"),
    **dict.fromkeys(("test", "tst", "gold"), "test"),
}
PURPOSES = {  # of columns, by their name
    **dict.fromkeys(("source", "src", "input", "inputs", "question", "command", "sentence", "lemma"), "source"),
    **dict.fromkeys(("target", "tgt", "trg", "output", "outputs", "query", "actions", "form"), "target"),
    **dict.fromkeys(("features", "feats", "msd"), "features"),
}
SIDES = (("src", "tgt"), ("src", "trg"), ("source", "target"), ("in", "out"), ("input", "output"))  # of parallel files
OTHER_FILES = re.compile(r"(?i)(readme|licen[cs]e|citation|changelog)\b.*|.*\.(md|json|py|ya?ml|pdf|zip|parquet|csv)")
SCAN_LINE = re.compile(r"\s*IN:\s*(.*?)\s*OUT:\s*(.*?)\s*")
LANGUAGE = re.compile(r"[a-z]{2,3}([-_]\w+)?")  # codes of languages
SURROGATES = re.compile("[\ud800-\udfff]")
MAX_LINE = 2**24  # bytes of one line
UNCHECKED = 2**23  # bytes of text that a gzipped file may hold however small it is
MAX_EXPANSION = 100  # of the bytes beyond: text shrinks by a factor of about 3, a gzip bomb by 1,000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Table(NamedTuple):
    """The rows of a file, of two parallel files, or of a split on the hub: a value for each column."""

    columns: tuple[str, ...]  # their names; empty if the file does not tell
    rows: list[tuple[Any, ...]]
    places: tuple[str, ...]  # of each column: text such as `train.tsv:`, which the number of a row completes
    first: int = 1  # number of the first row


class Split(NamedTuple):
    """The pairs of a split, and the other columns by name; `place` says where a source and a target are."""

    sources: list[str]
    targets: list[str]
    features: list[str] | None
    tags: dict[str, list[str]]
    places: tuple[str, str]  # of sources and targets: text that the number of a row completes
    first: int  # number of the first row

    def place(self, number: int, side: int) -> str:
        """Return where the source (side 0) or the target (1) of a pair is, such as `train.tsv:7`."""
        return f"{self.places[side]}{self.first + number}"

    def check_no_empty(self, name: str, remedy: str = "") -> None:
        """Raise `UserError` for the first pair with an empty side; `remedy` says what can be done about it."""
        pairs = enumerate(zip(self.sources, self.targets, strict=True))
        if empty := [(number, pair) for number, pair in pairs if not (pair[0].strip(" ") and pair[1].strip(" "))]:
            number, (source, _) = empty[0]
            side, what = (1, "target") if source.strip(" ") else (0, "source")
            count = f"{len(empty):,} of {len(self.sources):,} pairs of {name} have an empty side"
            raise UserError(f"{self.place(number, side)}: the {what} is empty ({count}{remedy})")


class PairData(NamedTuple):
    """The splits by name, what was not used with the reason, and the commit of a data set on the hub, if known."""

    splits: dict[str, Split]
    unused: dict[str, str]
    commit: str


def settings(text: str, key: str) -> dict[str, str]:
    """Return `a=b,c` as `{"a": "b", "c": ""}`; `UserError` if a name is empty or occurs twice.

    A colon separates like a comma, which separates the values of an axis on the command line of a grid.
    """
    parts = [part.strip().partition("=") for part in re.split("[,:]", text)] if text.strip() else []
    found = {name.strip(): value.strip() for name, _, value in parts}
    if len(found) < len(parts) or "" in found:
        raise UserError(f"{key} must be names separated by commas or colons, each of them once, but is {quoted(text)}")
    for value in found.values():
        if key == "data.columns" and value:
            one_of("purpose", value, ("source", "target", "features", "tag", "none"), key)
        elif key == "data.roles" and not re.fullmatch(r"\w+", value):
            raise UserError(
                f"{key} must be FILE=ROLE,... with train, validation, none or a name, but is {quoted(text)}"
            )
    return found


def read_pairs(config: "FilesConfig", languages: tuple[str, str] = ("", "")) -> PairData:
    """Return the pairs of a folder or of a data set on the hub.

    `languages` are codes that name the two columns or the ends of parallel files, if there are such.
    """
    columns, roles = settings(config.columns, "data.columns"), settings(config.roles, "data.roles")
    if config.root:
        sides = [tuple(columns), languages, *SIDES]
        tables, unused = _folder(config.root, roles, [pair for pair in sides if len({*pair} - {""}) == 2])
        commit = ""
    else:
        tables, unused, commit = from_hub(config.hub, config.hub_config, config.revision, roles)
    tables = _with_headers(tables, {*columns} or {*languages} - {""})
    splits = {}
    for split in sorted(tables, key=lambda name: (name != "train", name != "validation", name != "test", name)):
        table = tables[split]
        named = not columns and not {*languages} - {*table.columns}
        own = dict(zip(languages, ("source", "target"), strict=True)) if named else columns
        splits[split] = _split(table, own, unused)
    return PairData(splits, unused, commit)


def _with_headers(tables: dict[str, Table], names: Set[str]) -> dict[str, Table]:
    """Return the tables, in which a first row that names the columns is no pair.

    It does if it has all these names, or if it is the same language codes in all files.
    """
    first = {name: table.rows[0] for name, table in tables.items() if not table.columns and table.rows}
    codes = 1 == len({*first.values()}) < len(first) and all(map(LANGUAGE.fullmatch, next(iter(first.values()))))
    return tables | {
        name: Table(row if named else (), tables[name].rows[1:], tables[name].places, tables[name].first + 1)
        for name, row in first.items()
        if (named := bool(names) and names <= {*row}) or codes
    }


def _split(table: Table, columns: Mapping[str, str], unused: dict[str, str]) -> Split:
    """Return the texts of a table by what its columns are for: by setting, by name, or by their order."""
    names, width = table.columns, len(table.places)
    where = f"{table.places[0]}{table.first}"
    if not columns.keys() <= {*names}:  # then the setting names all columns in their order
        if len(columns) != width or (names and any(columns.values())):
            missing = next(name for name in columns if name not in names)
            has = f"the columns {quoted(', '.join(names), 200, '')}" if names else f"{width} columns without names"
            raise UserError(f"{where} has {has}, but data.columns names {quoted(missing)}{nearest(missing, names)}")
        names = tuple(columns)
    names = names or tuple(f"column_{number}" for number in range(1, width + 1))
    purposes = {name: columns.get(name) or PURPOSES.get(name, "tag") for name in names}
    purposes |= dict.fromkeys([name for name in names if columns and name not in columns], "none")
    if not {"source", "target"} & {*purposes.values()} and (columns or not table.columns):
        purposes |= dict(zip([name for name in names if purposes[name] == "tag"], ("source", "target"), strict=False))
    found = {purpose: [n for n in names if purposes[n] == purpose] for purpose in ("source", "target", "features")}
    for purpose in ("source", "target"):
        if len(found[purpose]) != 1:
            raise UserError(
                f"{where}: {'more than one' if found[purpose] else 'no'} {purpose} among the columns "
                f"{quoted(', '.join(names), 200, '')}; say which, such as "
                f"data.columns={quoted(names[0], marks='')}=source,{quoted(names[-1], marks='')}=target"
            )
    tags = {}
    for name in (name for name in names if purposes[name] == "tag"):
        try:
            tags[name] = _texts(table, names.index(name), name)
        except UserError:  # such as an id that is null
            unused[f"column {name}"] = "not all of it is text"
    source, target, features = ([names.index(name) for name in own] for own in found.values())
    texts = [_texts(table, column, names[column]) for column in (*source, *target, *features)]
    places = (table.places[source[0]], table.places[target[0]])
    return Split(texts[0], texts[1], texts[2] if features else None, tags, places, table.first)


def _texts(table: Table, column: int, name: str) -> list[str]:
    """Return the texts of a column, numbers as text; `UserError` for anything else, with its place."""
    values = [row[column] for row in table.rows]
    for number, value in enumerate(values):
        if isinstance(value, str) and (value.isascii() or not SURROGATES.search(value)):
            continue
        where = f"{table.places[column]}{table.first + number}: {quoted(name)}"
        if isinstance(value, str):
            raise UserError(f"{where} contains half of a surrogate pair, which is not a character")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UserError(f"{where} must be text, but is {json.dumps(value, default=str)[:60]}")
        values[number] = str(value)
    return values


def role_of(name: str) -> str:
    """Return the split that a file or a hub split is for, by its name: one of `ROLES`, or else its own name."""
    whole = re.sub(r"\W", "_", name.partition(".")[0].lower())
    if whole in ROLES or whole.startswith("test"):
        return ROLES.get(whole, whole)
    return next((ROLES[part] for part in re.split(r"[\W_]", name.lower()) if part in ROLES), whole)


# Folders


def folder_files(root: str) -> tuple[Path, list[Path]]:
    """Return a folder and what it contains, sorted, without hidden files."""
    folder = path_of(root)
    try:
        return folder, sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        where = "" if folder.is_absolute() else f" in {Path.cwd()}"
        raise UserError(f"data.root: can't read {folder}{where}: {error.strerror}") from None


def corpora(folder: Path) -> dict[Path, list[str]]:
    """Return the folders of corpora in a folder, or the folder itself if it is one, with the names of their files."""
    found = {}
    for path in (folder, *filter(Path.is_dir, folder_files(str(folder))[1])):
        roles = {file.name: role_of(file.name) for file in folder_files(str(path))[1] if file.is_file()}
        known = {name: role for name, role in roles.items() if role in ROLES.values() or role.startswith("test")}
        if not _missing(dict.fromkeys(known.values())):
            found[path] = [*known]
    if not found:
        raise UserError(f"{folder} has no corpus: neither it nor a folder in it has files called train and test")
    return found


def _folder(
    root: str, roles: Mapping[str, str], sides: Sequence[tuple[str, ...]]
) -> tuple[dict[str, Table], dict[str, str]]:
    """Return the tables of a folder by split, and what is not read with the reason."""
    folder, paths = folder_files(root)
    names = [path.name for path in paths]
    for name in roles.keys() - {*names}:
        raise UserError(f"data.roles: {folder} has no file {quoted(name)}{nearest(name, names)}")
    found: dict[str, list[Path]] = {}
    unused: dict[str, str] = {}
    for path in paths:
        role = roles.get(path.name) or role_of(path.name.removesuffix(".gz"))
        if role == "none" or path.is_dir():
            unused[path.name] = "data.roles" if role == "none" else "a folder"
        elif path.name not in roles and OTHER_FILES.fullmatch(path.name):
            unused[path.name] = "no format that is read"
        else:
            found.setdefault(role, []).append(path)
    splits = {role: used for role, own in found.items() if (used := _files_of(role, own, sides, unused))}
    if missing := _missing(splits):
        reasons = [f"{name} ({unused[name]})" if name in unused else name for name in names]
        raise UserError(
            f"data.root: {folder} has no {missing} file; name one with data.roles=FILE={missing}. The folder contains "
            f"{', '.join(reasons[:20]) or 'nothing'}"
        )
    return {role: read_files(used) for role, used in splits.items()}, unused


def _missing(splits: Mapping[str, object]) -> str:
    """Return `train` or `test` if there is no such split, else an empty text."""
    return "train" if "train" not in splits else "" if splits.keys() - {"train", "validation"} else "test"


def _files_of(
    role: str, paths: Sequence[Path], sides: Sequence[tuple[str, ...]], unused: dict[str, str]
) -> Sequence[Path]:
    """Return the file of a role, or its two parallel files, the source first; `unused` gets all others."""
    ends = {extension(path): path for path in paths}
    exact = [path for path in paths if stem(path) in ROLES]  # such as train.tsv beside train_100.tsv
    used = next(([ends[end] for end in pair] for pair in sides if {*pair} <= ends.keys()), exact)
    if len(paths) == 1:
        used = [*paths]
    elif not used or (used is exact and len(exact) > 1):
        hint = ""
        if len(ends) == len(paths) == 2 and not {"tsv", "jsonl"} & ends.keys():
            hint = f"; if they are parallel, name the source first: data.columns={','.join(ends)}"
        raise UserError(
            f"data.root: {' and '.join(path.name for path in paths)} are both for '{role}'; give one another role: "
            f"data.roles={paths[1].name}=none{hint}"
        )
    unused |= {path.name: f"{used[0].name} is the {role} split" for path in paths if path not in used}
    first = "\t" if len(used) == 2 else next(lines(used[0]), "")
    if "\t" in first or SCAN_LINE.fullmatch(first) or extension(used[0]).endswith("jsonl"):
        return used
    unused[used[0].name] = "one column, and no parallel file"
    return []


def stem(path: Path) -> str:
    """Return the name of a file before the first point."""
    return path.name.partition(".")[0]


def read_files(paths: Sequence[Path]) -> Table:
    """Return the table in one file, or in two parallel files, the source first."""
    if len(paths) == 2:
        return _parallel(*paths)
    [path] = paths
    if extension(path).endswith("jsonl"):
        return _jsonl(path)
    texts = [*lines(path)]
    while texts and not texts[-1].strip(" "):
        texts.pop()
    if texts and SCAN_LINE.fullmatch(texts[0]):
        found = [SCAN_LINE.fullmatch(text) for text in texts]
        if None in found:
            wrong = found.index(None)
            line = quoted(texts[wrong])
            raise UserError(f"{path}:{wrong + 1}: expected 'IN: <source> OUT: <target>', but the line is {line}")
        return Table(("source", "target"), [match.groups() for match in found if match], (f"{path}:",) * 2)
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
    if {"source", "target"} <= {*map(PURPOSES.get, names)} and len({*names}) == width:
        return Table(names, rows[1:], (f"{path}:",) * width, 2)
    return Table((), rows, (f"{path}:",) * width)


def extension(path: Path) -> str:
    """Return what follows the first point of a file's name, without .gz."""
    return path.name.removesuffix(".gz").partition(".")[2]


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
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a pipe would wait for its writer
            raise UserError(f"can't read {path}: not a regular file")
        with path.open("rb") as raw, gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
                if len(line) > MAX_LINE:
                    raise UserError(f"{path}:{number}: the line is longer than {MAX_LINE // 2**20} MiB")
                if file is not raw and file.tell() > max(UNCHECKED, MAX_EXPANSION * raw.tell()):
                    raise UserError(f"{path} expands to more than {MAX_EXPANSION} times its size: decompress it")
                text = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
                try:
                    decoded = text.removesuffix(b"\n").removesuffix(b"\r").decode()
                except UnicodeDecodeError as error:
                    raise UserError(f"{path}:{number}: byte {error.start + 1} of the line is not UTF-8") from None
                yield decoded
            if not file.tell():
                raise UserError(f"{path} is empty")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path} is not a complete gzip file: {error}") from None
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None


# The hub


def from_hub(
    hub: str, config: str, revision: str, roles: Mapping[str, str]
) -> tuple[dict[str, Table], dict[str, str], str]:
    """Return the splits of a data set on the Hugging Face hub, those not read with the reason, and the commit."""
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
        named = {str(name): roles.get(str(name)) or role_of(str(name)) for name in loaded}
        read = [name for name, split in named.items() if split != "none"]
        unused = {f"split {name}": "data.roles" for name in named if name not in read}
        tables = {name: _hub_table(loaded[name], f"data.hub: '{hub}', {name}, row ", unused) for name in read}
    except Exception as error:  # the errors of the hub have no common base class
        raise UserError(f"data.hub: can't load '{hub}': {_reason(error, hub)}") from None
    if len({*(named[name] for name in read)}) < len(read):
        raise UserError(f"data.hub: '{hub}' has two splits with the same role: {', '.join(named)}; set data.roles")
    if _missing({named[name]: None for name in read}):
        raise UserError(f"data.hub: '{hub}' needs a train and a test split, but has {', '.join(named)}; set data.roles")
    # For a repository the hash is the commit; for a folder it is a shorter hash of the library.
    commit = builder.hash if re.fullmatch("[0-9a-f]{40}", builder.hash or "") else ""
    return {named[name]: table for name, table in tables.items()}, unused, commit


def _hub_table(rows: Any, place: str, unused: dict[str, str]) -> Table:
    """Return the columns of texts and numbers: not audio or images, which need further packages to be read."""
    from datasets import Translation, Value

    values: dict[str, list[Any]] = {}
    for name, feature in rows.features.items():
        if isinstance(feature, Value):
            values[name] = [*rows[name]]
        elif isinstance(feature, dict | Translation):
            values |= {key: [row[key] for row in rows[name]] for key in (rows[name][0] if len(rows) else {})}
        else:
            unused[f"column {name}"] = "neither text nor numbers"
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
