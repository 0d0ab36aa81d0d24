"""`instruments/NAME.json`: what an instrument measured on a finished run, and how it is drawn. Imports no torch.

`tfstudy measure --save` writes a file for each instrument, and the report draws them. They are sealed and read as the
other files of a run; impossible values are refused by the types.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from tfstudy.errors import UserError, nearest, quoted
from tfstudy.runs.files import BrokenError, sealed, unsealed, write_atomically
from tfstudy.runs.schema import FORMAT, Count
from tfstudy.runs.store import UNREADABLE, read_result
from tfstudy.runs.studyfile import check_writable, names_in, read_bytes

FOLDER = "instruments"
DIGITS = 6  # significant ones of a saved number
MAX_ROWS = 50_000
MAX_BYTES = 1 << 24

Name = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z][A-Za-z0-9_]{0,63}\Z")]
Text = Annotated[str, msgspec.Meta(max_length=100)]
Cell = Text | int | float
Cells = Annotated[list[Cell], msgspec.Meta(min_length=1, max_length=MAX_ROWS)]
Row = dict[str, Cell]
Value = Text | bool | int | float
Kind = Literal["line", "heatmap"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Chart(msgspec.Struct, frozen=True):
    """How the rows of an instrument are drawn. Each text except the labels is the name of a column, or empty for none.

    line: `y` is the measured number, drawn against `x`, with a colour for each `hue`. Without `hue`, conditions
    have colours. heatmap: `hue` is the measured number, in a cell for each `x` and `y`. There is a panel for each
    `facet`. The number is the mean of all rows of a run that share these columns, and then of all seeds.

    `ranked` is a column whose values mean nothing from one run to the next, such as the numbers of heads: it is `x`, or
    divides each `y` of a heatmap. Before the mean over seeds, its values are replaced by ranks, 1 for the largest
    number.
    """

    kind: Kind
    x: str
    y: str
    hue: str = ""
    facet: str = ""
    ranked: str = ""
    log_y: bool = False
    x_label: str = ""  # empty: the name of the column
    y_label: str = ""
    hue_label: str = ""

    @property
    def value(self) -> str:
        """The column with the measured number."""
        return self.hue if self.kind == "heatmap" else self.y

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the chart uses."""
        return tuple(name for name in (self.x, self.y, self.hue, self.facet, self.ranked) if name)


class Measurement(msgspec.Struct, frozen=True):
    """What an instrument measured on a run: a table with a list of cells for each column."""

    run: str  # the hash of the run
    instrument: Name
    version: int  # of the instrument
    settings: dict[Name, Value]
    chart: Chart
    columns: Annotated[dict[Name, Cells], msgspec.Meta(min_length=1, max_length=20)]
    examples: Count = 0  # that were read, which may be fewer than the settings ask for; 0: not recorded

    def __post_init__(self) -> None:
        """Refuse what can't be drawn or compared: `ValueError`, also when it is read."""
        if len({len(cells) for cells in self.columns.values()}) > 1:
            raise ValueError("the columns have different lengths")
        for name in (self.chart.x, self.chart.value, *self.chart.columns):
            if name not in self.columns:
                raise ValueError(f"unknown column of the chart {quoted(name)}{nearest(name, self.columns)}")
        if any(isinstance(cell, str) for cell in self.columns[self.chart.value]):
            raise ValueError(f"the column {self.chart.value} has no number for each row")

    @classmethod
    def of(
        cls,
        run: str,
        instrument: str,
        version: int,
        settings: Mapping[str, Value],
        chart: Chart,
        rows: Sequence[Row],
        examples: int = 0,
    ) -> "Measurement":
        """Return the measurement with these rows, rounded; `UserError` if it can't be saved."""
        keys = list(rows[0]) if rows else []
        if any(list(row) != keys for row in rows):
            raise ValueError(f"the rows of the instrument {instrument} do not have the same keys in the same order")
        columns = {key: [row[key] for row in rows] for key in keys}
        for cells in columns.values():
            cells[:] = [float(f"{cell:.{DIGITS}g}") if isinstance(cell, float) else cell for cell in cells]
        try:
            record = cls(run, instrument, version, dict(settings), chart, columns, examples)
            return RECORDS.decode(msgspec.json.encode(record))
        except ValueError as error:  # such as for nan, which is encoded as null
            raise UserError(f"the measurement {instrument} can't be used: {error}") from None

    def rows(self) -> list[Row]:
        """The table as a list of rows."""
        return [dict(zip(self.columns, cells, strict=True)) for cells in zip(*self.columns.values(), strict=True)]

    @property
    def comparable(self) -> str:
        """The instrument, its version and its settings: measurements with the same ones can be compared."""
        return f"{self.instrument} {self.version} {sorted(self.settings.items())}"

    @property
    def shown_settings(self) -> str:
        """The settings as text, such as `split=validation, examples=200`, without empty ones.

        The number of examples is that of those that were read.
        """
        shown = self.settings | ({"examples": self.examples} if self.examples else {})
        return ", ".join(f"{key}={value}" for key, value in shown.items() if value != "")


RECORDS = msgspec.json.Decoder(Measurement)


def saved_instruments(run: Path) -> list[str]:
    """Return the names of the instruments whose measurements are saved in a run folder, sorted."""
    names = (name.removesuffix(".json") for name in names_in(run / FOLDER) if name.endswith(".json"))
    return [name for name in names if name.isidentifier() and name.isascii()]


def read_measurement(run: Path, instrument: str) -> Measurement:
    """Return a measurement that is saved in a run folder.

    `UserError` if there is none, if it can't be drawn, or if it belongs to another run.
    """
    file, result = run / FOLDER / f"{instrument}.json", read_result(run)
    try:
        if not (content := read_bytes(file, MAX_BYTES)):
            raise UserError(f"{run} has no measurement {quoted(instrument)}; `tfstudy measure --save` saves it")
        record = RECORDS.decode(unsealed(content, file) if result.format == FORMAT else content)
    except (BrokenError, *UNREADABLE) as error:
        raise UserError(f"{file} is broken ({error})") from None
    if (record.instrument, record.run) != (instrument, result.run):
        raise UserError(f"{file} belongs to another run or instrument ({quoted(record.run[:8])}, {record.instrument})")
    return record


def save_measurement(run: Path, record: Measurement) -> Path:
    """Write a measurement to a run folder, in place of an earlier one of the same instrument; return its file.

    Several processes may save at the same time: the last one replaces the others.
    """
    check_writable(run)
    file = run / FOLDER / f"{record.instrument}.json"
    write_atomically(file, sealed(record))
    return file
