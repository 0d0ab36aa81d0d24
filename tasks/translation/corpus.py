"""Parallel text from a folder or from the hub, as it stands there: no tokeniser, no quoting, nothing altered.

    a dog sleeps<TAB>ein Hund schläft  ->  Sentences(source='a dog sleeps', target='ein Hund schläft')

A line ends with a line feed (and perhaps a carriage return before it) and nowhere else: U+2028, U+0085 and the like
stand within sentences. A quotation mark is a character and "NA" is a word, which readers of CSV disagree with.
"""

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tasks.base import Tag
from tasks.errors import UserError, one_of

VALIDATION = ("validation", "dev", "valid", "val")  # what the validation split may be called
TEST = re.compile(r"test\w*")  # every split that is called so is a test split
LONGER = {"test_1_5x": (1, 1.5), "test_2x": (1.5, 2), "test_4x": (2, 4)}  # above, and up to, so many times `longest`
MOST = 1_000  # pairs in each of these
SHAPES = "train.tsv, train.jsonl, or train.<source> and train.<target> with data.source_language and data.target_language (all also .gz)"


class Sentences(NamedTuple):
    """A sentence and its translation, as text."""

    source: str
    target: str


class Languages(NamedTuple):
    """Codes such as `en` and `de`, which name files and columns; empty where nothing needs them."""

    source: str = ""
    target: str = ""


class Corpus(NamedTuple):
    """The splits `train`, `validation` (if there is one) and `test...`, and the commit they are of, if known."""

    splits: dict[str, list[Sentences]]
    commit: str = ""


def lowercased(corpus: Corpus) -> Corpus:
    """The same corpus with all its text in lower case."""
    lower = {
        name: [Sentences(pair.source.lower(), pair.target.lower()) for pair in pairs]
        for name, pairs in corpus.splits.items()
    }
    return corpus._replace(splits=lower)


class Row(NamedTuple):
    """A pair, and the tags of its example, of which `length` is the words of the source."""

    pair: Sentences
    tags: Mapping[str, Tag]

    @property
    def length(self) -> int:
        return int(self.tags["length"])


def row_of(pair: Sentences, tags: Mapping[str, Tag] = MappingProxyType({})) -> Row:
    return Row(pair, {**tags, "length": len(pair.source.split())})


def shuffled(pairs: Iterable[Sentences], seed: int) -> list[Sentences]:
    """In an order that only their text and `seed` decide, so that its beginnings are nested random subsets.

    Files are often sorted by origin: the first lines of one would be no sample of it.
    """

    def key(pair: Sentences) -> bytes:
        return hashlib.sha256(f"subset\t{seed}\t{pair.source}\t{pair.target}".encode()).digest()

    return sorted(pairs, key=key)


class Sieve:
    """Lets through what may be trained on: no source or target of a held-out split, no source of too many words."""

    def __init__(self, held_out: Mapping[str, Iterable[Row]], longest: int) -> None:
        pairs = [row.pair for rows in held_out.values() for row in rows]
        self._sources, self._targets = {pair.source for pair in pairs}, {pair.target for pair in pairs}
        self._longest = longest
        self.longer: list[Row] = []
        self.left_out = {"overlap": 0, "length": 0}

    def kept(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            if self._longest and row.length > self._longest:
                self.left_out["length"] += 1
                self.longer.append(row)
            elif row.pair.source in self._sources or row.pair.target in self._targets:
                self.left_out["overlap"] += 1
            else:
                yield row


def by_length(
    held_out: Mapping[str, Sequence[Row]], longest: int, longer: Iterable[Row], kept: Sequence[Row]
) -> dict[str, list[Row]]:
    """`validation` and `test` up to `longest`, and test splits of what is longer in `test` and `longer`.

    Of these none is there twice, and none has a target that is among those `kept` for training. Other splits stay as
    they are, and all do if `longest` is 0. A split of which nothing is left is left out.
    """
    splits = {name: list(rows) for name, rows in held_out.items()}
    if not longest:
        return splits
    if taken := sorted(splits.keys() & LONGER.keys()):
        raise UserError(f"data.max_train_length makes a split '{taken[0]}', but the corpus has one already")
    trained = {row.pair.target for row in kept}
    different = {row.pair: row for row in [*splits.get("test", ()), *longer] if row.pair.target not in trained}
    longer = list(different.values())
    for name in splits.keys() & {"validation", "test"}:
        splits[name] = [row for row in splits[name] if row.length <= longest]
    for name, (above, most) in LONGER.items():
        splits[name] = [row for row in longer if above * longest < row.length <= most * longest][:MOST]
    if not any(splits[name] for name in LONGER):
        raise UserError(f"data.max_train_length must be less than the words of the longest source, but is {longest}")
    return {name: rows for name, rows in splits.items() if rows}


def overlaps(train: Iterable[Row], held_out: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, int]]:
    """For each held-out split, how many of its pairs stand in train: by source, by target, and by both together."""
    pairs = {row.pair for row in train}
    sources, targets = {pair.source for pair in pairs}, {pair.target for pair in pairs}
    return {
        name: {
            "sources": sum(row.pair.source in sources for row in rows),
            "targets": sum(row.pair.target in targets for row in rows),
            "pairs": sum(row.pair in pairs for row in rows),
        }
        for name, rows in held_out.items()
    }


