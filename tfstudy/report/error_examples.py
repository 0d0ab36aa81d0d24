"""Wrong predictions of finished runs as text: their kinds, with examples, and which runs solve which examples."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfstudy.evaluation.error_kinds import CORRECT, count_errors, solved_by, summarize_errors
from tfstudy.report.markup import plural
from tfstudy.runs.reader import read_predictions, read_result
from tfstudy.runs.schema import ErrorKind, Prediction, SplitScores
from tfstudy.tasks.errors import UserError, one_of

MAX_WIDTH = 100  # characters of an example


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


def error_kind_lines(path: Path, split: str, examples: int) -> list[str]:
    """Return a line for each kind of prediction, with examples of the wrong ones."""
    counts = count_errors(predictions(path, split), examples)
    lines = [f"{_name(path)}, {split}: {plural(counts.n, 'prediction')}"]
    for kind, count in counts.kinds.items():
        first = f"   first error at {100 * counts.first_error[kind]:.0f} % of the target" if kind != CORRECT else ""
        lines.append(f"  {kind:27}{count:7,} {100 * count / counts.n:6.1f} %{first}")
        for example in counts.examples.get(kind, []):
            texts = {"=": example.source, "+": example.target, "-": example.prediction}
            lines += [f"      {mark} {shortened(text)}" for mark, text in texts.items()]
    return lines


def solved_by_lines(paths: Sequence[Path], split: str, examples: int) -> list[str]:
    """Return a line for each set of runs that solve the same examples, with some of these examples."""
    groups = solved_by({_name(path): predictions(path, split) for path in paths})
    total = sum(len(sources) for sources in groups.values())
    if not total:
        raise UserError("these runs have no source in common")
    lines = [f"{plural(total, 'source')} in all of these runs"]
    for names, sources in groups.items():
        everyone = len(names) == len(paths)
        solvers = "solved by all" if everyone else f"solved only by {', '.join(names)}" if names else "solved by none"
        lines.append(f"  {solvers:45}{len(sources):7,} {100 * len(sources) / total:6.1f} %")
        lines += [f"      {shortened(source)}" for source in sources[:examples] if not everyone]
    return lines


def _name(path: Path) -> str:
    """Return `cnn s0-1a2b3c4d`."""
    return f"{path.parent.name} {path.name}"


def shortened(text: str) -> str:
    """Return text cut to a line."""
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 3] + "..."
