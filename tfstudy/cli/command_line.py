"""The app: its help, its exit codes, one line for each error, the options before a command, and its streams."""

import platform
import re
import sys
from argparse import ArgumentError, ArgumentParser
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from importlib.metadata import version
from inspect import getdoc
from itertools import pairwise
from typing import Annotated, Any, TextIO, TypeVar, cast

import typer
from typer.core import TyperGroup

from tfstudy import __version__
from tfstudy.errors import UserError, printable, quoted

F = TypeVar("F", bound=Callable[..., Any])
RESUMABLE = ("run", "grid", "tune")  # commands that continue an interrupted one
GROUPS = {  # the commands in the order of `tfstudy --help`
    "Run": ("list", "config", "run", "grid", "tune", "bench"),
    "Study": ("status", "table", "plot", "claims", "check", "report"),
    "Inspect": ("result", "predict", "errors", "measure", "evaluate"),
    "Share": ("new", "export", "pack"),
}
GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}
EXAMPLES = {  # of the app, whose name is empty, and of its commands
    "": (
        ("tfstudy run scan --arch lstm --split length", "train and evaluate one model"),
        ("tfstudy table scan", "results beside published ones"),
        ("tfstudy grid --help", "a command and its options"),
    ),
    "run": (
        ("tfstudy run copying --smoke", "check that all works"),
        ("tfstudy run scan --arch lstm --split length", "train and evaluate an LSTM"),
        ("tfstudy run scan --seed 3 --set model.dim=64", "another seed and width"),
        ("tfstudy run --config RUN/config.yaml --seed 1", "another seed of a run"),
    ),
    "grid": (
        ("tfstudy grid scan --dry-run", "list the runs, start none"),
        ("tfstudy grid --task copying --arch lstm,cnn", "run two architectures"),
    ),
}


class PrintableStream:
    """Writes text so that it can't control the terminal, and is otherwise like the stream that it wraps."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # by this name Rich, whose codes are wanted, finds the stream itself

    def write(self, text: str) -> int:
        """Write text with control characters as escapes; return its length."""
        self.rich_proxied_file.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines, which have their line breaks."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


class Commands(TyperGroup):
    """Exit code 2 for invalid input, 1 for a failed run or a file error, 130 for an interruption; one line for each.

    Words that Typer does not know are answered by Typer, with the usage.
    """

    words: list[str]

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        self.words = plugins_first(args)
        return super().make_context(info_name, self.words, *rest, **extra)

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in GROUP_OF if name in self.commands]

    def invoke(self, ctx: Any) -> Any:
        try:
            with redirect_stdout(cast("Any", PrintableStream(sys.stdout))):
                return super().invoke(ctx)
        except typer.BadParameter as error:
            names, words = error.param.opts if error.param else [], self.words  # its own message lacks the value
            pairs = [*(word.partition("=")[::2] for word in words), *pairwise(words)]
            if values := [value for name, value in pairs if value and name in names]:
                error.message += f", but is {quoted(values[-1])}"
            raise
        except UserError as error:
            code, text = 2, f"error: {error}"
        except BrokenPipeError:  # the reader, such as `head`, has what it wants
            raise
        except OSError as error:
            file = f": {error.filename}" if error.filename else ""
            code, text = 1, f"error: {error.strerror or error}{file}"
        except KeyboardInterrupt:
            code, text = 130, "interrupted"
        if code != 2 and ctx.invoked_subcommand in RESUMABLE:
            text += "; run the same command again to resume"
        print(printable(text), file=sys.stderr)
        raise typer.Exit(code)


class App(typer.Typer):
    """The app, whose commands are in their groups, with their examples."""

    def command(self, name: str | None = None, **more: Any) -> Callable[[F], F]:
        def registered(function: F) -> F:
            known = name or function.__name__
            lines = re.sub(r"(?<!\n)\n(?!\n)", " ", getdoc(function) or "")  # one for each paragraph
            more.update(help=lines, epilog=examples(known), rich_help_panel=GROUP_OF[known])
            return super(App, self).command(name, **more)(function)

        return registered


def examples(name: str) -> str:
    """Return the examples of a command, or of the app if the name is empty, a line each."""
    width = max((len(command) for command, _ in EXAMPLES.get(name, ())), default=0)
    return "\n".join(f"{command:{width}}  # {does}" for command, does in EXAMPLES.get(name, ()))


app = App(
    cls=Commands,
    help="Experiments on inductive bias and generalisation in sequence models.",
    epilog=examples(""),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    """Print `tfstudy 0.1.0 (torch 2.13.0+cpu, python 3.13.1, commit 1a2b3c4)`; no commit outside a checkout."""
    from tfstudy.runs.identity import commit

    if asked:
        found = commit()
        at = f", commit {found[:7]}{' with changes' * found.endswith('+')}" if found else ""
        print(f"tfstudy {__version__} (torch {version('torch')}, python {platform.python_version()}{at})")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Python file of a task, architecture or instrument; repeatable."),
    ] = None,
) -> None:
    """Take the options that come before a command."""
    if plugin:
        from tfstudy import plugins

        plugins.add(*plugin)


def plugins_first(words: list[str]) -> list[str]:
    """Return the words with every `--plugin FILE` before the command, so that it may stand after the command too."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--plugin", action="append", default=[])
    try:
        found, others = parser.parse_known_args(words)
    except ArgumentError as error:
        raise typer.BadParameter(str(error)) from None
    return [*(f"--plugin={file}" for file in found.plugin), *others]
