"""The trials of a search as a table for the terminal."""

import math
from collections.abc import Mapping, Sequence

from rich.table import Table

from tfstudy.tuning.search import Score


def trials(scores: Sequence[Score], chosen: Mapping[str, Score]) -> Table:
    """Every trial, the best first within its architecture; the chosen ones have a star."""
    table = Table(title="trials, judged on the validation split (* is the best)", title_justify="left")
    keys = list(dict.fromkeys(key for each in scores for key in each.trial.values))
    for name in ("architecture", "trial", *keys, "exact match", "loss", "parameters", "seconds", "run"):
        table.add_column(name, justify="left" if name in ("architecture", "run") else "right")
    for arch in dict.fromkeys(each.trial.arch for each in scores):
        for each in sorted((s for s in scores if s.trial.arch == arch), key=lambda each: each.order):
            table.add_row(*_cells(each, keys, each is chosen.get(arch)))
    return table


def _cells(each: Score, keys: Sequence[str], best: bool) -> list[str]:
    values = each.trial.values
    return [
        each.trial.arch,
        f"{'* ' * best}{each.trial.number}",
        *(_short(values[key]) if key in values else "" for key in keys),
        f"{100 * each.exact_match:.1f}" if each.status == "finished" else each.status,
        f"{each.loss:.4f}" if math.isfinite(each.loss) else "",
        f"{each.parameters:,}",
        f"{each.seconds:.1f}",
        each.path.name,
    ]


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
