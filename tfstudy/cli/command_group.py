"""The group of all commands: its help, its exit codes, and one line for each error."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from textwrap import wrap
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from tfstudy.cli.printable_stream import PrintableStream

RESUMABLE = ("run", "grid", "retry", "tune")  # commands that continue an interrupted one
RUN, STUDY, INSPECT, SHARE = "Run", "Study", "Inspect", "Share"  # the groups of commands in `tfstudy --help`
GROUPS = {  # the order of groups and of the commands within them; others follow
    RUN: ("list", "config", "run", "grid", "tune", "retry", "bench"),
    STUDY: ("status", "table", "plot", "claims", "check"),
    INSPECT: ("result", "predict", "errors", "attention", "measure", "evaluate", "logs", "why", "diff"),
    SHARE: ("new", "report", "export", "weights"),
}
OR_NONE = " or leave it out"
EXAMPLES = {  # of the app, whose name is empty, and of its commands
    "": (
        ("tfstudy run scan --arch lstm --split length", "train and evaluate one model"),
        ("tfstudy table scan", "results beside published ones"),
        ("tfstudy grid --help", "a command and its options"),
    ),
    "run": (
        ("tfstudy run copying --smoke", "check that all works"),
        ("tfstudy run scan --arch lstm --split length", "train and evaluate an LSTM"),
        ("tfstudy run scan --seed 3 --set model.dim=64", "with another seed and width"),
        ("tfstudy run --config RUN/config.yaml --seed 1", "another seed of a run"),
    ),
    "grid": (
        ("tfstudy grid scan --dry-run", "list the runs, start none"),
        ("tfstudy grid scan --tier quick", "run fewer of them"),
        ("tfstudy grid --task copying --arch lstm,cnn", "run two architectures"),
        ("tfstudy grid --task scan --seed 0-4 --study mine", "run five seeds"),
    ),
}


class Command(TyperCommand):
    """A command that refuses empty arguments. Its usage has braces around alternatives only."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words; `UserError` for an empty argument, such as a shell variable that is not set."""
        from tfstudy.errors import UserError

        rest = super().parse_args(ctx, args)
        for one in self.params:
            if one.param_type_name != "argument" or ctx.get_parameter_source(one.name).name != "COMMANDLINE":
                continue
            value = ctx.params[one.name]
            if "" in (value if isinstance(value, list | tuple) else [value]) and not ctx.resilient_parsing:
                raise UserError(f"the argument {one.metavar} is empty; give a value{'' if one.required else OR_NONE}")
        return rest

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [piece if "|" in piece else piece.replace("{", "").replace("}", "") for piece in pieces]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(str(self.name), formatter)


class Commands(TyperGroup):
    """Exit code 2 for invalid input, 1 for a failed run or a file error, 130 for an interruption; one line for each."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        with usage_errors():
            return super().make_context(info_name, plugins_first(args), *rest, **extra)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in their groups, then the options and examples."""
        width = max(map(len, self.commands))
        for group, names in self.groups().items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:{width}}", self.commands[name].get_short_help_str(99)) for name in names])
        shown = [one for one in self.get_params(ctx) if one.name != "show_completion"]
        with formatter.section("Options"):
            formatter.write_dl([record for one in shown if (record := one.get_help_record(ctx))])
        write_examples("", formatter)

    def groups(self) -> dict[str, list[str]]:
        """Return the names of the commands by group, in the order of the help."""
        groups: dict[str, list[str]] = {name: [] for name in GROUPS}
        for name, command in self.commands.items():
            groups.setdefault(getattr(command, "rich_help_panel", None) or "Other", []).append(name)
        return {name: sorted(found, key=lambda one: _place(name, one)) for name, found in groups.items() if found}

    def invoke(self, ctx: Any) -> Any:
        from tfstudy.errors import UserError, printable

        try:
            with usage_errors(), redirect_stdout(cast("Any", PrintableStream(sys.stdout))):
                return super().invoke(ctx)
        except UserError as error:
            print_error(f"error: {printable(str(error))}")
            raise typer.Exit(2) from None
        except OSError as error:
            code, text = 1, f"error: {printable(file_error(error))}"
        except KeyboardInterrupt:
            code, text = 130, "interrupted"
        except Exception as error:
            if not was_interrupted(error):
                raise
            code, text = 130, "interrupted"
        resume = "; run the same command again to resume" if ctx.invoked_subcommand in RESUMABLE else ""
        print_error(f"{text}{resume}")
        raise typer.Exit(code) from None


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


def write_examples(name: str, formatter: Any) -> None:
    """Write the examples of a command, or of the app if the name is empty."""
    if examples := EXAMPLES.get(name):
        width = max(len(command) for command, _ in examples)
        with formatter.section("Examples"):
            formatter.write("".join(f"  {command:{width}}  # {does}\n" for command, does in examples))


def _place(group: str, command: str) -> int:
    """Return where a command is listed in its group."""
    order = GROUPS.get(group, ())
    return order.index(command) if command in order else len(order)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Print the errors of Click on wrong words as all others are, after the usage; what they quote is cut."""
    from tfstudy.errors import quoted

    try:
        yield
    except Exception as error:
        is_help = type(error).__name__ == "NoArgsIsHelpError"  # its message is the help
        if is_help or not hasattr(error, "format_message"):  # Click's, of which Typer may have a copy
            raise
        found = cast("Any", error)
        found.message = quoted(_plain(found), limit=300, marks="")
        if found.ctx:
            print(f"{found.ctx.get_usage()}\nTry '{found.ctx.command_path} --help' for help.\n", file=sys.stderr)
        print_error(f"error: {found.format_message()}")
        raise typer.Exit(found.exit_code) from None


def print_error(message: str) -> None:
    """Print lines on standard error, wrapped if it is a terminal."""
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else 0
    for line in message.splitlines():
        parts = wrap(line, width, break_long_words=False, break_on_hyphens=False) if len(line) > width > 0 else [line]
        print("\n".join(parts), file=sys.stderr)


def _plain(error: Any) -> str:
    """Return the message of an error of Click, in the words of the config's errors if it is on the kind of a value."""
    if not hasattr(error.__cause__, "errors"):  # pydantic's, which parses numbers
        return str(error.message)
    from tfstudy.config.value_errors import rule

    problem = error.__cause__.errors()[0]
    return f"{rule(problem)}, but is '{problem['input']}'"


def was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is what caused an error, such as one of an import."""
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return bool(error)


def file_error(error: OSError) -> str:
    """Return what went wrong, and with which file."""
    return (error.strerror or str(error)) + (f": {error.filename}" if error.filename else "")
