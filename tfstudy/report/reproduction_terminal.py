"""A paper's figures beside ours in the width of a terminal: a compact table, and numbered notes below it."""

import shutil
from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import indent, wrap

from tfstudy.analysis.published import Figure
from tfstudy.analysis.reproduction import NO_COUNTERPART, Reproduction
from tfstudy.report.markup import number, plural, with_interval
from tfstudy.runs.metrics import metric_name

HEADS = ("", "network", "published", "ours", "n", "difference", "verdict")
RIGHT = (0, 3, 4)  # columns of numbers
FOLDED = (1, 2)  # columns whose text may take several lines
DIFFERENCE = 5  # the column whose interval may stand in a second line
UNBROKEN = ",\u00a0"  # between the ends of an interval
GAP = "  "
NARROWEST = 10
Row = tuple[str, ...]


def terminal_text(head: str, reproductions: Sequence[Reproduction], notes: Sequence[str], width: int = 0) -> str:
    """Return the head, the table, the reason for each row, figures without a counterpart, our runs, and notes."""
    width = width or shutil.get_terminal_size().columns
    shown = _by_test_set([found for found in reproductions if found.verdict != NO_COUNTERPART])
    missing = [found for found in reproductions if found.verdict == NO_COUNTERPART]
    rows = [_row(number, found) for number, found in enumerate(shown, 1)]
    blocks = [
        _folded(head, width),
        "\n".join(_table(rows, [_title(found.figure) for found in shown], width)) if shown else "",
        "\n".join(_numbered_notes(shown, width)),
        "\n".join(_missing(missing, width)),
        "\n".join(_folded(f"runs: {line}", width) for line in _runs(shown)),
        "\n".join(_folded(note, width) for note in notes),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _by_test_set(reproductions: Sequence[Reproduction]) -> list[Reproduction]:
    """Return those on the same test set together, in the order of the first of each, comparisons before the others."""
    titles = list(dict.fromkeys(_title(found.figure) for found in reproductions))
    return sorted(reproductions, key=lambda found: (titles.index(_title(found.figure)), found.difference is None))


def _title(figure: Figure) -> str:
    metric = "" if figure.metric == "exact_match" else f", {metric_name(figure.metric)}"
    test = "" if figure.test == "test" else f" {figure.test.removeprefix('test_')}"
    return f"{figure.task} {figure.split}{test}{metric}"


def _row(position: int, found: Reproduction) -> Row:
    ours, gap = found.ours, found.difference
    difference = with_interval(gap.mean, gap.low, gap.high, "+").replace(", ", UNBROKEN) if gap else ""
    return (
        f"{position}", found.figure.arch, found.figure.text, number(ours.mean) if ours else "",
        f"{ours.n}" if ours else "", difference, found.verdict,
    )  # fmt: skip


def _table(rows: Sequence[Row], titles: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines of the table, with a line for each test set."""
    natural = [max(len(row[column]) for row in (HEADS, *rows)) for column in range(len(HEADS))]
    room = width - len(GAP) * (len(HEADS) - 1)
    if sum(natural) > room:
        natural[DIFFERENCE] = max(len(part) for row in (HEADS, *rows) for part in row[DIFFERENCE].split(" "))
    widths = _folded_widths(natural, room)
    yield from _lines(HEADS, widths)
    for title, members in groupby(zip(titles, rows, strict=True), key=lambda pair: pair[0]):
        yield title
        for _, row in members:
            yield from _lines(row, widths)


def _folded_widths(widths: list[int], room: int) -> list[int]:
    """Return the widths of columns, those of text made smaller until all fit."""
    while sum(widths) > room:
        column = max(FOLDED, key=lambda one: widths[one])
        if widths[column] <= NARROWEST:
            break
        widths[column] -= 1
    return widths


def _lines(row: Row, widths: Sequence[int]) -> Iterator[str]:
    cells = [wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
    for line in range(max(map(len, cells))):
        texts = [cell[line] if line < len(cell) else "" for cell in cells]
        padded = (
            f"{text:>{width}}" if column in RIGHT else f"{text:{width}}"
            for column, (text, width) in enumerate(zip(texts, widths, strict=True))
        )
        yield GAP.join(padded).replace(UNBROKEN, ", ").rstrip()


def _numbered_notes(shown: Sequence[Reproduction], width: int) -> Iterator[str]:
    """Yield the reason for each row and how its settings differ, under the rows that share them."""
    numbers: dict[str, dict[str, list[int]]] = {}
    for position, found in enumerate(shown, 1):
        numbers.setdefault(f"{found.verdict}: {found.reason}", {}).setdefault(found.unlike, []).append(position)
    for reason, members in numbers.items():
        if "" in members:
            yield _folded(f"{_ranges(members.pop(''))}: {reason}", width)
        elif members:
            yield _folded(reason, width)
        for unlike, positions in members.items():
            yield indent(_folded(f"{_ranges(positions)}: {unlike}", width - 2), "  ")


def _ranges(numbers: Sequence[int]) -> str:
    """Return sorted numbers as ranges, such as `1-3, 5`."""
    groups = [[n for _, n in pairs] for _, pairs in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{group[0]}-{group[-1]}" if len(group) > 1 else f"{group[0]}" for group in groups)


def _missing(missing: Sequence[Reproduction], width: int) -> Iterator[str]:
    """Yield what tfstudy lacks, with the ids of the figures that need it."""
    ids: dict[str, list[str]] = {}
    for found in missing:
        ids.setdefault(found.reason, []).append(found.figure.id)
    for reason, members in ids.items():
        paper = members[0].rpartition("-")[0]
        numbers = _ranges([int(one.rpartition("-")[2]) for one in members])
        count = plural(len(members), "figure")
        yield _folded(f"no counterpart ({count}): {reason}: {paper} {numbers}", width)


def _runs(shown: Sequence[Reproduction]) -> list[str]:
    """Return the folders of our runs, with their seeds."""
    folders: dict[str, set[int]] = {}
    for run in (run for found in shown for c in found.conditions for run in (*c.runs, *c.diverged)):
        folders.setdefault(run.path.parent.as_posix(), set()).add(run.result.seed)
    return [f"{folder}, seed{'s' * (len(seeds) > 1)} {_ranges(sorted(seeds))}" for folder, seeds in folders.items()]


def _folded(text: str, width: int) -> str:
    return "\n".join(wrap(text, width, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False))
