"""Describe the corpora of a folder: sizes, licence, overlap between splits, and faults."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import shorten, wrap

from tfstudy.errors import UserError, printable
from tfstudy.tasks.translation.corpus import Sentences
from tfstudy.tasks.translation.filtering import overlaps, row_of
from tfstudy.tasks.translation.folder import from_folder, is_corpus, languages_of
from tfstudy.tasks.translation.profile import OrderProfile
from tfstudy.tasks.translation.quality import FAULTS, check_order, counts, faults, mixed_forms
from tfstudy.tasks.translation.remarks import mixed_forms_line, not_read

WIDTH = 80
MAX_LICENCE = 150  # characters that are shown
MAX_READ = 100_000  # characters of a file that are searched for a licence
SEVERAL = "sources_with_several_targets"
COLUMNS = "  {:{width}}{:>9}{:>14}{:>14}{:>10}{:>9}{:>8}"
LICENCE = re.compile(r"^\W*licen[cs]es?[^\w:]*:\W*(\w.*)$", re.IGNORECASE)


def list_corpora(folder: Path) -> Iterator[str]:
    """Yield lines that describe a corpus, or all corpora of a folder; for one that can't be read, its error.

    Raise `UserError` if there is none.
    """
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError as error:
        raise UserError(f"can't read {folder}: {error.strerror}") from None
    roots = [folder] if is_corpus(folder) else [path for path in inside if is_corpus(path)]
    if not roots:
        raise UserError(
            f"{folder} has no corpus: neither it nor a folder in it has train.tsv, train.jsonl or two parallel files "
            "such as train.en and train.de (optionally .gz)"
        )
    for root in roots:
        try:
            yield from describe(root)
        except UserError as error:
            if root == folder:
                raise
            yield from _wrapped(f"{root.name}: {error}")


def describe(root: Path) -> Iterator[str]:
    """Yield the lines about one corpus. Pairs with an empty side are counted; other errors in its files are raised."""
    languages = languages_of(root)
    corpus = from_folder(str(root), languages)
    names = sorted(corpus.splits, key=lambda name: (name != "train", name != "validation", name))
    yield from _wrapped(f"{root.resolve().name}  licence: {shorten(licence_of(root), MAX_LICENCE, placeholder=' ...')}")
    for line in not_read(corpus.unread):
        yield from _wrapped(f"  {line}")
    width = max(12, *map(len, names))
    yield COLUMNS.format("", "", "words of", "words of", "in train:", "", "", width=width).rstrip()
    yield COLUMNS.format("split", "pairs", "source", "target", "sources", "targets", "pairs", width=width)
    held_out = {name: list(map(row_of, corpus.splits[name])) for name in names[1:]}
    shared = overlaps(map(row_of, corpus.splits["train"]), held_out)
    for name in names:
        numbers = _sizes(corpus.splits[name]) + list(shared.get(name, {}).values())
        cells = [f"{number:,}" for number in numbers] + [""] * (6 - len(numbers))
        yield COLUMNS.format(name, *cells, width=width).rstrip()
    profile = OrderProfile(corpus.splits["train"])
    for name in names:
        yield from _wrapped(f"  {name}: {_faults(corpus.splits[name], profile)}")
    for line in mixed_forms_line(mixed_forms(corpus.splits)):
        yield from _wrapped(f"  {line}")
    try:
        check_order(corpus, profile, languages)
    except UserError as error:
        yield from _wrapped(f"  {error}")


def _sizes(pairs: Sequence[Sentences]) -> list[int]:
    """Return the number of pairs and of the words of their sources and of their targets, as spaces separate them."""
    return [len(pairs), *(sum(len(pair[side].split()) for pair in pairs) for side in (0, 1))]


def _faults(pairs: Sequence[Sentences], profile: OrderProfile) -> str:
    found = counts(pairs, faults(pairs, profile))
    labels = {name: FAULTS.get(name, name.replace("_", " ")) for name in found}
    if found.get(SEVERAL) == 1:
        labels[SEVERAL] = labels[SEVERAL].replace("sources", "source")
    return ", ".join(f"{number:,} {labels[name]}" for name, number in found.items() if number) or "no faults"


def _wrapped(text: str) -> list[str]:
    return wrap(printable(text), WIDTH, subsequent_indent="    ", drop_whitespace=True)


def licence_of(root: Path) -> str:
    """Return the licence of a corpus: what a line `Licence: ...` of `corpus.yaml`, a README or a LICENSE file says.

    A LICENSE file without such a line is represented by its first line. "unknown" without any of these, or if they
    can't be read.
    """
    for path in sorted(root.iterdir(), key=lambda path: (path.name != "corpus.yaml", path.name)):
        if not path.is_file() or not re.match(r"(corpus\.yaml$|readme|licen[cs]e)", path.name, re.IGNORECASE):
            continue
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            if found := _licence_in(path.name, file.read(MAX_READ)):
                return found
    return "unknown"


def _licence_in(name: str, text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    stated = next((match[1].strip("'\"") for line in lines if (match := LICENCE.match(line))), "")
    return stated or (lines[0] if lines and name.lower().startswith("licen") else "")
