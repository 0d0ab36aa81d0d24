"""Read a corpus from a folder of .tsv, .jsonl or parallel files, also gzipped.

Other line separators than the line feed, such as U+2028 and U+0085, are part of a sentence, a quotation mark is an
ordinary character, and "NA" is a word (readers of CSV differ in all three).
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tfstudy.errors import UserError, nearest, one_of, path_of, quoted
from tfstudy.tasks.translation.corpus import TEST, Corpus, Languages, Sentences, pair_of, split_name
from tfstudy.tasks.translation.lines import lines

TRAIN = re.compile("train")
NAMED = re.compile("(train|dev|val|test)", re.IGNORECASE)  # how the name of a file of a split begins
LANGUAGE = re.compile("[a-zA-Z]{2,3}([-_].*)?")  # what a code looks like
NAMES = {  # languages that a first line may name
    *("english", "german", "deutsch", "french", "spanish", "japanese", "chinese", "swahili", "zulu", "wolof", "czech"),
    *("russian", "arabic", "turkish", "vietnamese", "korean", "portuguese", "italian", "dutch", "polish", "hindi"),
}
EXPECTED_FILES = (
    "{0}.tsv, {0}.jsonl, or parallel files {0}.<source_language> and {0}.<target_language> (optionally .gz)"
)


def from_folder(root: str, languages: Languages, reverse: bool = False) -> Corpus:
    """Read the files `train`, `dev` or `validation`, and `test...` of a folder, in any of the known formats.

    With `reverse`, the columns of two-column files are target and source.
    """
    folder = path_of(root)
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        near = nearest(folder.name, _folders(folder.parent)) if isinstance(error, FileNotFoundError) else ""
        where = "" if folder.is_absolute() else f" in {Path.cwd()}"
        raise UserError(f"data.root: can't read {folder}{where}: {error.strerror}{near}") from None
    files: dict[str, list[Path]] = {}
    for path in paths:
        if (split := _split(path)) and _form(path) in {"tsv", "jsonl", *filter(None, languages)}:
            files.setdefault(split, []).append(path)
    _check_languages(folder, languages)
    if "train" not in files or not any(TEST.fullmatch(split) for split in files):
        missing = "test" if "train" in files else "train"
        inside = [name for name in _folders(folder) if is_corpus(folder / name)]
        raise UserError(
            f"data.root: {folder} has no {missing} split; "
            + (f"did you mean '{folder / inside[0]}'? Expected " if inside else "expected ")
            + f"{EXPECTED_FILES.format(missing)}, but the folder contains "
            + (", ".join(path.name for path in paths[:20]) or "nothing")
        )
    return Corpus(
        {split: list(_read(own, languages, reverse)) for split, own in files.items()},
        places={split: _places(own, languages) for split, own in files.items()},
        unread=_unread(paths, {path for own in files.values() for path in own}, languages),
    )


def _unread(paths: Iterable[Path], read: set[Path], languages: Languages) -> list[str]:
    """Return the files that look like those of a split, but were not read, except those of other languages."""
    named = (path for path in paths if NAMED.match(path.name) and path not in read and path.is_file())
    return [path.name for path in named if not (_split(path) and all(languages) and LANGUAGE.fullmatch(_form(path)))]


def _check_languages(folder: Path, languages: Languages) -> None:
    """`UserError` if the train split of a folder is in files of languages that are not those of the config."""
    forms = _forms(folder, TRAIN)
    codes = _codes(folder)
    if len(codes) < 2 or "tsv" in forms or {*languages} <= forms:
        return
    if not all(languages):
        raise UserError(
            f"data.root: {folder} has a file for each language: set data.source_language and data.target_language to "
            f"two of {', '.join(codes)}"
        )
    for key, code in zip(("data.source_language", "data.target_language"), languages, strict=True):
        one_of(key, code, codes, str(folder))


def is_corpus(folder: Path) -> bool:
    """Return whether a folder has a train split in one of the known formats."""
    forms = _forms(folder, TRAIN)
    return bool(forms & {"tsv", "jsonl"}) or sum(bool(LANGUAGE.fullmatch(form)) for form in forms) > 1


def _codes(folder: Path) -> list[str]:
    """Return the languages of parallel files: endings of train, such as `en` and `pt_BR`, that a test split has too."""
    tested = _forms(folder, TEST)
    return sorted(form for form in _forms(folder, TRAIN) if LANGUAGE.fullmatch(form) and (not tested or form in tested))


def _forms(folder: Path, splits: re.Pattern[str]) -> set[str]:
    """Return the formats and languages of the files of these splits; empty for a folder that can't be read."""
    try:
        return {_form(path) for path in folder.iterdir() if splits.fullmatch(_split(path))}
    except OSError:
        return set()


def has_columns(folder: Path) -> bool:
    """Return whether the train split is a two-column file, whose order no setting but `data.reverse` decides."""
    return "tsv" in _forms(folder, TRAIN)


