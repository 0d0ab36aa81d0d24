"""Output on a terminal that can't change it: control characters of what is printed are shown as escapes."""

import os
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from tfstudy.tasks.errors import printable


class Terminal(Console):
    """A Rich console that prints text with `printable`, within tables and live displays too.

    Text is plain, without colour and bold, if `NO_COLOR` is set, on a dumb terminal, and where there is no terminal.
    """

    def __init__(self, **options: Any) -> None:
        if os.environ.get("NO_COLOR"):
            options["color_system"] = None
        if not options.get("stderr"):
            options.setdefault("file", sys.stdout)  # by name, so that a live display finds it behind its own stream
        super().__init__(emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of an object; those by which Rich itself controls the terminal stay as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def plain_table(title: str = "") -> Table:
    """Return an empty table without lines, its title and head in bold."""
    return Table(
        title=Text(title, style="bold") if title else None,
        title_justify="left",
        title_style="",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        collapse_padding=True,
        header_style="dim",
    )


def show_lines(lines: Iterable[Text | str]) -> None:
    """Print lines as they are, those of type `Text` with their style."""
    console = Terminal(file=sys.stdout)
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
