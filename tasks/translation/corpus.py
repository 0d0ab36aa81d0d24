"""Parallel text: pairs of sentences by split, and the checks that all corpora must pass.

    a dog sleeps<TAB>ein Hund schläft  ->  Sentences(source='a dog sleeps', target='ein Hund schläft')

Text is kept exactly as it is: there is no tokenisation and no quoting, and nothing is changed.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tfstudy.errors import UserError, nearest, quoted

VALIDATION = ("validation", "dev", "valid", "val")  # names of the validation split
TEST = re.compile(r"test\w{0,60}")  # names of test splits
SHOWN = 200  # characters of the keys of a row that a message shows


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

    `places` says where the sources and the targets of a split are: text such as `train.tsv:`, completed by a number.
    `unread` are the files that have the name of a split, but were not read.
    """

    splits: dict[str, list[Sentences]]
    commit: str = ""
    places: Mapping[str, tuple[str, str]] = MappingProxyType({})
    unread: Sequence[str] = ()


def language_code(language: str) -> str:
    """Return `ja` for `ja`, `JA` and `ja_JP`."""
    return language.lower().replace("_", "-").partition("-")[0]


def lowercased(corpus: Corpus) -> Corpus:
    """Return the corpus with all text in lower case."""
    lower = {
        name: [Sentences(pair.source.lower(), pair.target.lower()) for pair in pairs]
        for name, pairs in corpus.splits.items()
    }
    return corpus._replace(splits=lower)


def shuffled(pairs: Iterable[Sentences], seed: int) -> list[Sentences]:
    """Return the pairs in an order that depends only on their text and `seed`; its prefixes are nested random subsets.

    Files are often sorted by origin, so the first lines would not be a random sample.
    """

    def key(pair: Sentences) -> bytes:
        return hashlib.sha256(f"subset\t{seed}\t{pair.source}\t{pair.target}".encode()).digest()

    return sorted(pairs, key=key)


def split_name(name: str) -> str:
    """Return the split for a file or a hub split with this name; empty if it is none."""
    name = re.sub(r"\W", "_", name)
    if name in VALIDATION:
        return "validation"
    return name if name == "train" or TEST.fullmatch(name) else ""


def checked_text(value: object, what: str, where: str) -> str:
    """Return `value` if it is text, which may be empty; otherwise raise `UserError`."""
    if not isinstance(value, str):
        raise UserError(f"{where}: {what} must be text, but is {json.dumps(value, default=str)[:60]}")
    if re.search("[\ud800-\udfff]", value):
        raise UserError(f"{where}: {what} contains half of a surrogate pair, which is not a character")
    return value


def pair_of(row: Mapping[str, Any], languages: Languages, where: str) -> Sentences:
    """Return the pair in a row `{translation: {xx, yy}}`, `{xx, yy}` or `{source, target}`."""
    nested = row.get("translation")
    row = nested if isinstance(nested, Mapping) else row
    keys = languages if all(languages) and set(languages) & set(row) else Languages("source", "target")
    if not set(keys) <= set(row):
        names = quoted(", ".join(row) or "no keys", SHOWN, "")
        if len(row) < 2:
            raise UserError(f"{where}: expected a source and a target, but the row has {names}")
        if not all(languages):
            raise UserError(f"{where}: set data.source_language and data.target_language to two of {names}")
        for key, code in zip(("data.source_language", "data.target_language"), languages, strict=True):
            if code not in row:
                raise UserError(f"{where}: no {quoted(code)} ({key}), only {names}{nearest(code, row)}")
    return Sentences(
        checked_text(row[keys.source], f"'{keys.source}'", where),
        checked_text(row[keys.target], f"'{keys.target}'", where),
    )