def _folders(folder: Path) -> list[str]:
    """Return the names of the folders in a folder; empty if it can't be read."""
    try:
        return sorted(path.name for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []


def languages_of(root: Path) -> Languages:
    """Return the languages of a corpus without a config; empty if nothing shows them.

    They are the endings of parallel files or the columns of JSON lines, in the order in which the name of the folder
    has them (`tanaka-en-ja`), otherwise in alphabetical order. For two-column files they are those of the name.
    """
    named, forms = named_languages(root), _forms(root, TRAIN)
    codes = set() if forms & {"tsv", "jsonl"} else set(_codes(root))
    if "jsonl" in forms:
        codes = next(
            _columns(path) for path in sorted(root.iterdir()) if (_split(path), _form(path)) == ("train", "jsonl")
        )
    if len(codes) > 2 and not set(named) <= codes:
        raise UserError(
            f"{root} has files of {len(codes)} languages, {', '.join(sorted(codes))}: end its name with two of them, "
            f"such as {root.name}-{'-'.join(sorted(codes)[:2])}"
        )
    return named if codes == set() or set(named) <= codes else Languages(*sorted(codes))


def named_languages(root: Path) -> Languages:
    """Return the languages in the name of a folder, such as `tanaka-en-ja`; empty if it has none."""
    match = re.search(r"(?:^|[-_.])([a-z]{2,3})[-_]([a-z]{2,3})$", root.resolve().name)
    return Languages(*match.groups()) if match else Languages()


def _columns(path: Path) -> set[str]:
    """Return the two columns of text in a .jsonl file; empty if they are not clear."""
    row = next((row for row in _rows(path)), {})
    row = row["translation"] if isinstance(row.get("translation"), dict) else row
    texts = {name for name, value in row.items() if isinstance(value, str) and name != "id"}
    named = {name for name in texts if LANGUAGE.fullmatch(name)}
    texts = named if len(named) == 2 else texts
    return set() if {"source", "target"} <= {*row} or len(texts) != 2 else texts


def _places(paths: Sequence[Path], languages: Languages) -> tuple[str, str]:
    """Return where a split's sources and targets are: text that a line number completes."""
    sides = {_form(path): f"{path}:" for path in paths}
    return (sides[languages.source], sides[languages.target]) if len(paths) == 2 else (f"{paths[0]}:",) * 2


def _read(paths: Sequence[Path], languages: Languages, reverse: bool) -> Iterator[Sentences]:
    """Yield the pairs of one split, from one file or two parallel files. Sides may be empty."""
    names = ", ".join(path.name for path in paths)
    if len(paths) == 1 and _form(paths[0]) == "tsv":
        return _tsv(paths[0], languages, reverse)
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
    if len(paths) == 1:
        raise UserError(
            f"{paths[0]}: the file of the other language is missing (data.source_language={languages.source}, "
            f"data.target_language={languages.target})"
        )
    raise UserError(f"{paths[0].parent}: expected one file or two parallel files per split, but found {names}")


def _split(path: Path) -> str:
    """Return the split that a file is called after; empty if it is none."""
    return split_name(path.name.partition(".")[0])


def _form(path: Path) -> str:
    """Return the format of a file: tsv, jsonl or a language code."""
    return path.name.removesuffix(".gz").partition(".")[2]


def _tsv(path: Path, languages: Languages, reverse: bool) -> Iterator[Sentences]:
    for number, line in enumerate(lines(path), 1):
        fields = line.split("\t")
        if len(fields) != 2:
            raise UserError(
                f"{path}:{number}: expected source<TAB>target, but the line has {len(fields)} "
                f"field{'s' * (len(fields) > 1)}: {quoted(line)}"
            )
        if number == 1 and _names_columns(fields, path, languages):
            raise UserError(f"{path}:1: the first line names the columns, {quoted(line)}: remove it")
        yield Sentences(*(reversed(fields) if reverse else fields))


def _names_columns(fields: Sequence[str], path: Path, languages: Languages) -> bool:
    """Return whether the first line names its columns: `source` and `target`, two codes of languages, or their names.

    The codes are those of the config or of the name of the folder.
    """
    words = {field.strip().casefold() for field in fields}
    codes = ({code.casefold() for code in pair} for pair in (languages, named_languages(path.parent)))
    headers = ({"source", "target"}, {"src", "tgt"}, *codes)
    return len(words) == 2 and "" not in words and (words in headers or words <= NAMES)


def _jsonl(path: Path, languages: Languages) -> Iterator[Sentences]:
    for number, row in enumerate(_rows(path), 1):
        yield pair_of(row, languages, f"{path}:{number}")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines(path), 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}:{number}: invalid JSON ({error}): {quoted(line)}") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}:{number}: expected a JSON object, but the line is {quoted(line)}")
        yield row


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
