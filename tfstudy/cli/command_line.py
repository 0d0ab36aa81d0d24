"""The app: its help, its exit codes, one line for each error, the options before a command, and its streams."""

import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import version
from inspect import getdoc
from typing import Annotated, Any, TextIO, TypeVar, cast

import typer
from typer.core import TyperCommand, TyperGroup

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


def replace_letters() -> None:
    """Print a question mark for a letter that the encoding of standard output or standard error lacks."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


class Command(TyperCommand):
    """A command that refuses empty arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words; `UserError` for an empty argument, such as a shell variable that is not set."""
        rest = super().parse_args(ctx, args)
        for one in self.params:
            if one.param_type_name != "argument" or ctx.get_parameter_source(one.name).name != "COMMANDLINE":
                continue
            value = ctx.params[one.name]
            if "" in (value if isinstance(value, list | tuple) else [value]) and not ctx.resilient_parsing:
                advice = "give a value" if one.required else "give a value or leave it out"
                raise UserError(f"the argument {one.metavar} is empty; {advice}")
        return rest


class Commands(TyperGroup):
    """Exit code 2 for invalid input, 1 for a failed run or a file error, 130 for an interruption; one line for each."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        with usage_errors():
            return super().make_context(info_name, plugins_first(args), *rest, **extra)

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in GROUP_OF if name in self.commands]

    def invoke(self, ctx: Any) -> Any:
        try:
            with usage_errors(), redirect_stdout(cast("Any", PrintableStream(sys.stdout))):
                return super().invoke(ctx)
        except UserError as error:
            print(f"error: {printable(str(error))}", file=sys.stderr)
            raise typer.Exit(2) from None
        except BrokenPipeError:  # the reader, such as `head`, has what it wants
            raise
        except OSError as error:
            file = f": {error.filename}" if error.filename else ""
            code, text = 1, f"error: {printable((error.strerror or str(error)) + file)}"
        except BaseException as error:
            if not was_interrupted(error):
                raise
            code, text = 130, "interrupted"
        resume = "; run the same command again to resume" if ctx.invoked_subcommand in RESUMABLE else ""
        print(f"{text}{resume}", file=sys.stderr)
        raise typer.Exit(code) from None


class App(typer.Typer):
    """The app, whose commands are of the class `Command`, each in its group and with its examples."""

    def command(self, name: str | None = None, **more: Any) -> Callable[[F], F]:
        def registered(function: F) -> F:
            known = name or function.__name__
            paragraphs = (getdoc(function) or "").split("\n\n")
            options: dict[str, Any] = {
                "cls": Command,
                "help": "\n\n".join(" ".join(text.split()) for text in paragraphs),
                "epilog": examples(known),
                "rich_help_panel": GROUP_OF[known],
            }
            return super(App, self).command(name, **options | more)(function)

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
    from tfstudy.runs.environment import commit

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
    first: list[str] = []
    others: list[str] = []
    rest = list(words)
    while rest and rest[0] != "--":
        word = rest.pop(0)
        if word == "--plugin" and not rest:
            raise typer.BadParameter("--plugin needs the name of a file")
        is_plugin = word == "--plugin" or word.startswith("--plugin=")
        (first if is_plugin else others).append(word)
        first += [rest.pop(0)] if word == "--plugin" else []
    return [*first, *others, *rest]


@contextmanager
def usage_errors() -> Iterator[None]:
    """Print the errors of Click on wrong words as all others are, after the usage; what they quote is cut."""
    try:
        yield
    except Exception as error:
        is_help = type(error).__name__ == "NoArgsIsHelpError"  # its message is the help
        if is_help or not hasattr(error, "format_message"):  # Click's, of which Typer may have a copy
            raise
        found = cast("Any", error)
        kind = getattr(error.__cause__, "errors", None)  # of pydantic, which parses numbers
        given = f", but is '{kind()[0]['input']}'" if kind else ""
        found.message = quoted(f"{found.message}{given}", limit=300, marks="")
        if found.ctx:
            print(f"{found.ctx.get_usage()}\nTry '{found.ctx.command_path} --help' for help.\n", file=sys.stderr)
        print(f"error: {found.format_message()}", file=sys.stderr)
        raise typer.Exit(found.exit_code) from None


def was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is what caused an error, such as one of an import."""
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return bool(error)
