"""Output on a terminal that can't change it: control characters of what is printed are shown as escapes."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tfstudy.tasks.errors import printable


class Terminal(Console):
    """A Rich console that prints text with `printable`, within tables and live displays too."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of an object; those by which Rich itself controls the terminal stay as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))
