"""Wrong predictions of finished runs by kind, with examples below their targets, for a terminal and for a report."""

import sys
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from tfstudy.errors import UserError, one_of
from tfstudy.evaluation.breakdown import CORRECT, count_errors, first_error, summarize_errors
from tfstudy.report.markup import plural
from tfstudy.report.terminal import shortened
from tfstudy.runs.schema import ErrorKind, Prediction, SplitScores
from tfstudy.runs.store import read_predictions, read_result
from tfstudy.runs.studyfile import exists
from tfstudy.tasks.scoring import compared

WIDTH = 80  # characters of a line
INDENT, LABEL = 4, 12  # before an example, and of the names of its lines
DOTS, END = "...", "(end)"  # for what does not fit, and for the end of a prediction or a target
MAX_ALIGNED = 200  # tokens after the first difference that are aligned; fewer are shown


def predictions(path: Path, split: str) -> list[Prediction]:
    """Return a finished run's predictions of a split; `UserError` if it has none."""
    one_of("test set", split, list(read_result(path).splits))
    return read_predictions(path, split)


def error_kinds(path: Path, split: str, scores: SplitScores) -> Mapping[str, ErrorKind]:
    """Return the kinds of a run's predictions of a split: from its record, or from its predictions if it is older.

    Empty, with a line on stderr if they can't be read, if there are neither.
    """
    if scores.errors or not exists(path / "predictions" / f"{split}.jsonl.gz"):
        return scores.errors
    try:
        return summarize_errors(predictions(path, split))
    except UserError as error:
        print(f"left out: {error}", file=sys.stderr)
        return {}


# A target and a prediction below each other


class Column(NamedTuple):
    """A token of the target and one of the prediction; one of them is empty where the other has no counterpart."""

    target: str
    prediction: str

    @property
    def width(self) -> int:
        """The characters that it takes on a terminal."""
        return max(cell_len(self.target), cell_len(self.prediction))


def aligned(target: Sequence[str], prediction: Sequence[str]) -> tuple[list[Column], int | None]:
    """Return the tokens side by side, with gaps where tokens were left out, and the first column that differs.

    The shorter side ends with `(end)`. Long sequences are cut `MAX_ALIGNED` tokens after the first difference.
    """
    first = first_error(target, prediction)
    at = len(target) if first is None else first
    columns = [Column(token, token) for token in target[:at]]
    rest, predicted = target[at : at + MAX_ALIGNED], prediction[at : at + MAX_ALIGNED]
    for _, a, b, c, d in SequenceMatcher(None, rest, predicted, autojunk=False).get_opcodes():
        columns += [Column(*pair) for pair in zip_longest(rest[a:b], predicted[c:d], fillvalue="")]
    if max(len(target), len(prediction)) > at + MAX_ALIGNED:
        return columns, first
    sides = [[one.target for one in columns], [one.prediction for one in columns]]
    for side in sides:
        length = max((number for number, token in enumerate(side, 1) if token), default=0)
        if length < len(side):
            side[length] = END
    return list(map(Column, *sides)), first


def alignment(target: Sequence[str], prediction: Sequence[str], width: int) -> tuple[Text, Text, Text]:
    """Return the target, the prediction, and a line with a caret at the first difference and its position.

    Each has at most `width` characters; what does not fit is replaced by dots.
    """
    columns, first = aligned(target, prediction)
    start, end, widest = _window(columns, first or 0, width)
    gold, predicted, mark = (Text(DOTS + " " if start else "") for _ in range(3))
    mark = Text(" " * len(mark))
    for number in range(start, end):
        column = columns[number]
        room = min(column.width, widest)
        style = "bold" if column.target != column.prediction else ""
        gold.append(_cell(column.target, room), style).append(" ")
        predicted.append(_cell(column.prediction, room), f"{style} red" if style else "").append(" ")
        if first is None or number < first:
            mark.append(" " * (room + 1))
    for line, rest in ((gold, [c.target for c in columns[end:]]), (predicted, [c.prediction for c in columns[end:]])):
        line.append(DOTS if any(rest) else "")
        line.rstrip()
    if first is None:
        return gold, predicted, Text("correct")
    place = f"token {first + 1} of {len(target)}" if first < len(target) else f"after all {len(target)} tokens"
    if len(mark) + 2 + len(place) <= width or len(mark) < len(place):
        return gold, predicted, mark.append(f"^ {place}", "bold")
    return gold, predicted, Text(" " * (len(mark) - len(place) - 1)).append(f"{place} ^", "bold")


def _window(columns: Sequence[Column], first: int, width: int) -> tuple[int, int, int]:
    """Return the range of columns that fit, and the greatest width of a column.

    Up to half of the width is before the first difference, and the rest after it.
    """
    if sum(column.width + 1 for column in columns) <= width + 1:
        return 0, len(columns), width
    room = width - 2 * (len(DOTS) + 1)
    widths = [min(column.width, room - 1) + 1 for column in columns]
    start, end = first, min(first + 1, len(columns))
    used = sum(widths[start:end])
    for limit in (max(used, room // 2), room):
        while start > 0 and used + widths[start - 1] <= limit:
            start -= 1
            used += widths[start]
        while end < len(columns) and used + widths[end] <= room:
            used += widths[end]
            end += 1
    return start, end, room - 1


def _cell(token: str, width: int) -> str:
    """Return a token padded to a width, or cut if it is wider."""
    return set_cell_size(token, width) if cell_len(token) <= width else set_cell_size(token, width - 3) + DOTS


# Lines, and plain values


def error_kind_lines(path: Path, split: str, examples: int, width: int = WIDTH) -> list[Text]:
    """Return a line for each kind of prediction, with examples of the wrong ones in lines of at most `width`."""
    counts = count_errors(predictions(path, split), examples)
    room, indent = width - INDENT - LABEL, " " * INDENT
    lines = [Text(f"{path.parent.name} {path.name}, {split}: {plural(counts.n, 'prediction')}", "bold")]
    for kind, count in _most_frequent_first(counts.kinds):
        first = f"   first error at {100 * counts.first_error[kind]:.0f} % of the target" if kind != CORRECT else ""
        lines.append(Text(f"  {kind:22}{count:7,} {100 * count / counts.n:6.1f} %{first}"))
        for one in counts.examples.get(kind, []):
            texts = alignment(*compared(one.target, one.prediction), room)
            lines.append(Text(f"{indent}{'source':{LABEL}}{shortened(one.source, room)}"))
            for label, text in zip(("target", "prediction", ""), texts, strict=True):
                lines.append(Text(f"{indent}{label:{LABEL}}").append_text(text))
            lines.append(Text())
    return lines if not lines[-1].plain else [*lines, Text()]


def error_values(path: Path, split: str, examples: int) -> dict[str, Any]:
    """Return the same as `error_kind_lines` as plain values; the position of a first error is counted from 1."""
    counts = count_errors(predictions(path, split), examples)
    kinds = {}
    for kind, n in _most_frequent_first(counts.kinds):
        shown = []
        for one in counts.examples.get(kind, []):
            first = first_error(*compared(one.target, one.prediction))
            texts = {"source": one.source, "target": one.target, "prediction": one.prediction}
            shown.append(texts | {"first_error": None if first is None else first + 1})
        kinds[kind] = {"n": n, "first_error_share": counts.first_error.get(kind), "examples": shown}
    return {"run": str(path), "test_set": split, "n": counts.n, "kinds": kinds}


def _most_frequent_first(kinds: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the correct predictions, then the kinds of wrong ones, each with its number."""
    return sorted(kinds.items(), key=lambda item: (item[0] != CORRECT, -item[1]))
