"""A target and a prediction below each other, token by token, around their first difference."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from tfstudy.evaluation.error_kinds import first_error

MAX_ALIGNED = 200  # tokens after the first difference that are aligned; fewer fit a line
DOTS, END = "...", "(end)"


class Column(NamedTuple):
    """A token of the target and one of the prediction; one of them is empty where the other has no counterpart."""

    target: str
    prediction: str

    @property
    def width(self) -> int:
        return max(cell_len(self.target), cell_len(self.prediction))


def alignment(target: Sequence[str], prediction: Sequence[str], width: int) -> tuple[Text, Text, Text]:
    """Return the target, the prediction, and a line with a caret at the first difference and its position.

    Each has at most `width` characters; what does not fit is replaced by dots.
    """
    first = first_error(target, prediction)
    columns = _columns(target, prediction, len(target) if first is None else first)
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
    return gold, predicted, Text("correct") if first is None else _marked(mark, first, len(target), width)


def _columns(target: Sequence[str], prediction: Sequence[str], first: int) -> list[Column]:
    """Return the tokens before the first difference, and those after it with gaps where tokens were left out."""
    columns = [Column(token, token) for token in target[:first]]
    rest, predicted = target[first : first + MAX_ALIGNED], prediction[first : first + MAX_ALIGNED]
    for _, a, b, c, d in SequenceMatcher(None, rest, predicted, autojunk=False).get_opcodes():
        columns += [Column(*pair) for pair in zip_longest(rest[a:b], predicted[c:d], fillvalue="")]
    if max(len(target), len(prediction)) > first + MAX_ALIGNED:
        return [*columns, Column(DOTS, DOTS)]
    golds, predictions = (_with_end(side) for side in (list(zip(*columns, strict=True)) or ((), ())))
    return list(map(Column, golds, predictions))


def _with_end(side: Sequence[str]) -> list[str]:
    """Return the cells of one side, with `END` after its last token if the other side is longer."""
    length = max((number for number, token in enumerate(side, 1) if token), default=0)
    return [*side[:length], *[END, *side[length + 1 :]][: len(side) - length]]


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


def _marked(mark: Text, first: int, length: int, width: int) -> Text:
    """Return the caret with the position of the first difference, on that side of it where there is room."""
    place = f"token {first + 1} of {length}" if first < length else f"after all {length} tokens"
    if len(mark) + 2 + len(place) <= width or len(mark) < len(place):
        return mark.append(f"^ {place}", "bold")
    return Text(" " * (len(mark) - len(place) - 1)).append(f"{place} ^", "bold")
