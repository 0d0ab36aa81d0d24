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
PURPOSE = ("source", "target", "features", "tag", "none")
SIDES = (("src", "tgt"), ("src", "trg"), ("source", "target"), ("in", "out"), ("input", "output"))  # of parallel files
OTHER_FILES = re.compile(r"(?i)(readme|licen[cs]e|citation|changelog)\b.*|.*\.(md|json|py|ya?ml|pdf|zip|parquet|csv)")
SCAN_LINE = re.compile(r"\s*IN:\s*(.*?)\s*OUT:\s*(.*?)\s*")
LANGUAGE = re.compile(r"[a-z]{2,3}([-_]\w+)?")  # codes of languages
SURROGATES = re.compile("[\ud800-\udfff]")
MAX_LINE = 2**24  # bytes of one line
UNCHECKED = 2**23  # bytes of text that a gzipped file may hold however small it is
MAX_EXPANSION = 100  # of the bytes beyond: text shrinks by a factor of about 3, a gzip bomb by 1,000


class Table(NamedTuple):
    """The rows of a file, of two parallel files, or of a split on the hub: a value for each column."""

    columns: tuple[str, ...]  # their names; empty if the file does not tell
    rows: list[tuple[Any, ...]]
    place: str  # text such as `train.tsv:`, which the number of a row completes
    first: int = 1  # number of the first row


class Split(NamedTuple):
    """The pairs of a split, and the other columns by name."""

    sources: list[str]
    targets: list[str]
    features: list[str] | None
    tags: dict[str, list[str]]
    place: str  # text that the number of a row completes
    first: int  # number of the first row

    def check_no_empty(self, name: str, remedy: str = "") -> None:
        """Raise `UserError` for the first pair with an empty side; `remedy` says what can be done about it."""
        empty = [n for n, pair in enumerate(zip(self.sources, self.targets, strict=True)) if not all(map(_full, pair))]
        if empty:
            what = "target" if _full(self.sources[empty[0]]) else "source"
            count = f"{len(empty):,} of {len(self.sources):,} pairs of {name} have an empty side"
            raise UserError(f"{self.place}{self.first + empty[0]}: the {what} is empty ({count}{remedy})")


def _full(text: str) -> bool:
    return bool(text.strip(" "))


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
    wrong = key == "data.roles" and not all(re.fullmatch(r"\w+", value) for value in found.values())
    if wrong or len(found) < len(parts) or "" in found:
        form = "FILE=ROLE" if key == "data.roles" else "NAME or NAME=VALUE"
        raise UserError(f"{key} must be {form}, separated by commas, each once, but is {quoted(text)}")
    for value in filter(None, found.values()) if key == "data.columns" else ():
        one_of("purpose", value, PURPOSE, key)
    return found


def read_pairs(config: "FilesConfig") -> PairData:
    """Return the pairs of a folder or of a data set on the hub."""
    columns, commit = settings(config.columns, "data.columns"), ""
    roles = {name: ROLES.get(role.lower(), role) for name, role in settings(config.roles, "data.roles").items()}
    if config.root:
        tables, unused = _folder(config.root, roles, [pair for pair in (tuple(columns), *SIDES) if len(pair) == 2])
    else:
        tables, unused, commit = from_hub(config.hub, config.hub_config, config.revision, roles)
    tables = _with_headers(tables, columns.keys())
    order = {name: number for number, name in enumerate(("train", "validation", "test"))}
    names = sorted(tables, key=lambda name: (order.get(name, 3), name))
    return PairData({name: _split(tables[name], columns, unused) for name in names}, unused, commit)


def _with_headers(tables: dict[str, Table], names: Set[str]) -> dict[str, Table]:
    """Return the tables, in which a first row that names the columns is no pair.

    It does if it has all these names, or if it is the same language codes in all files.
    """
    first = {name: table.rows[0] for name, table in tables.items() if not table.columns}
    codes = 1 == len({*first.values()}) < len(first) and all(map(LANGUAGE.fullmatch, next(iter(first.values()))))
    changed = {}
    for name, row in first.items():
        if (named := bool(names) and names <= {*row}) or codes:
            _, rows, place, number = tables[name]
            if not rows[1:]:
                raise UserError(f"{place}{number} has the names of columns, but no pairs follow")
            changed[name] = Table(row if named else (), rows[1:], place, number + 1)
    return tables | changed


