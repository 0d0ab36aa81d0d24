"""Wrong predictions of finished runs as text: their kinds, with examples."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from tfstudy.errors import UserError, one_of
from tfstudy.evaluation.error_kinds import CORRECT, count_errors, first_error, summarize_errors
from tfstudy.report.alignment import alignment
from tfstudy.report.markup import plural
from tfstudy.report.terminal import shortened
from tfstudy.runs.reader import read_predictions, read_result
from tfstudy.runs.schema import ErrorKind, Prediction, SplitScores
from tfstudy.tasks.scoring import compared

WIDTH = 80  # characters of a line
INDENT, LABEL = 4, 12  # before an example, and of the names of its lines


def predictions(path: Path, split: str) -> list[Prediction]:
    """Return a finished run's predictions of a split; `UserError` if it has none."""
    one_of("test set", split, list(read_result(path).splits))
    return read_predictions(path, split)


def predictions_if_readable(path: Path, split: str) -> list[Prediction]:
    """Return the same; empty, with a line on stderr, if the predictions can't be read."""
    try:
        return predictions(path, split)
    except UserError as error:
        print(f"left out: {error}", file=sys.stderr)
        return []


def error_kinds(path: Path, split: str, scores: SplitScores) -> Mapping[str, ErrorKind]:
    """Return the kinds of a run's predictions of a split: from its record, or from its predictions if it is older.

    Empty, with a line on stderr if they can't be read, if there are neither.
    """
    if scores.errors or not (path / "predictions" / f"{split}.jsonl.gz").exists():
        return scores.errors
    return summarize_errors(predictions_if_readable(path, split))


def error_kind_lines(path: Path, split: str, examples: int, width: int = WIDTH) -> list[Text]:
    """Return a line for each kind of prediction, with examples of the wrong ones in lines of at most `width`."""
    counts = count_errors(predictions(path, split), examples)
    lines = [Text(f"{_name(path)}, {split}: {plural(counts.n, 'prediction')}", "bold")]
    for kind, count in _most_frequent_first(counts.kinds):
        first = f"   first error at {100 * counts.first_error[kind]:.0f} % of the target" if kind != CORRECT else ""
        lines.append(Text(f"  {kind:22}{count:7,} {100 * count / counts.n:6.1f} %{first}"))
        for example in counts.examples.get(kind, []):
            lines += _example_lines(example, width)
    return lines if not lines[-1].plain else [*lines, Text()]


def _most_frequent_first(kinds: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the correct predictions, then the kinds of wrong ones, each with its number."""
    return sorted(kinds.items(), key=lambda item: (item[0] != CORRECT, -item[1]))


def _example_lines(example: Prediction, width: int) -> list[Text]:
    """Return the source, the target with the prediction below it, and where they first differ."""
    room = width - INDENT - LABEL
    marked = alignment(*compared(example.target, example.prediction), room)
    labels = ("target", "prediction", "")
    return [
        Text(" " * INDENT + f"{'source':{LABEL}}{shortened(example.source, room)}"),
        *(
            Text(" " * INDENT + f"{label:{LABEL}}").append_text(text)
            for label, text in zip(labels, marked, strict=True)
        ),
        Text(),
    ]


def error_values(path: Path, split: str, examples: int) -> dict[str, Any]:
    """Return the same as `error_kind_lines` as plain values; the position of a first error is counted from 1."""
    counts = count_errors(predictions(path, split), examples)
    return {
        "run": str(path),
        "test_set": split,
        "n": counts.n,
        "kinds": {
            kind: {
                "n": n,
                "first_error_share": counts.first_error.get(kind),
                "examples": [_example_values(one) for one in counts.examples.get(kind, [])],
            }
            for kind, n in _most_frequent_first(counts.kinds)
        },
    }


def _example_values(one: Prediction) -> dict[str, Any]:
    first = first_error(*compared(one.target, one.prediction))
    texts = {"source": one.source, "target": one.target, "prediction": one.prediction}
    return texts | {"first_error": None if first is None else first + 1}


def _name(path: Path) -> str:
    """Return `cnn s0-1a2b3c4d`."""
    return f"{path.parent.name} {path.name}"
