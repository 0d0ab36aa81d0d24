"""`tfstudy check` as a command that writes its files even if it can't check anything."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

FILES = ("--junit", "--summary")


class CheckCommand(TyperCommand):
    """Writes the error into the files of `--junit` and `--summary`, so that CI shows it where it shows results."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        files = {} if extra.get("resilient_parsing") else files_of(args)
        with errors_written(files):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        with errors_written({f"--{name}": ctx.params[name] for name in ("junit", "summary") if ctx.params[name]}):
            return super().invoke(ctx)


def files_of(words: Sequence[str]) -> dict[str, Path]:
    """Return the paths of `--junit` and `--summary` on a command line that may be invalid."""
    files = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in FILES and (path := value if equals else following):
            files[name] = Path(path)
    return files


@contextmanager
def errors_written(files: dict[str, Path]) -> Iterator[None]:
    """Write whatever ends the block, unless it is an exit code, into the files; then raise it again."""
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except BaseException as error:
        with suppress(OSError):  # such as the one that ended the block
            write_error(files, message_of(error))
        raise


def write_error(files: dict[str, Path], message: str) -> None:
    """Write a message into a JUnit file, and append it to a summary."""
    from tfstudy.report.regression import error_check
    from tfstudy.runs.files import write_atomically

    if not files:
        return
    outcome = error_check(message)
    if path := files.get("--junit"):
        write_atomically(path, outcome.junit)
    if path := files.get("--summary"):
        with path.open("a", encoding="utf-8") as file:
            file.write(outcome.markdown + "\n")


def message_of(error: BaseException) -> str:
    """Return an error in one line, as the command prints it."""
    from tfstudy.tasks.errors import UserError, printable

    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if hasattr(error, "format_message"):  # Click's
        return printable(error.format_message())
    return printable(str(error) if isinstance(error, UserError | OSError) else f"{type(error).__name__}: {error}")
