"""Read a corpus from a folder of .tsv, .jsonl or parallel files, also gzipped.

Other line separators than the line feed, such as U+2028 and U+0085, are part of a sentence, a quotation mark is an
ordinary character, and "NA" is a word (readers of CSV differ in all three).
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tfstudy.tasks.errors import UserError, quoted
from tfstudy.tasks.translation.corpus import TEST, Corpus, Languages, Sentences, pair_of, split_name
from tfstudy.tasks.translation.lines import lines

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
    return Corpus(
        {split: list(_read(paths, languages, reverse)) for split, paths in files.items()},
        places={split: _places(paths, languages) for split, paths in files.items()},
    )


def languages_of(root: Path) -> Languages:
    """Return the languages of a corpus without a config; empty if nothing shows them.

    They are the endings of parallel files or the columns of JSON lines, in the order in which the name of the folder
    has them (`tanaka-en-ja`), otherwise in alphabetical order. For two-column files they are those of the name.
    """
    match = re.search(r"(?:^|[-_.])([a-z]{2,3})[-_]([a-z]{2,3})$", root.resolve().name)
    named = Languages(*match.groups()) if match else Languages()
    paths = sorted(path for path in root.iterdir() if split_name(path.name.partition(".")[0]))
    codes = {_form(path) for path in paths if not path.is_dir()} - {"tsv", "jsonl"}
    if len(codes) != 2:
        codes = next((_columns(path) for path in paths if _form(path) == "jsonl"), set())
    return named if codes in (set(), set(named)) else Languages(*sorted(codes))


def _columns(path: Path) -> set[str]:
    """Return the two columns of text in a .jsonl file; empty if they are not clear."""
    row = next((row for row in _rows(path)), {})
    row = row["translation"] if isinstance(row.get("translation"), dict) else row
    texts = {name for name, value in row.items() if isinstance(value, str) and name != "id"}
    return set() if {"source", "target"} <= texts or len(texts) != 2 else texts


def _places(paths: Sequence[Path], languages: Languages) -> tuple[str, str]:
    """Return where a split's sources and targets are: text that a line number completes."""
    sides = {_form(path): f"{path}:" for path in paths}
    return (sides[languages.source], sides[languages.target]) if len(paths) == 2 else (f"{paths[0]}:",) * 2


def _read(paths: Sequence[Path], languages: Languages, reverse: bool) -> Iterator[Sentences]:
    """Yield the pairs of one split, from one file or two parallel files. Sides may be empty."""
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
    for number, line in enumerate(lines(path), 1):
        fields = line.split("\t")
        if len(fields) != 2:
            raise UserError(
                f"{path}:{number}: expected source<TAB>target, but the line has {len(fields)} "
                f"field{'s' * (len(fields) > 1)}: {quoted(line)}"
            )
        yield Sentences(*(reversed(fields) if reverse else fields))


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