# From a folder


def from_folder(root: str, languages: Languages, reverse: bool = False) -> Corpus:
    """The corpus in a folder of `train`, `dev` or `validation`, and `test...` files in any of the known shapes.

    With `reverse`, the columns of two-column files, which have no names, are target and source.
    """
    folder = Path(root).expanduser()
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise UserError(f"data.root: can't read {folder}: {error.strerror}") from None
    files: dict[str, list[Path]] = {}
    for name in names:
        split = _split_of(name.partition(".")[0])
        if split and name.removesuffix(".gz").partition(".")[2] in {"tsv", "jsonl", *filter(None, languages)}:
            files.setdefault(split, []).append(folder / name)
    if "train" not in files or not any(TEST.fullmatch(split) for split in files):
        missing = "test" if "train" in files else "train"
        raise UserError(
            f"data.root: {folder} must hold a {missing} split as {SHAPES.replace('train', missing)}, "
            f"but holds {', '.join(names[:20]) or 'nothing'}"
        )
    return Corpus({split: list(_read(paths, languages, reverse)) for split, paths in files.items()})


def _split_of(name: str) -> str:
    """The split that a file or a split of the hub called `name` is; empty if it is none of them."""
    name = re.sub(r"\W", "_", name)
    if name in VALIDATION:
        return "validation"
    return name if name == "train" or TEST.fullmatch(name) else ""


def _read(paths: Sequence[Path], languages: Languages, reverse: bool) -> Iterator[Sentences]:
    """The pairs of one split, which is one file or two."""
    names = ", ".join(path.name for path in paths)
    if len(paths) == 1 and _form(paths[0]) == "tsv":
        return _tsv(paths[0], reverse)
    if reverse:
        raise UserError(
            f"data.reverse is for two-column files, but there is {names}: swap data.source_language and data.target_language"
        )
    if len(paths) == 1 and _form(paths[0]) == "jsonl":
        return _jsonl(paths[0], languages)
    sides = {_form(path): path for path in paths}
    if len(paths) == 2 and set(sides) == set(languages):
        return _parallel(sides[languages.source], sides[languages.target])
    if len(paths) == 1:
        raise UserError(f"{paths[0]} must have a file of the other language beside it, of {' and '.join(languages)}")
    raise UserError(f"{paths[0].parent}: a split must be one file or two parallel ones, but one is {names}")


def _form(path: Path) -> str:
    return path.name.removesuffix(".gz").partition(".")[2]


def _tsv(path: Path, reverse: bool) -> Iterator[Sentences]:
    for number, line in enumerate(_lines(path), 1):
        fields = line.split("\t")
        if len(fields) != 2:
            raise UserError(
                f"{path}:{number}: a line must be source<TAB>target, but has {len(fields)} "
                f"field{'s' * (len(fields) > 1)}: '{line[:60]}'"
            )
        first, second = (_text(field, "a sentence", f"{path}:{number}") for field in fields)
        yield Sentences(second, first) if reverse else Sentences(first, second)


