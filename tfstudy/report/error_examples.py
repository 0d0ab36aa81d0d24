"""Wrong predictions of finished runs as text: their kinds, their examples, and what runs agree on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.errors import UserError, one_of
from tfstudy.analysis.error_kinds import Row, agreement, anatomy
from tfstudy.runs import reader
from tfstudy.runs.reader import read_result

WIDTH = 100  # letters of an example's tokens


def predictions(path: Path, split: str) -> list[Row]:
    """A finished run's predictions of a split; `UserError` if it has none."""
    one_of("--split", split, list(read_result(path).get("splits", {})))
    return [*reader.predictions(path, split)]


def name_of(path: Path) -> str:
    """`cnn s0-1a2b3c4d`."""
    return f"{path.parent.name} {path.name}"


def kinds(path: Path, split: str, examples: int) -> list[str]:
    """A line on each kind of prediction, and examples of the wrong ones."""
    found = anatomy(predictions(path, split), examples)
    lines = [f"{name_of(path)}, {split}: {found.n:,} predictions"]
    for kind, count in found.kinds.items():
        place = f"   first error at {100 * found.first_error[kind]:.0f} % of the target" if kind != "right" else ""
        lines.append(f"  {kind:27}{count:7,} {100 * count / found.n:6.1f} %{place}")
        for row in found.examples.get(kind, []):
            lines += [f"      {mark} {short(row[key])}" for mark, key in zip("=+-", KEYS, strict=True)]
    return lines


KEYS = ("source", "target", "prediction")


def agreeing(paths: Sequence[Path], split: str, examples: int) -> list[str]:
    """A line on each set of runs that are right where the others are not."""
    groups = agreement({name_of(path): predictions(path, split) for path in paths})
    total = sum(len(sources) for sources in groups.values())
    if not total:
        raise UserError("these runs have no source in common")
    lines = [f"{total:,} sources that all have"]
    for names, sources in groups.items():
        who = "all are right" if len(names) == len(paths) else f"only {', '.join(names)}" if names else "none is right"
        lines.append(f"  {who:45}{len(sources):7,} {100 * len(sources) / total:6.1f} %")
        lines += [f"      {short(source)}" for source in sources[:examples] if len(names) < len(paths)]
    return lines


def short(text: Any) -> str:
    """Cut to a line."""
    return str(text) if len(str(text)) <= WIDTH else str(text)[: WIDTH - 3] + "..."
