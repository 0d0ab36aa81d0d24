"""The sources for `tfstudy predict`: from its arguments, a file, standard input, or a prompt."""

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tfstudy.errors import UserError, printable, quoted

if TYPE_CHECKING:
    from tfstudy.experiment.finished import FinishedRun

STDIN = "-"
EMPTY = "(empty)"  # an output without tokens
SHOWN = 20  # tokens that the prompt lists


class Source(NamedTuple):
    """A source as text, and where it was given; empty for an argument of the command."""

    text: str
    place: str = ""


def is_interactive(sources: Sequence[str], file: str) -> bool:
    """Whether to ask for sources: none are given, and standard input is a terminal."""
    return not sources and not file and sys.stdin is not None and sys.stdin.isatty()


def read_sources(sources: Sequence[str], file: str) -> list[Source]:
    """Return the given sources, or a source for each line of a file or of standard input.

    `UserError` if none are given, or if the file can't be read.
    """
    if sources and file:
        raise UserError("--file can't be combined with sources on the command line")
    if sources:
        return [Source(text) for text in sources]
    name = "standard input" if file in ("", STDIN) else file
    lines = _content(file, name).removesuffix("\n").split("\n")
    if lines == [""]:
        raise UserError(f"{name} has no source; give sources as arguments, or one per line with --file or a pipe")
    return [Source(line.removesuffix("\r"), f"{name}, line {number}: ") for number, line in enumerate(lines, 1)]


def _content(file: str, name: str) -> str:
    try:
        if file not in ("", STDIN):
            return Path(file).read_bytes().decode("utf-8-sig")  # without a byte order mark
        return sys.stdin.buffer.read().decode("utf-8-sig") if sys.stdin is not None else ""
    except OSError as error:
        raise UserError(f"can't read {quoted(name)}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{name} is not text in UTF-8") from None


def check_sources(run: "FinishedRun", sources: Sequence[Source]) -> None:
    """Raise `UserError` for the first source that the model can't read, with the place where it was given."""
    for source in sources:
        try:
            run.tokens(source.text)
        except UserError as error:
            raise UserError(f"{source.place}{error}") from None


def one_line(output: str) -> str:
    """Return an output with spaces instead of its line breaks."""
    return re.sub("[\r\n]+", " ", output)


def prediction_lines(sources: Sequence[str], outputs: Sequence[str], start: int = 0) -> list[str]:
    """Return the outputs from number `start` for people: behind its source if there are several, `(empty)` if empty."""
    shown = [one_line(output) or EMPTY for output in outputs[start:]]
    return [f"{source} -> {one}" for source, one in zip(sources[start:], shown, strict=False)] if sources[1:] else shown


def converse(run: "FinishedRun") -> None:
    """Ask for sources and print the output for each, until the end of the input (Ctrl-D)."""
    with suppress(ImportError):
        import readline  # noqa: F401 - `input` then has a history and keys for editing
    tokens = run.source_vocabulary
    shown = " ".join(tokens[:SHOWN]) + (f" ... ({len(tokens)} in total)" if len(tokens) > SHOWN else "")
    print(f"source tokens: {printable(shown)}\ntype a source and Enter; Ctrl-D ends", file=sys.stderr)
    while True:
        try:
            line = input("> ")
        except EOFError:
            print()
            return
        if not line.strip():
            continue
        try:
            print(run.predict(line) or EMPTY, flush=True)
        except UserError as error:
            print(printable(str(error)), file=sys.stderr)
