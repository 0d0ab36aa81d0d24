"""The tables of a study as in a paper: one for each task, with a row for each condition and a column for each test set.

A cell has the mean, its interval and its letters; published results stand in rows of their own below. With a baseline a
second table has the differences from it. Where there are more test sets than conditions, and more than `MANY`, rows and
columns change places.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from tfstudy.analysis import labels
from tfstudy.analysis.frame import DEFAULT
from tfstudy.analysis.labels import OUTDATED, Condition
from tfstudy.analysis.published import OTHER_SETTINGS, Quotation
from tfstudy.analysis.stats import ALPHA
from tfstudy.analysis.summary import rows_of
from tfstudy.config.trees import short_key
from tfstudy.report.markup import MINUS, ends, escape_latex, number, p_value, short_number, signed
from tfstudy.report.render import Cells, Written
from tfstudy.runs.schema import metric_name

if TYPE_CHECKING:
    import pandas as pd

MANY = 6  # test sets in columns, where there are fewer conditions
LABELS = ("architecture", "preset")  # heads whose texts say what they are
Place = tuple[str, ...]
Names = tuple[str, ...]  # what tells a row from the others: a text for each head
Lines = Mapping[Names, Mapping[Place, Condition]]  # of each row the same condition on several test sets


def wide(rows: "pd.DataFrame", baseline: str = "", format: str = "md", narrow: bool = False) -> list[Cells]:
    """Return the tables of `tables.Table.rows`, of each task its results and then, with a baseline, the differences.

    If they are to be `narrow`, intervals and sources stand in lines of their own.
    """
    tasks = rows.groupby("task", sort=False)
    return [cells for _, own in tasks for cells in _of_task(rows_of(own), baseline, format, narrow)]


def _of_task(rows: Sequence[Condition], baseline: str, format: str, narrow: bool) -> list[Cells]:
    heads, lines = _lines(rows)
    common, places = _places(rows)
    usual = Counter(map(run_count, rows)).most_common(1)[0][0]

    def result(row: Condition) -> str:
        said, span = [row.letters, f"(n = {run_count(row)})" * (run_count(row) != usual)], ends(row.low, row.high)
        parts = [number(row.mean), *said, f"\n{span}" * bool(span)] if narrow else [number(row.mean), span, *said]
        return " ".join(filter(None, parts)).replace(" \n", "\n")

    def difference(row: Condition) -> str:
        return f"{signed(row.difference)} ({p_value(row.q)})" if row.baseline and row.q == row.q else ""

    # settings and sizes that all rows share stand in the title, but no architecture with published results below
    names = {head: [line[i] for line in lines] for i, head in enumerate(heads)}
    own = names | {"parameters": [_sizes(on.values()) for on in lines.values()]}
    shared = {head: texts[0] for head, texts in own.items() if len(lines) > 1 and len({*texts}) == 1}
    published = _published(rows, format)
    if published:
        shared.pop(heads[0], None)
    title = f"{metric_name(rows[0].metric)} on {rows[0].task} {common}".rstrip() + f" by {rows[0].tag}" * bool(
        rows[0].tag
    )
    if same := ", ".join(f"{head} {text}" for head, text in shared.items() if text):
        title += f"; the same in each row: {same}"
    columns = {head: texts for head, texts in own.items() if head not in shared}
    more = {"parameters": columns.pop("parameters")} if "parameters" in columns else {}
    if narrow:
        published = {
            name.replace(" ", "\n"): {place: text.replace(" [", "\n[") for place, text in on.items()}
            for name, on in published.items()
        }
    blocks = [_block(title, columns, more, lines, places, (result, lambda row: bool(row.best_group)), published)]
    compared = [i for i, on in enumerate(lines.values()) if any(map(difference, on.values()))]
    if compared:
        title = f"difference from {baseline} in points (q)"
        columns = {head: [texts[i] for i in compared] for head, texts in columns.items()}
        kept = {line: on for i, (line, on) in enumerate(lines.items()) if i in compared}
        blocks.append(_block(title, columns, {}, kept, places, (difference, lambda row: row.q < ALPHA), {}))
    blocks = [turned(one) if len(places) > max(MANY, len(lines)) else one for one in blocks]
    return [with_aligned_numbers(one) for one in blocks] if format == "text" else blocks


def _lines(rows: Sequence[Condition]) -> tuple[list[str], Lines]:
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
    with_preset = {*presets} != {DEFAULT}
    heads = [LABELS[0], *[LABELS[1]] * with_preset, *map(short_key, shown)]
    names: list[Names] = [
        (row.arch, *[preset] * with_preset, *(str(settings[key]) for key in shown))
        for row, preset, settings in zip(rows, presets, own, strict=True)
    ]
    if len({(one, row.place) for one, row in zip(names, rows, strict=True)}) < len(rows):
        heads, names = [*LABELS], [(row.arch, row.preset_label) for row in rows]
    lines: dict[Names, dict[Place, Condition]] = {}
    for one, row in zip(names, rows, strict=True):
        lines.setdefault(one, {})[row.place] = row

    def order(line: Names) -> tuple[Any, ...]:  # numbers in names by their size
        parts = [re.split(r"(\d+)", name) for name in line]
        words = [[(not w.isdigit(), int(w) if w.isdigit() else 0, w) for w in words] for words in parts]
        return next(iter(lines[line].values())).amount, words

    return heads, {line: lines[line] for line in sorted(lines, key=order)}


def _places(rows: Sequence[Condition]) -> tuple[str, dict[Place, str]]:
    """Return the words that all names of test sets begin with, or nothing, and the rest of each."""
    names = {row.place: " ".join(filter(None, [row.split_label, row.value])) for row in rows}
    twice = Counter(names.values())
    digests = {row.place: f" ({row.examples[:8]})" * (twice[names[row.place]] > 1) for row in rows}
    words = zip(*(name.split() for name in {*names.values()}), strict=False)
    shared = [first for first, *_ in takewhile(lambda same: len({*same}) == 1, words)]
    common = " ".join(shared) if len({*names.values()}) > 1 else ""
    return common, {
        place: (name.removeprefix(common).strip() or "test") + digests[place] for place, name in names.items()
    }


def run_count(row: Condition) -> str:
    return f"{len(row.runs)}" + (f", {len(row.diverged)} diverged" if row.diverged else "")


def _sizes(rows: Any) -> str:
    sizes = sorted({row.parameters for row in rows} - {0})
    return " to ".join(dict.fromkeys(map(short_number, sizes[:1] + sizes[-1:])))


def _published(rows: Sequence[Condition], format: str) -> dict[str, dict[Place, str]]:
    """Return the texts of published results by the name of a row, and test set: those of each kind of network."""
    found: dict[str, dict[Place, dict[str, Quotation]]] = {}
    for row in rows:
        if row.published:
            own = found.setdefault(f"{row.arch}, published", {}).setdefault(row.place, {})
            own |= {str(one): one for one in row.published}
    return {
        name: {place: quoted_texts([*own.values()], format) for place, own in on.items()} for name, on in found.items()
    }


def quoted_texts(published: Sequence[Quotation], format: str) -> str:
    """Return published results in one cell: below each other on a terminal and in LaTeX."""
    if format != "tex":
        return ("\n" if format == "text" else "; ").join(map(str, published))
    stacked = r"\\".join(map(cited, published))
    return Written(rf"\shortstack[l]{{{stacked}}}" if len(published) > 1 else stacked)


def cited(one: Quotation) -> str:
    """Return a published result for LaTeX, such as `13.8~\\cite{lake-2018}`."""
    sign = "" if one.same_settings else escape_latex(OTHER_SETTINGS)
    return rf"{escape_latex(one.figure.text)}~\cite{{{one.figure.paper}}}{sign}"


def _block(
    title: str, names: Mapping[str, Sequence[str]], more: Mapping[str, Sequence[str]], lines: Lines,
    places: Mapping[Place, str], text: tuple[Callable[[Condition], str], Callable[[Condition], bool]],
    published: Mapping[str, Mapping[Place, str]],
) -> Cells:  # fmt: skip
    """Return a table of these conditions, with the columns `more` after the test sets and published results below.

    `text` is what a cell says, and whether it is bold.
    """
    empty = [""] * len(published)
    columns = {head: [*texts, *(empty if i else published)] for i, (head, texts) in enumerate(names.items())}
    bold = {}
    for place, name in places.items():
        on = [line.get(place) for line in lines.values()]
        columns[name] = [text[0](row) if row else "" for row in on] + [one.get(place, "") for one in published.values()]
        bold[name] = [bool(row and text[1](row)) for row in on] + [False] * len(published)
    columns |= {head: [*texts, *empty] for head, texts in more.items()}
    breaks = frozenset({len(lines)} if published else ())
    return Cells(columns, title=title, left={*names, *places.values()}, bold=bold, breaks=breaks, names=len(names))


def turned(cells: Cells) -> Cells:
    """Return a table whose rows and columns have changed places."""
    keys = list(cells.frame)
    names, rest = {head: cells.frame[head] for head in keys[: cells.names]}, keys[cells.names :]
    named = [[text if head in LABELS or not text else f"{head}={text}" for text in own] for head, own in names.items()]
    columns = [" ".join(filter(None, one)) for one in zip(*named, strict=True)]
    frame = {"test set": rest} | {name: [cells.frame[head][i] for head in rest] for i, name in enumerate(columns)}
    bold = {name: [head in cells.bold and cells.bold[head][i] for head in rest] for i, name in enumerate(columns)}
    breaks = frozenset({rest.index("parameters")} if "parameters" in rest else ())
    return Cells(frame, title=cells.title, left={*frame}, bold=bold, breaks=breaks)


def with_aligned_numbers(cells: Cells) -> Cells:
    """Return a table whose numbers stand below each other in each column."""
    names = list(cells.frame)[: cells.names]
    return cells._replace(frame={key: own if key in names else aligned(own) for key, own in cells.frame.items()})


def aligned(texts: Sequence[str]) -> list[str]:
    """Return texts that begin with a number, padded so that the ends of these numbers stand below each other."""
    starts = [re.match(rf"[\d.+{MINUS}]+(?= |\n|$)", text) for text in texts]
    widest = max((len(start[0]) for start in starts if start), default=0)
    return [" " * (widest - len(start[0])) + text if start else text for text, start in zip(texts, starts, strict=True)]
