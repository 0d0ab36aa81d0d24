"""`tfstudy.table`: the table of a study for the interpreter, notebooks and papers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfstudy.errors import one_of
from tfstudy.report import tables
from tfstudy.report.table_columns import Table
from tfstudy.report.table_formats import FORMATS, latex, values
from tfstudy.runs.find import study_folder

if TYPE_CHECKING:
    import pandas as pd


class StudyTable:
    """The table of a study: text in a terminal, HTML in a notebook, pandas by `frame`, other formats by `render`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def frame(self) -> "pd.DataFrame":
        """The table as a pandas frame: a row for each condition and test set, with unrounded values in percent.

        Columns: `task`, `split`, `test`, `arch`, `preset`, `settings`, `metric`, `n` (seeds), `mean`, `low` and
        `high` (95 % interval), `p`, `each_seed`, `published`, `runs` (their folders) and those of `--format json`.
        """
        import pandas as pd

        return pd.DataFrame([values(line) for line in self._table.lines])

    @property
    def notes(self) -> list[str]:
        """What the table says below its lines: how means, intervals and tests were computed, and what was left out."""
        return list(self._table.notes)

    def render(self, format: str = "text", caption: str = "", label: str = "") -> str:
        """Return the table as text.

        Args:
            format: `text` for a terminal, `md`, `html`, `csv`, `json`, `tex`, or `bib` for the papers it quotes.
            caption: Caption of the LaTeX table, in plain text.
            label: Label of the LaTeX table, such as `tab:scan`.

        Raises:
            UserError: For an unknown format.
        """
        one_of("format", format, FORMATS)
        return latex(self._table, caption, label) if format == "tex" else FORMATS[format](self._table)

    def __len__(self) -> int:
        return len(self._table.lines)

    def __repr__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return self.render("html")


def table(
    study: str | Path = "",
    *,
    by: str | Sequence[str] = (),
    metric: str = "",
    baseline: str = "",
    columns: str | Sequence[str] = (),
    seeds: bool = False,
    results: str | Path = "results",
) -> StudyTable:
    """Return the table of a study, as `tfstudy table` prints it: a line for each condition.

    A line has the mean over seeds with its 95 % interval, the group of conditions that do not differ from it
    significantly, and the published figures.

    Args:
        study: Name of a study, such as `"scan"`, or its folder; the folder of results for all studies. It may be left
            out if there is only one.
        by: Names that give the order of the lines: task, split, arch, preset, or a tag of the examples such as
            length, which makes a line for each of its values.
        metric: Metric, such as `"token_accuracy"`; by default exact match, or BLEU for translation.
        baseline: Architecture or condition with which the others are compared.
        columns: Columns to show, such as `["arch", "n", "result"]`; by default all that have values.
        seeds: Whether to show the result of each seed.
        results: The folder of all results.

    Returns:
        A table that shows itself as text or HTML. `frame` is the same as a pandas frame, and `render("tex")` the
        LaTeX for a paper.

    Raises:
        UserError: If there is no finished run, or for an unknown name.

    Examples:
        >>> table = tfstudy.table("scan", baseline="lstm")
        >>> table.frame[["split", "arch", "mean", "low", "high"]]
    """
    folder = study_folder(study, results)
    return StudyTable(tables.table(folder, _joined(by), metric, baseline, _joined(columns), seeds))


def _joined(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else ",".join(names)
