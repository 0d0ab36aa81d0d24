"""Wrong predictions to look through: the kinds of each row's, with examples, the first wrong token told apart."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tasks.errors import UserError
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.error_kinds import KINDS, Anatomy, anatomy, first_error
from tfstudy.report.plots.layout import place
from tfstudy.runs.reader import predictions

END = "(end)"  # the token by which a prediction or a target ends
EXAMPLES = 20  # of a kind and row, at most
ALL_EXAMPLES = 600  # of all kinds and rows, about
FILES = 150  # of predictions that are read
LONGEST = 120  # tokens of a text that are shown


class Marked(NamedTuple):
    """A text, with one of its tokens told apart."""

    before: str
    token: str
    after: str


class Example(NamedTuple):
    """A wrong prediction, at the first token that is not the target's."""

    seed: int
    source: str
    target: Marked
    prediction: Marked


class Kind(NamedTuple):
    """Of a row's predictions, those of one kind."""

    name: str
    n: int
    share: float  # per cent of all its predictions that were read
    first_error: (
        float | None
    )  # place of the first wrong token on average, in per cent of the target; None of right ones
    examples: list[Example]


class Browsed(NamedTuple):
    """What is wrong in a row."""

    row: Condition
    place: str  # its experiment and test split
    seeds: list[int]  # whose predictions were read
    n: int
    kinds: list[Kind]


class Browser(NamedTuple):
    """What is wrong in a study, and what is not shown."""

    rows: list[Browsed]
    kinds: list[str]  # the wrong ones that occur
    notes: list[str]


def browse(rows: Sequence[Condition]) -> Browser:
    """The kinds of these rows' predictions, of so many rows and seeds that the reading stays quick.

    Examples are taken from all over a test split, evenly; the more rows, the fewer of each kind.
    """
    shown = [row for row in rows if row.runs][:FILES]
    seeds = max(1, FILES // max(1, len(shown)))
    examples = max(2, min(EXAMPLES, ALL_EXAMPLES // (4 * max(1, len(shown)))))  # a row has about 4 kinds
    found, unread = [], []
    for row in shown:
        read = {run.result.seed: rows_of for run in row.runs[:seeds] if (rows_of := _read(run.path, row.test))}
        if read:
            found.append(_browsed(row, place(row, rows), read, examples))
        else:
            unread.append(row)
    occur = {kind.name for one in found for kind in one.kinds}
    notes = _notes(rows, shown, unread, seeds, examples)
    return Browser(found, [name for name in KINDS if name in occur and name != "right"], notes)


def _read(path: Path, split: str) -> list[dict[str, Any]]:
    with contextlib.suppress(UserError):
        return predictions(path, split)
    return []


def marked(text: str, at: int | None) -> Marked:
    """The text with its token at this place told apart, its end if it has no more; long ones are cut around it."""
    tokens = text.split()
    at = len(tokens) if at is None else min(at, len(tokens))
    first = max(0, min(at - LONGEST // 2, len(tokens) - LONGEST))
    last = first + LONGEST
    before = " ".join(["..."] * (first > 0) + tokens[first:at])
    after = " ".join([*tokens[at + 1 : last], *["..."] * (last < len(tokens))])
    return Marked(before, tokens[at] if at < len(tokens) else END, after)


def _browsed(row: Condition, where: str, read: dict[int, list[dict[str, Any]]], most: int) -> Browsed:
    told = [{**one, "seed": seed} for seed, lines in read.items() for one in lines]
    found = anatomy(told, len(told))
    return Browsed(row, where, list(read), found.n, [_kind(name, found, most) for name in found.kinds])


def _kind(name: str, found: Anatomy, most: int) -> Kind:
    there = found.examples.get(name, [])
    chosen = [there[number * len(there) // most] for number in range(most)] if len(there) > most else there
    first = 100 * found.first_error[name] if name in found.first_error else None
    n = found.kinds[name]
    return Kind(name, n, 100 * n / found.n, first, [_example(one) for one in chosen])


def _example(one: Any) -> Example:
    target, prediction = one["target"], one["prediction"]
    first = first_error(target.split(), prediction.split())
    return Example(one["seed"], one["source"], marked(target, first), marked(prediction, first))


def _notes(
    rows: Sequence[Condition], shown: Sequence[Condition], unread: Sequence[Condition], seeds: int, examples: int
) -> list[str]:
    """What a reader must know of what is not here."""
    with_runs = sum(bool(row.runs) for row in rows)
    cut = any(len(row.runs) > seeds for row in shown)
    names = [f"{row.task} {row.place} {row.label}" for row in unread]
    more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
    notes = [
        f"At most {examples} examples of each kind are shown for a row, from all over its predictions; the counts are "
        f"of all predictions of {'the first seed' if seeds == 1 else f'up to {seeds} seeds'}."
        if cut
        else f"At most {examples} examples of each kind are shown for a row, from all over its predictions; the counts "
        "are of all predictions of all its seeds."
    ]
    if with_runs > len(shown):
        notes.append(f"Only the first {len(shown):,} of {with_runs:,} rows are here, so that the file stays small.")
    if unread:
        notes.append(
            f"No predictions that can be read are in the records of {len(names):,} rows: {', '.join(names[:10])}{more}."
        )
    return notes
