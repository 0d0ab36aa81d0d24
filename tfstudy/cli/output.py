"""What commands print: documents, and progress, which goes to standard error."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, cast

from tfstudy.cli.command_line import PrintableStream
from tfstudy.errors import one_of
from tfstudy.report.markup import FORMATS

if TYPE_CHECKING:
    from tfstudy.report.render import Listing


def document_format(name: str, allowed: Iterable[str] = FORMATS) -> str:
    """Return the format that is named, or else text on a terminal and md elsewhere; `UserError` for an unknown one."""
    return one_of("format", name or ("text" if sys.stdout.isatty() else "md"), allowed)


def listing_format(name: str) -> str:
    """Return the format of a listing; `UserError` for an unknown one."""
    return one_of("format", name, FORMATS)


def print_listing(found: "Listing", format: str) -> None:
    """Print a listing; as wide as the terminal, if it is for one."""
    from tfstudy.report.render import Terminal, render, show

    if format == "text" and sys.stdout.isatty():
        show(found.parts, found.notes, Terminal())
    else:
        print(render(found.parts, found.notes, format, values=found.values), end="")


def print_json(tree: Any) -> None:
    """Print one JSON document."""
    from tfstudy.report.markup import json_text

    print(json_text(tree), end="")


def announce(text: str, quiet: bool = False) -> None:
    """Print a line on standard error, if it is a terminal, before imports that take seconds."""
    if sys.stderr.isatty() and not quiet:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def without_progress(quiet: bool) -> Iterator[None]:
    """Within the block, print nothing on standard output if `quiet`."""
    with ExitStack() as stack:
        if quiet:
            stack.enter_context(redirect_stdout(stack.enter_context(open(os.devnull, "w", encoding="utf-8"))))
        yield


@contextmanager
def progress_on_stderr(quiet: bool) -> Iterator[None]:
    """Within the block, print on standard error what is meant for standard output; if `quiet`, print nothing at all."""
    with ExitStack() as stack:
        if quiet:
            stack.enter_context(redirect_stderr(stack.enter_context(open(os.devnull, "w", encoding="utf-8"))))
        stack.enter_context(redirect_stdout(cast("Any", PrintableStream(sys.stderr))))
        yield
