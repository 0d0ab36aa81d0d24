"""Wrong predictions of finished runs by kind, with examples below their targets."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size

from tfstudy.errors import UserError, one_of
from tfstudy.evaluation.breakdown import CORRECT, count_errors, first_error, summarize_errors
from tfstudy.report.markup import plural
from tfstudy.report.render import Cells, Listing
from tfstudy.runs.schema import ErrorKind, Prediction, SplitScores
from tfstudy.runs.store import read_config, read_predictions, read_result
from tfstudy.runs.studyfile import exists
from tfstudy.tasks.scoring import compared

WIDTH = 80  # characters of a line
LABEL = 14  # characters of the names of an example's lines, with gaps
DOTS, END = "...", "(end)"  # for what does not fit, and for the end of a prediction or a target


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


# Kinds, with examples


def errors(path: Path, split: str, examples: int, width: int = WIDTH) -> Listing:
    """Return the number of predictions of each kind, and examples of the wrong ones in at most `width` characters.

    Correct ones are first, then the most frequent. `UserError` if the run has no predictions.
    """
    characters = read_config(path).get("data", {}).get("tokens") == "characters"
    counts = count_errors(predictions(path, split), examples, characters)
    kinds = sorted(counts.kinds.items(), key=lambda item: (item[0] != CORRECT, -item[1]))
    frame = {
        "kind": [kind for kind, _ in kinds],
        "n": [f"{count:,}" for _, count in kinds],
        "share": [f"{100 * count / counts.n:.1f} %" for _, count in kinds],
        "first error at": [f"{100 * counts.first_error[k]:.0f} %" if k != CORRECT else "" for k, _ in kinds],
    }
    title = f"{path.parent.name} {path.name}, {split}: {plural(counts.n, 'prediction')}"
    room = width - max((len(kind) for kind, _ in kinds), default=0) - LABEL
    rows: list[tuple[str, str, str]] = []
    found: dict[str, Any] = {}
    for kind, n in kinds:
        own = []
        for one in counts.examples.get(kind, []):
            sequences = compared(one.target, one.prediction, characters)
            rows += [("", "", "")] * bool(rows)
            rows += [(kind, "source", cut(one.source, room))]
            rows += zip(("", "", ""), ("target", "prediction", ""), side_by_side(*sequences, room), strict=True)
            at = first_error(*sequences)  # counted from 1
            texts = {"source": one.source, "target": one.target, "prediction": one.prediction}
            own.append(texts | {"first_error": None if at is None else at + 1})
        found[kind] = {"n": n, "first_error_share": counts.first_error.get(kind), "examples": own}
    keys = ("kind", "of", "tokens")
    columns = dict(zip(keys, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
    parts = [Cells(frame, title=title), *([Cells(columns, left=keys, headless=True)] if rows else [])]
    return Listing(parts, (), lambda: {"run": str(path), "test_set": split, "n": counts.n, "kinds": found})


def side_by_side(target: Sequence[str], prediction: Sequence[str], width: int) -> tuple[str, str, str]:
    """Return the target, the prediction, and a line with a caret at the first difference and its position.

    Each has at most `width` characters; tokens before the first difference may take half of them.
    """
    first = first_error(target, prediction)
    if first is None:
        return cut(" ".join(target), width), cut(" ".join(prediction), width), "correct"
    start, room = first, width // 2 - len(DOTS) - 1
    while start and cell_len(target[start - 1]) < room:
        start -= 1
        room -= cell_len(target[start]) + 1
    same = "".join(f"{token} " for token in ([DOTS] if start else []) + [*target[start:first]])
    texts = [cut(same + (" ".join(tokens[first : first + width]) or END), width) for tokens in (target, prediction)]
    place = f"token {first + 1} of {len(target)}" if first < len(target) else f"after all {len(target)} tokens"
    return texts[0], texts[1], cut(f"{' ' * cell_len(same)}^ {place}", width)


def cut(text: str, width: int) -> str:
    """Return text of at most a width, without its end."""
    return text if cell_len(text) <= width else set_cell_size(text, width - len(DOTS)) + DOTS
