"""A stream for `print`, whose text can't control the terminal."""

from collections.abc import Iterable
from typing import Any, TextIO

from tfstudy.errors import printable


class PrintableStream:
    """Writes text with `printable`, and is otherwise like the stream that it wraps."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # by this name Rich, whose codes are wanted, finds the stream itself

    def write(self, text: str) -> int:
        """Write text; return its length."""
        self.rich_proxied_file.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines, which have their line breaks."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)
