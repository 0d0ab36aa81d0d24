"""The trials of a search as tables."""

import math
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from tfstudy.report.terminal import Column, column_table, fitting
from tfstudy.tuning.finals import Finalist, final_seeds
from tfstudy.tuning.search import Search, TrialScore


def trial_lines(scores: Sequence[TrialScore], best: Mapping[str, TrialScore], width: int) -> list[Table | Text | str]:
    """Return a table of all trials by architecture, the best first and marked with a star, and what did not fit."""
    keys = list(dict.fromkeys(key for score in scores for key in score.trial.values))
    archs = list(dict.fromkeys(score.trial.arch for score in scores))
    rows = sorted(scores, key=lambda score: (archs.index(score.trial.arch), score.order))
    values = {key: [_number(row.trial.values.get(key, "")) for row in rows] for key in keys}
    stars = ["* " * (row is best.get(row.trial.arch)) for row in rows]
    columns = {
        "architecture": Column("architecture", [row.trial.arch for row in rows], left=True),
        "trial": Column("trial", [f"{star}{row.trial.number}" for star, row in zip(stars, rows, strict=True)]),
        **{key: Column(key.rpartition(".")[2].replace("_", " "), cells) for key, cells in values.items()},
        "loss": Column("loss", [f"{row.loss:.4f}" if math.isfinite(row.loss) else "" for row in rows]),
        "exact match": Column("exact match", [_exact_match(row) for row in rows]),
        "parameters": Column("parameters", [f"{row.parameters:,}" for row in rows]),
        "run": Column("run", [row.path.name for row in rows], left=True),
    }
    columns, left_out = fitting(columns, ("parameters", "exact match", "run"), width)
    note = f"left out to fit {width} characters: {', '.join(left_out)}"
    return [
        Text("trials, judged on the validation split (* is the best)", style="bold"),
        column_table("", columns.values(), width),
        *([note] if left_out else []),
    ]


def finalist_lines(
    search: Search, finalists: Sequence[Finalist], best: Mapping[str, Finalist], width: int
) -> list[Table | Text | str]:
    """Return a table of the second round by architecture, the best first and marked with a star."""
    trials = [one.trial.trial for one in finalists]
    stars = ["* " * (one is best.get(trial.arch)) for one, trial in zip(finalists, trials, strict=True)]
    losses = [[f"{one.loss:.4f}" if one.status == "finished" else one.status for one in row.seeds] for row in finalists]
    columns = [
        Column("architecture", [trial.arch for trial in trials], left=True),
        Column("trial", [f"{star}{trial.number}" for star, trial in zip(stars, trials, strict=True)]),
        Column("mean loss", [f"{one.loss:.4f}" if math.isfinite(one.loss) else "" for one in finalists]),
        *(
            Column(f"seed {seed}", cells)
            for seed, cells in zip(final_seeds(search.request), zip(*losses, strict=True), strict=True)
        ),
    ]
    title = f"the best trials, judged by the mean loss over {search.request.final_seeds} seeds (* is the best)"
    return [Text(title, style="bold"), column_table("", columns, width)]


def _exact_match(score: TrialScore) -> str:
    return f"{100 * score.exact_match:.1f}" if score.status == "finished" else score.status


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