def _split(table: Table, columns: Mapping[str, str], unused: dict[str, str]) -> Split:
    """Return the texts of a table by what its columns are for: by setting, by name, or by their order."""
    names, width = table.columns, len(table.columns or table.rows[0])
    where = f"{table.place}{table.first}"
    if not columns.keys() <= {*names}:  # then the setting names all columns in their order
        if len(columns) != width or (names and any(columns.values())):
            missing = next(name for name in columns if name not in names)
            has = f"the columns {quoted(', '.join(names), 200, '')}" if names else f"{width} columns without names"
            hint = nearest(missing, names) or "; ':' separates columns in a grid" * (len(columns) == 1)
            raise UserError(f"{where} has {has}, but data.columns names {quoted(missing)}{hint}")
        names = tuple(columns)
    names = names or tuple(f"column_{number}" for number in range(1, width + 1))
    purposes = {name: columns.get(name) or PURPOSES.get(name, "tag") for name in names}
    purposes |= dict.fromkeys([name for name in names if columns and name not in columns], "none")
    if not {"source", "target"} & {*purposes.values()} and (columns or not table.columns):
        others = [name for name in columns or names if purposes[name] == "tag"]
        purposes |= dict(zip(others, ("source", "target"), strict=False))
    found = {kind: [n for n, name in enumerate(names) if purposes[name] == kind] for kind in PURPOSE}
    for kind in ("source", "target"):
        if len(found[kind]) != 1:
            lacking = [one for one in ("source", "target") if not found[one]]
            meant = dict(zip((name for name in names if purposes[name] == "tag"), lacking, strict=False))
            meant = meant or {names[0]: "source", names[-1]: "target"}
            example = ",".join(f"{name}={meant[name]}" if name in meant else name for name in names)
            raise UserError(
                f"{where}: {'more than one' if found[kind] else 'no'} {kind} among the columns "
                f"{quoted(', '.join(names), 200, '')}; say which, such as data.columns={quoted(example, 200, '')}"
            )
    tags = {}
    for number in found["tag"]:
        try:
            tags[names[number]] = _texts(table, number, names[number])
        except UserError:  # such as an id that is null
            unused[f"column {names[number]}"] = "not all of it is text"
    (source,), (target,), features = found["source"], found["target"], found["features"]
    sources, targets, *more = (_texts(table, number, names[number]) for number in (source, target, *features))
    return Split(sources, targets, more[0] if more else None, tags, table.place, table.first)


def _texts(table: Table, column: int, name: str) -> list[str]:
    """Return the texts of a column, numbers as text; `UserError` for anything else, with its place."""
    values = [row[column] for row in table.rows]
    for number, value in enumerate(values):
        if isinstance(value, str) and (value.isascii() or not SURROGATES.search(value)):
            continue
        where = f"{table.place}{table.first + number}: {quoted(name)}"
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


def _folder(
    root: str, roles: Mapping[str, str], sides: Sequence[Sequence[str]]
) -> tuple[dict[str, Table], dict[str, str]]:
    """Return the tables of a folder by split, and what is not read with the reason."""
    folder = path_of(root)
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        where = "" if folder.is_absolute() else f" in {Path.cwd()}"
        raise UserError(f"data.root: can't read {folder}{where}: {error.strerror}") from None
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
    splits = {}
    for role, own in found.items():
        used = _files_of(role, own, sides)
        unused |= {path.name: f"{used[0].name} is the {role} split" for path in own if path not in used}
        if len(used) == 2 or _has_pairs(used[0]):
            splits[role] = used
        else:
            unused[used[0].name] = "one column, and no parallel file"
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


def _files_of(role: str, paths: Sequence[Path], sides: Sequence[Sequence[str]]) -> Sequence[Path]:
    """Return the file of a role, or its two parallel files, the source first."""
    exact = [path for path in paths if path.name.partition(".")[0] in ROLES]  # train.tsv beside train_100.tsv
    for some in (exact, paths):
        ends = {extension(path): path for path in some}
        used = next(([ends[end] for end in pair] for pair in sides if {*pair} <= ends.keys()), None)
        if used and len(ends) == len(some):
            return used
    if len(paths) == 1 or len(exact) == 1:
        return paths if len(paths) == 1 else exact
    hint = ""
    if len(ends) == len(paths) == 2 and not {"tsv", "jsonl"} & ends.keys():
        hint = f"; if they are parallel, name the source first: data.columns={','.join(ends)}"
    raise UserError(
        f"data.root: {' and '.join(path.name for path in paths)} are both for '{role}'; give one another role: "
        f"data.roles={paths[1].name}=none{hint}"
    )


