"""A study for the tests of tables, and what else they share."""

from pathlib import Path

from rich.console import Console

from tests.example_records import result, write
from tfstudy.analysis.counterparts import Quotation
from tfstudy.analysis.published import figure_of
from tfstudy.report.table_columns import Table
from tfstudy.report.table_terminal import print_table

HOSTILE = r"a_b&c%d$e#f{g}h~i^j\k|l"  # a name with every character that LaTeX reads as something else


def two_architectures(study: Path) -> Path:
    """Five seeds of a CNN and of an LSTM on `length`, which differ, and one seed of an LSTM on `simple`."""
    high = [result(seed, 0.8 + seed / 100, arch="cnn", experiment="c", run=f"c{seed}") for seed in range(5)]
    low = [result(seed, 0.2 - (-1) ** seed / 100) for seed in range(5)]
    return write(study, *high, *low, result(0, 0.5, split="simple", experiment="s", run="50"))


def quotation(id_: str, same_settings: bool = False) -> Quotation:
    return Quotation(figure_of(id_), same_settings)


def printed(table: Table, width: int) -> list[str]:
    """The lines of a table on a terminal of this width."""
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        print_table(table, console)
    return capture.get().splitlines()
