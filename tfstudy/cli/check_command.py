"""`tfstudy check` as a command that writes its files even if it can't check anything."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tfstudy.cli.command_group import Command

if TYPE_CHECKING:
    from tfstudy.report.regression import Check

FILES = ("--junit", "--summary")


class CheckCommand(Command):
    """Writes errors of the command line into the files of `--junit` and `--summary`, where CI shows results."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        files = {} if extra.get("resilient_parsing") else files_of(args)
        with errors_written(files):
            return super().make_context(info_name, args, parent, **extra)


def files_of(words: Sequence[str]) -> dict[str, Path]:
    """Return the paths of `--junit` and `--summary` on a command line that may be invalid."""
    files = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in FILES and (path := value if equals else following):
            files[name] = Path(path)
    return files


@contextmanager
def errors_written(files: Mapping[str, Path | None]) -> Iterator[None]:
    """Write whatever ends the block, unless it is an exit code, into the files; then raise it again."""
    from tfstudy.errors import UserError

    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except BaseException as error:
        if any(files.values()):
            from tfstudy.report.regression import error_check

            with suppress(UserError):  # the one that ended the block matters more
                write_files(files, error_check(message_of(error)))
        raise


def write_files(files: Mapping[str, Path | None], outcome: "Check") -> None:
    """Write the JUnit file and append to the summary; then `UserError` with each of them that can't be written."""
    from tfstudy.errors import UserError

    failed = []
    for option, write in {"--junit": _write_junit, "--summary": _append_summary}.items():
        if path := files.get(option):
            try:
                write(path, outcome)
            except OSError as error:
                failed.append(f"can't write {path}: {_reason(error)}")
    if failed:
        raise UserError("; ".join(failed))


def _write_junit(path: Path, outcome: "Check") -> None:
    from tfstudy.runs.files import write_atomically

    write_atomically(path, outcome.junit)  # makes the folder too


def _append_summary(path: Path, outcome: "Check") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(outcome.markdown + "\n")


def _reason(error: OSError) -> str:
    no_folder = isinstance(error, FileNotFoundError | NotADirectoryError | FileExistsError)  # a file in its place
    return "no such folder" if no_folder else error.strerror or str(error)


def message_of(error: BaseException) -> str:
    """Return an error in one line, as the command prints it."""
    from tfstudy.errors import UserError, printable

    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if hasattr(error, "format_message"):  # Click's
        return printable(error.format_message())
    return printable(str(error) if isinstance(error, UserError | OSError) else f"{type(error).__name__}: {error}")
