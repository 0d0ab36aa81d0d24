"""The tables of a study as in a paper: one for each task, with a row for each condition and a column for each test set.

A cell has the mean, its interval and its letters; published figures stand in rows of their own below. With a baseline a
second table has the differences from it. Where there are more test sets than conditions, and more than `MANY`, rows and
columns change places. What has no place here (oracle length, chrF, L90, seconds) is a column if there is one test set.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy.analysis import labels
from tfstudy.analysis.frame import DEFAULT
from tfstudy.analysis.labels import OUTDATED, Condition
from tfstudy.analysis.published import OTHER_SETTINGS, Quotation
from tfstudy.analysis.stats import ALPHA
from tfstudy.analysis.summary import rows_of
from tfstudy.config.trees import short_key
from tfstudy.report.markup import ends, escape_latex, number, p_value, short_number, signed, with_interval
from tfstudy.report.render import Cells, Written
from tfstudy.runs.display import metric_name

if TYPE_CHECKING:
    from tfstudy.report.tables import Table

MANY = 6  # test sets in columns, where there are fewer conditions
MORE = ("oracle_length", "over_lengths", "chrf", "L90", "L50", "seconds")  # columns where there is one test set
PUBLISHED = "published"
LABELS = ("architecture", "preset")  # heads whose texts say what they are
Place = tuple[str, ...]
Names = tuple[str, ...]  # what tells a row from the others: a text for each head


class Line(NamedTuple):
    """A row: the same condition on several test sets."""

    names: Names
    on: dict[Place, Condition]


def wide(table: "Table", format: str = "md", narrow: bool = False) -> list[Cells]:
    """Return the tables of a study, of each task its results and then, with a baseline, the differences from it.

    If they are to be `narrow`, intervals stand below the means, and sizes are left out.
    """
    out = []
    for _, rows in table.rows.groupby("task", sort=False):
        out += _of_task(table, rows_of(rows), format, narrow)
    return out


def _of_task(table: "Table", rows: Sequence[Condition], format: str, narrow: bool) -> list[Cells]:
    heads, lines = _lines(rows)
    common, places = _places(rows)
    usual = Counter(map(_count, rows)).most_common(1)[0][0]

    def result(row: Condition) -> str:
        count = f"(n = {_count(row)})" * (_count(row) != usual)
        if narrow:
            first = " ".join(filter(None, [number(row.mean), row.letters, count]))
            return "\n".join(filter(None, [first, ends(row.low, row.high)]))
        return " ".join(filter(None, [with_interval(row.mean, row.low, row.high), row.letters, count]))

    def difference(row: Condition) -> str:
        return f"{signed(row.difference)} ({p_value(row.q)})" if row.baseline and row.q == row.q else ""

    more = _more(table, lines) if len(places) == 1 else {}
    more |= {} if narrow else {"parameters": [_sizes(line) for line in lines]}
    # settings and sizes that all rows share stand in the title, but no architecture with published figures below
    own = {head: [line.names[i] for line in lines] for i, head in enumerate(heads)}
    own |= {head: texts for head, texts in more.items() if head == "parameters"}
    shared = {head: texts[0] for head, texts in own.items() if len(lines) > 1 and len({*texts}) == 1}
    if any(row.published for row in rows):
        shared.pop(heads[0], None)
    lines = [line._replace(names=tuple(own[head][i] for head in heads if head not in shared))
             for i, line in enumerate(lines)]  # fmt: skip
    heads, more = [head for head in heads if head not in shared], {k: v for k, v in more.items() if k not in shared}
    title = f"{metric_name(rows[0].metric)} on {rows[0].task} {common}".rstrip()
    if same := ", ".join(f"{head} {text}" for head, text in shared.items() if text):
        title += f"; the same in each row: {same}"
    quoted = _published(rows, len(heads), format)
    if narrow:
        quoted = {
            tuple(name.replace(" ", "\n") for name in names): {
                place: text.replace(" [", "\n[") for place, text in texts.items()
            }
            for names, texts in quoted.items()
        }
    blocks = [_block(title, heads, lines, places, (result, lambda row: bool(row.best_group)), more, quoted, format)]
    compared = [line for line in lines if any(map(difference, line.on.values()))]
    if compared:
        title = f"difference from {table.baseline} in points (q)"
        blocks.append(_block(title, heads, compared, places, (difference, lambda row: row.q < ALPHA), {}, {}, format))
    return blocks


def _lines(rows: Sequence[Condition]) -> tuple[list[str], list[Line]]:
    """Return the heads of what tells conditions apart, and each condition with its test sets.

    These are the architecture, the preset unless all have the default, and the fewest settings that explain how
    conditions of the same architecture and preset differ. Conditions with less training data come first.
    """
    keys = dict.fromkeys(key for row in rows for key in row.settings if key != OUTDATED)
    own = [{key: row.settings.get(key, row.config.get(key, "")) for key in keys} for row in rows]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row, settings in zip(rows, own, strict=True):
        groups.setdefault((row.arch, row.preset), []).append(settings)
    varying = {key for members in groups.values() for key in labels.varying(members)}
    shown = [key for key in keys if key in varying]
    presets = [f"{row.preset}{f' {OUTDATED}' * bool(row.settings.get(OUTDATED))}" for row in rows]
    heads, with_preset = [LABELS[0], *map(short_key, shown)], {*presets} != {DEFAULT}
    values = [tuple(str(settings[key]) for key in shown) for settings in own]
    names: list[Names] = [(row.arch, *texts) for row, texts in zip(rows, values, strict=True)]
    if with_preset:
        heads.insert(1, LABELS[1])
        names = [(one[0], preset, *one[1:]) for one, preset in zip(names, presets, strict=True)]
    if len({(one, row.place) for one, row in zip(names, rows, strict=True)}) < len(rows):
        heads, names = [*LABELS], [(row.arch, row.preset_label) for row in rows]
    lines: dict[Names, Line] = {}
    for one, row in zip(names, rows, strict=True):
        lines.setdefault(one, Line(one, {})).on[row.place] = row
    return heads, sorted(lines.values(), key=_order)


def _order(line: Line) -> tuple[Any, ...]:
    """Order by amount of training data, then by names, with numbers in them by their size."""
    row = next(iter(line.on.values()))
    words = [[(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)]
             for name in line.names]  # fmt: skip
    return row.amount, words


def _places(rows: Sequence[Condition]) -> tuple[str, dict[Place, str]]:
    """Return the word that all names of test sets begin with, or nothing, and the rest of each."""
    names = {row.place: " ".join(filter(None, [row.split_label, row.tag, row.value])) for row in rows}
    twice = Counter(names.values())
    digests = {row.place: f" ({row.examples[:8]})" * (twice[names[row.place]] > 1) for row in rows}
    first = {name.partition(" ")[0] for name in names.values()}
    common = first.pop() if len(first) == 1 and len(names) > 1 else ""
    return common, {
        place: (name.removeprefix(common).strip() or "test") + digests[place] for place, name in names.items()
    }


def _count(row: Condition) -> str:
    return f"{len(row.runs)}" + (f", {len(row.diverged)} diverged" if row.diverged else "")


def _sizes(line: Line) -> str:
    sizes = sorted({row.parameters for row in line.on.values()} - {0})
    return " to ".join(dict.fromkeys(map(short_number, sizes[:1] + sizes[-1:])))


def _more(table: "Table", lines: Sequence[Line]) -> dict[str, list[str]]:
    """Return what else was measured on the only test set, by head."""
    from tfstudy.report.tables import HEADS, all_texts

    texts, at = all_texts(table), {one.key: i for i, one in enumerate(rows_of(table.rows))}
    rows = [at[next(iter(line.on.values())).key] for line in lines]
    found = {HEADS[key]: [texts[key].iloc[i] for i in rows] for key in MORE if key in table.shown}
    return {head: own for head, own in found.items() if any(own)}


def _published(rows: Sequence[Condition], names: int, format: str) -> dict[Names, dict[Place, str]]:
    """Return the texts of published figures by the names of a row, and test set: those of each kind of network."""
    found: dict[Names, dict[Place, dict[str, None]]] = {}
    for row in rows:
        for one in row.published:
            line = found.setdefault((f"{row.arch}, {PUBLISHED}", *[""] * (names - 1)), {})
            line.setdefault(row.place, {})[cited(one) if format == "tex" else str(one)] = None
    kind, join = Written if format == "tex" else str, "\n" if format == "text" else "; "
    return {line: {place: kind(join.join(texts)) for place, texts in own.items()} for line, own in found.items()}


def cited(one: Quotation) -> str:
    """Return a published figure for LaTeX, such as `13.8~\\cite{lake-2018}`."""
    sign = "" if one.same_settings else escape_latex(OTHER_SETTINGS)
    return rf"{escape_latex(one.figure.text)}~\cite{{{one.figure.paper}}}{sign}"


def _block(
    title: str, heads: Sequence[str], lines: Sequence[Line], places: Mapping[Place, str],
    text: tuple[Callable[[Condition], str], Callable[[Condition], bool]], more: Mapping[str, Sequence[str]],
    quoted: Mapping[Names, Mapping[Place, str]], format: str,
) -> Cells:  # fmt: skip
    """Return a table of these conditions, with the columns `more` after the test sets and the rows `quoted` below.

    `text` is what a cell says, and whether it is bold.
    """
    count = len(lines)
    columns: dict[str, list[str]] = {head: [line.names[i] for line in lines] + [names[i] for names in quoted]
                                     for i, head in enumerate(heads)}  # fmt: skip
    bold = {}
    for place, name in places.items():
        own = [text[0](line.on[place]) if place in line.on else "" for line in lines]
        columns[name] = (aligned(own) if format == "text" else own) + [one.get(place, "") for one in quoted.values()]
        bold[name] = [place in line.on and text[1](line.on[place]) for line in lines] + [False] * len(quoted)
    columns |= {head: [*own, *[""] * len(quoted)] for head, own in more.items()}
    if len(places) <= max(MANY, count):
        return Cells(
            columns, {head: head for head in columns}, title=title,
            left=frozenset((*heads, *places.values())), bold=bold, breaks=frozenset({count} if quoted else ()),
        )  # fmt: skip
    named = [[text if head in LABELS or not text else f"{head}={text}" for text in columns[head]] for head in heads]
    names = [" ".join(filter(None, one)) for one in zip(*named, strict=True)]
    rest = [head for head in columns if head not in heads]
    turned = {"test set": rest} | {name: [columns[head][i] for head in rest] for i, name in enumerate(names)}
    strong = {name: [bold.get(head, [False] * len(names))[i] for head in rest] for i, name in enumerate(names)}
    return Cells(
        turned, {head: head for head in turned}, title=title, left=frozenset(turned),
        bold=strong, breaks=frozenset({len(places)} if len(rest) > len(places) else ()),
    )  # fmt: skip


def aligned(texts: Sequence[str]) -> list[str]:
    """Return texts that begin with a number, padded so that the ends of these numbers stand below each other."""
    widest = max(len(text.partition(" ")[0]) for text in texts)
    return [" " * (widest - len(text.partition(" ")[0])) + text if text else "" for text in texts]