def _has_pairs(path: Path) -> bool:
    first = next(lines(path), "")
    return "\t" in first or bool(SCAN_LINE.fullmatch(first)) or extension(path).endswith("jsonl")


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
    if not texts:
        raise UserError(f"{path} has no pairs")
    if SCAN_LINE.fullmatch(texts[0]):
        found = [SCAN_LINE.fullmatch(text) for text in texts]
        if None in found:
            wrong = found.index(None)
            line = quoted(texts[wrong])
            raise UserError(f"{path}:{wrong + 1}: expected 'IN: <source> OUT: <target>', but the line is {line}")
        return Table(("source", "target"), [match.groups() for match in found if match], f"{path}:")
    rows = [tuple(text.split("\t")) for text in texts]
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            plural = "s" * (len(row) != 1)
            raise UserError(
                f"{path}:{number}: the line has {len(row)} column{plural}, but line 1 has {width}: "
                f"{quoted(texts[number - 1])}"
            )
    names = tuple(name.strip().lower() for name in rows[0])
    if {"source", "target"} <= {*map(PURPOSES.get, names)} and len({*names}) == width:
        return Table(names, rows[1:], f"{path}:", 2)
    return Table((), rows, f"{path}:")


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
        rows.append(row)
    return _table(rows, f"{path}:")


def _table(rows: list[dict[str, Any]], place: str) -> Table:
    """Return rows by name as a table; `{translation: {xx, yy}}`, as in many data sets of the hub, is two columns."""
    for number, row in enumerate(rows):
        if isinstance(row.get("translation"), dict):
            rows[number] = row | row.pop("translation")
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    if not columns:
        raise UserError(f"{place}1: the JSON object has no keys")
    return Table(columns, [tuple(map(row.get, columns)) for row in rows], place)


def _parallel(source: Path, target: Path) -> Table:
    both = [[*lines(path)] for path in (source, target)]
    counts = [*map(len, both)]
    if counts[0] != counts[1]:
        raise UserError(
            f"{source} and {target} must have the same number of lines, but have {counts[0]:,} and {counts[1]:,}"
        )
    return Table((extension(source), extension(target)), [*zip(*both, strict=True)], f"{source}:")


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
                code = "utf-8-sig" if number == 1 else "utf-8"
                try:
                    yield line.removesuffix(b"\n").removesuffix(b"\r").decode(code)
                except UnicodeDecodeError as error:
                    raise UserError(f"{path}:{number}: byte {error.start + 1} of the line is not UTF-8") from None
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

    files: dict[str, list[str]] = {}  # of a plain folder: the library would leave out splits of other names
    for path in [] if (Path(hub) / "README.md").exists() else sorted(Path(hub).glob("*.parquet")):
        files.setdefault(re.sub(r"-\d+-of-\d+$", "", path.name.partition(".")[0]), []).append(str(path))
    try:
        if files:
            builder = load_dataset_builder("parquet", data_files=files)
        else:
            builder = load_dataset_builder(hub, config or None, revision=revision or None)
        builder.download_and_prepare()
        loaded = builder.as_dataset()
        named = {str(name): roles.get(str(name)) or role_of(str(name)) for name in loaded}
        unused = {f"split {name}": "data.roles" for name, role in named.items() if role == "none"}
        read = [name for name, role in named.items() if role != "none"]
        tables = {named[name]: _hub_table(loaded[name], f"data.hub: '{hub}', {name}, row ", unused) for name in read}
    except Exception as error:  # the errors of the hub have no common base class
        raise UserError(f"data.hub: can't load '{hub}': {_reason(error)}") from None
    if len(tables) < len(read) or _missing(tables):
        what = "has two splits with the same role" if len(tables) < len(read) else "needs a train and a test split"
        raise UserError(f"data.hub: '{hub}' {what}: {', '.join(named)}; set data.roles")
    # For a repository the hash is the commit; for a folder it is a shorter hash of the library.
    return tables, unused, builder.hash if re.fullmatch("[0-9a-f]{40}", builder.hash or "") else ""


def _hub_table(rows: Any, place: str, unused: dict[str, str]) -> Table:
    """Return the columns of texts and numbers: not audio or images, which need further packages to be read."""
    from datasets import Translation, Value

    read = [name for name, kind in rows.features.items() if isinstance(kind, Value | dict | Translation)]
    unused |= {f"column {name}": "neither text nor numbers" for name in rows.features if name not in read}
    return _table(rows.select_columns(read).to_list(), place)


def _reason(error: Exception) -> str:
    """Return the error in one line, with a way to fix it."""
    text = str(error).strip().split("\n")[0][:160] or type(error).__name__
    if "scripts are no longer supported" in text:
        return f"{text}. If the hub has a parquet copy, use data.revision=refs/convert/parquet"
    return f"{text}. A folder of text files is set with data.root"
