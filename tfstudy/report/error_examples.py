"""Wrong predictions of finished runs by kind, with examples below their targets."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size

from tfstudy.errors import one_of
from tfstudy.evaluation.breakdown import CORRECT, count_errors, first_error
from tfstudy.report.markup import plural
from tfstudy.report.render import Cells, Listing
from tfstudy.runs.store import read_config, read_predictions, read_result
from tfstudy.tasks.scoring import compared

WIDTH = 80  # characters of a line
LABEL = 14  # characters of the names of an example's lines, with gaps
DOTS, END = "...", "(end)"  # for what does not fit, and for the end of a prediction or a target


def errors(path: Path, split: str, examples: int, width: int = WIDTH) -> Listing:
    """Return the number of predictions of each kind, and examples of the wrong ones in at most `width` characters.

    Correct ones are first, then the most frequent. `UserError` if the run has no predictions.
    """
    one_of("test set", split, list(read_result(path).splits))
    characters = read_config(path).get("data", {}).get("tokens") == "characters"
    counts = count_errors(read_predictions(path, split), examples, characters)
    kinds = dict(sorted(counts.kinds.items(), key=lambda item: (item[0] != CORRECT, -item[1])))
    frame = {
        "kind": [*kinds],
        "n": [f"{count:,}" for count in kinds.values()],
        "share": [f"{100 * count / counts.n:.1f} %" for count in kinds.values()],
        "first error at": [f"{100 * counts.first_error[kind]:.0f} %" if kind != CORRECT else "" for kind in kinds],
    }
    title = f"{path.parent.name} {path.name}, {split}: {plural(counts.n, 'prediction')}"
    room = width - max(map(len, kinds), default=0) - LABEL
    rows, found = list[tuple[str, str, str]](), dict[str, Any]()
    for kind, n in kinds.items():
        found[kind] = {"n": n, "first_error_share": counts.first_error.get(kind), "examples": []}
        for one in counts.examples.get(kind, []):
            target, prediction, mark = side_by_side(*(both := compared(one.target, one.prediction, characters)), room)
            rows += [("", "", "")] * bool(rows)
            rows += [(kind, "source", cut(one.source, room)), ("", "target", target), ("", "prediction", prediction)]
            rows.append(("", "", mark))
            at = first_error(*both)
            texts = {"source": one.source, "target": one.target, "prediction": one.prediction}
            found[kind]["examples"].append(texts | {"first_error": None if at is None else at + 1})  # from 1
    keys = ("kind", "of", "tokens")
    examples_ = Cells({key: [row[i] for row in rows] for i, key in enumerate(keys)}, left=keys, headless=True)
    parts = [Cells(frame, title=title), *[examples_] * bool(rows)]
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
