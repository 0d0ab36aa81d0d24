"""Tables, conditions and comparisons of example records, for tests."""

from pathlib import Path

from tfstudy.analysis.frame import read_study
from tfstudy.analysis.summary import conditions, pairs, rows_of
from tfstudy.report.render import Listing, render
from tfstudy.report.tables import Table


def rows(study: Path) -> list:
    """The conditions of a study."""
    return rows_of(conditions(read_study(study).runs))


def compared(study: Path) -> list:
    """The comparisons of a study with their conditions, in the order of these."""
    frame = conditions(read_study(study).runs)
    found = rows_of(frame)
    return [one._replace(first=found[one.first], second=found[one.second]) for one in rows_of(pairs(frame))]


def text_of(found: Listing) -> str:
    """A listing as text without a limit of width."""
    return render(found.parts, found.notes, "text")


def notes(table: Table) -> list[str]:
    """The notes of a table as texts."""
    return [note.text for note in table.notes]