def _jsonl(path: Path, languages: Languages) -> Iterator[Sentences]:
    for number, line in enumerate(_lines(path), 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}:{number}: a line must be JSON, but is not ({error}): '{line[:60]}'") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}:{number}: a line must be a JSON object, but is '{line[:60]}'")
        yield pair_of(row, languages, f"{path}:{number}")


def _parallel(source: Path, target: Path) -> Iterator[Sentences]:
    sides = list(_lines(source)), list(_lines(target))
    if len(sides[0]) != len(sides[1]):
        raise UserError(
            f"{source} and {target} must have the same number of lines, but have {len(sides[0]):,} "
            f"and {len(sides[1]):,}"
        )
    for number, (a, b) in enumerate(zip(*sides, strict=True), 1):
        yield Sentences(_text(a, "a sentence", f"{source}:{number}"), _text(b, "a sentence", f"{target}:{number}"))


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file, gzipped if it is called so, without their ends and without a byte order mark."""
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path} is not a whole gzip file: {error}") from None
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


def _text(value: object, what: str, where: str) -> str:
    """`value` if it is a sentence."""
    if not isinstance(value, str):
        raise UserError(f"{where}: {what} must be text, but is {json.dumps(value, default=str)[:60]}")
    if not value.strip():
        raise UserError(f"{where}: {what} must not be empty")
    if re.search("[\ud800-\udfff]", value):
        raise UserError(f"{where}: {what} holds half of a surrogate pair, which is no character")
    return value


# From the hub, and from rows of named columns in general


def pair_of(row: Mapping[str, Any], languages: Languages, where: str) -> Sentences:
    """The pair of a row `{translation: {xx, yy}}`, `{xx, yy}` or `{source, target}`."""
    nested = row.get("translation")
    row = nested if isinstance(nested, Mapping) else row
    keys = languages if all(languages) and set(languages) <= set(row) else Languages("source", "target")
    if not set(keys) <= set(row):
        if not all(languages):
            raise UserError(
                f"{where}: data.source_language and data.target_language must be set, to two of {', '.join(row)}"
            )
        for key, code in zip(("data.source_language", "data.target_language"), languages, strict=True):
            one_of(key, code, row, where)
    return Sentences(
        _text(row[keys.source], f"'{keys.source}'", where), _text(row[keys.target], f"'{keys.target}'", where)
    )


def from_hub(hub: str, config: str, revision: str, languages: Languages) -> Corpus:
    """The corpus of a data set on the Hugging Face hub, at `revision` if that is not empty."""
    from datasets import load_dataset_builder

    try:
        builder = load_dataset_builder(hub, config or None, revision=revision or None)
        builder.download_and_prepare()
        loaded = builder.as_dataset()
        named = [(name, _split_of(str(name))) for name in loaded]
    except Exception as error:  # the hub's many ways to fail share no base class
        raise UserError(f"data.hub: can't load '{hub}': {_reason(error)}") from None
    splits = [split for _, split in named if split]
    if len(set(splits)) < len(splits):
        raise UserError(f"data.hub: '{hub}' has two splits of one role: {', '.join(map(str, loaded))}")
    if "train" not in splits or not any(TEST.fullmatch(split) for split in splits):
        raise UserError(
            f"data.hub: '{hub}' must have a train and a test split, but has {', '.join(str(name) for name in loaded)}"
        )
    return Corpus(
        {
            split: [
                pair_of(row, languages, f"data.hub: '{hub}', row {number} of {name}")
                for number, row in enumerate(loaded[name], 1)
            ]
            for name, split in named
            if split
        },
        # Of a repository the hash is the commit; of a folder the library makes a shorter one.
        builder.hash if re.fullmatch("[0-9a-f]{40}", builder.hash or "") else "",
    )


def _reason(error: Exception) -> str:
    """What went wrong, in one line, with the way out of it."""
    text = str(error).strip().split("\n")[0][:160] or type(error).__name__
    if "scripts are no longer supported" in text:
        return f"{text}. Its parquet copy, if the hub made one, is at data.revision=refs/convert/parquet"
    if isinstance(error, ConnectionError) or "offline" in text.lower():
        return f"{text}. Offline, use data.root, or load it once while online"
    return text
