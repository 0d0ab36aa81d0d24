"""Markdown for generated pages: tables, cells and anchors."""

from collections.abc import Iterable, Sequence

SPECIAL = str.maketrans({character: f"\\{character}" for character in "*_[]<>|"})


def text(words: object) -> str:
    """Return words for a cell or a paragraph, with the characters escaped that Markdown reads; `code` stays code."""
    parts = " ".join(str(words).split()).split("`")
    return "".join(code(part) if i % 2 else part.translate(SPECIAL) for i, part in enumerate(parts))


def code(words: object) -> str:
    """Return words as code; a pipe within code does not end a cell."""
    return f"`{words}`" if str(words) else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str) -> str:
    """Return a table whose cells are Markdown; `kind` is its class in the style sheet."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
    return f'<div class="{kind}" markdown>\n\n' + "\n".join(lines) + "\n\n</div>\n"
