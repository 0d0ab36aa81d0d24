"""`instruments/NAME.json`: what an instrument measured on a finished run, and how it is drawn. Imports no torch.

`tfstudy measure --save` writes a file for each instrument, and the report draws them. The files may come from somebody
else, so the reader has bounds and checks of its own.
"""

import fcntl
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from tfstudy.errors import UserError, nearest, quoted
from tfstudy.runs.files import BrokenError, check_writable, sealed, unsealed, write_atomically
from tfstudy.runs.schema import FORMAT, Count
from tfstudy.runs.store import UNREADABLE, read_result
from tfstudy.runs.studyfile import check_unpacked, exists, names_in, read_file

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
Kind = Literal["line", "bar", "heatmap"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Chart(msgspec.Struct, frozen=True):
    """How the rows of an instrument are drawn. Each text except the labels is the name of a column, or empty for none.

    line, bar: `y` is the measured number, drawn against `x`, with a colour for each `hue`. Without `hue`, conditions
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
    log_x: bool = False
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
    digest: str  # of the instrument, its version and its settings: measurements with the same one can be compared
    chart: Chart
    columns: Annotated[dict[Name, Cells], msgspec.Meta(min_length=1, max_length=20)]
    examples: Count = 0  # that were read, which may be fewer than the settings ask for; 0: not recorded

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
        columns = {key: [_rounded(row[key]) for row in rows] for key in keys}
        digest = settings_digest(instrument, version, settings)
        record = cls(run, instrument, version, dict(settings), digest, chart, columns, examples)
        try:
            return _decoded(msgspec.json.encode(record))
        except msgspec.ValidationError as error:  # such as for nan, which is encoded as null
            raise UserError(f"the measurement {instrument} can't be used: {error}") from None

    def rows(self) -> list[Row]:
        """The table as a list of rows."""
        return [dict(zip(self.columns, cells, strict=True)) for cells in zip(*self.columns.values(), strict=True)]

    @property
    def shown_settings(self) -> str:
        """The settings as text, such as `split=validation, examples=200`, without empty ones.

        The number of examples is that of those that were read.
        """
        shown = self.settings | ({"examples": self.examples} if self.examples else {})
        return ", ".join(f"{key}={value}" for key, value in shown.items() if value != "")


RECORDS = msgspec.json.Decoder(Measurement)


def settings_digest(instrument: str, version: int, settings: Mapping[str, Value]) -> str:
    """Return the digest of an instrument with its settings, as 16 hexadecimal digits."""
    text = msgspec.json.encode([instrument, version, sorted(settings.items())])
    return hashlib.sha256(text).hexdigest()[:16]


def saved_instruments(run: Path) -> list[str]:
    """Return the names of the instruments whose measurements are saved in a run folder, sorted."""
    names = (name.removesuffix(".json") for name in names_in(run / FOLDER) if name.endswith(".json"))
    return [name for name in names if name.isidentifier() and name.isascii()]


def read_measurement(run: Path, instrument: str) -> Measurement:
    """Return a measurement that is saved in a run folder.

    `UserError` if there is none, if it can't be drawn, or if it belongs to another run.
    """
    file = run / FOLDER / f"{instrument}.json"
    if not exists(file):
        raise UserError(f"{run} has no measurement {quoted(instrument)}; `tfstudy measure --save` saves it")
    result = read_result(run)
    try:
        content = read_file(file, MAX_BYTES)
        record = _decoded(unsealed(content, file) if result.format == FORMAT else content)
    except (OSError, BrokenError, *UNREADABLE) as error:
        raise UserError(f"{file} is broken ({error})") from None
    if record.instrument != instrument:
        raise UserError(f"{file} is broken (it is of the instrument {quoted(record.instrument)})")
    if record.run != result.run:
        raise UserError(f"{file} belongs to another run ({quoted(record.run[:8])})")
    return record


def save_measurement(run: Path, record: Measurement) -> Path:
    """Write a measurement to a run folder, in place of an earlier one of the same instrument; return its file.

    Several processes may save at the same time: the last one replaces the others.
    """
    check_unpacked(run)
    check_writable(run)
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two writers of one file would share its temporary name
        write_atomically(folder / f"{record.instrument}.json", sealed(record))
    finally:
        os.close(lock)
    return folder / f"{record.instrument}.json"


def _decoded(content: bytes) -> Measurement:
    """The measurement in a JSON object; `msgspec.ValidationError` if it can't be used."""
    record, problem = RECORDS.decode(content), ""
    if record.digest != settings_digest(record.instrument, record.version, record.settings):
        problem = "the digest is not that of its settings"
    elif len({len(cells) for cells in record.columns.values()}) > 1:
        problem = "the columns have different lengths"
    elif unknown := [name for name in record.chart.columns if name not in record.columns]:
        problem = f"unknown column of the chart {quoted(unknown[0])}{nearest(unknown[0], record.columns)}"
    elif not record.chart.x or not record.chart.value:
        problem = "the chart has no column for x or for the number"
    elif any(isinstance(cell, str) for cell in record.columns[record.chart.value]):
        problem = f"the column {record.chart.value} has no number for each row"
    if problem:
        raise msgspec.ValidationError(problem)
    return record


def _rounded(cell: Cell) -> Cell:
    return float(f"{cell:.{DIGITS}g}") if isinstance(cell, float) else cell
