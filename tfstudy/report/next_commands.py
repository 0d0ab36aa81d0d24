"""What to type after a run: commands that work as they are printed. Imports no torch."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from tfstudy import plugins
from tfstudy.config.resolve import is_remote
from tfstudy.errors import UserError
from tfstudy.runs.commands import results_option
from tfstudy.runs.reader import read_config, read_predictions
from tfstudy.runs.schema import Result

SOLVED = 0.95  # exact match on every test set
SEEN = 1000  # predictions among which the shortest source is chosen
LONGEST = 40  # characters of a source
HARDER = {  # by task: split schemes whose test set is random, a harder scheme, and why it is harder
    "scan": (("simple",), "length", "test on longer outputs than any in training"),
}
Hint = tuple[str, str]  # a command and what it does


def next_lines(path: Path, result: Result, results: Path) -> list[Text]:
    """Return commands to go on with after a run, each with what it does; none if the run did not finish."""
    if result.status != "finished" or result.smoke:
        return []
    run = f"{path.parent.parent.name}/{path.parent.name}/{path.name}"
    used = [file for file in plugins.files() if _is_used(file, result)]
    option = results_option(results) + "".join(f" --plugin {shlex.quote(_shown(file))}" for file in used)
    hints = [(f"tfstudy {hint}{option}", does) for hint, does in _hints(run, path, result)]
    solved = [Text("The random split is solved.", style="green")] if _harder(result) and is_solved(result) else []
    width = max(len(command) for command, _ in hints) + 2
    return [*solved, Text("next:", style="bold"), *(_line(command, does, width) for command, does in hints)]


def is_solved(result: Result) -> bool:
    """Return whether exact match is at least 95 % on every test set."""
    shares = [scores.metrics.get("exact_match", 0.0) for scores in result.splits.values() if scores.role == "test"]
    return bool(shares) and min(shares) >= SOLVED


def _hints(run: str, path: Path, result: Result) -> Sequence[Hint]:
    hints: list[Hint] = []
    if (harder := _harder(result)) and is_solved(result):
        hints.append((f"run {result.task} --arch {result.arch} --split {harder[0]}", harder[1]))
    if source := _short_source(path, result):
        online = " --online" * is_remote(read_config(path).get("data", {}).get("hub", ""))
        hints.append((f"predict {run} {shlex.quote(source)}{online}", "decode a source"))
    if not is_solved(result):
        hints.append((f"errors {run}", "the kinds of wrong outputs"))
    if result.lengths:
        hints.append((f"result {run} --by length", "accuracy by length"))
    return hints or [(f"result {run}", "this result again")]


def _is_used(plugin: Path, result: Result) -> bool:
    """Return whether a file of `--plugin` defines the task or the architecture of a run."""
    return plugin.stem in (result.task, result.arch)


def _shown(file: Path) -> str:
    """Return the path of a file, relative to the working folder if it lies within."""
    return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)


def _harder(result: Result) -> tuple[str, str] | None:
    schemes, harder, why = HARDER.get(result.task, ((), "", ""))
    return (harder, why) if result.split in schemes else None


def _line(command: str, does: str, width: int) -> Text:
    """Return a command and what it does, in a column if there is room, and on a line of its own if it is long."""
    aligned, close = " " * (width - len(command)) + "# ", "  # "
    gap = aligned if width + len(does) <= 76 else close if len(command + close + does) <= 78 else "\n    # "
    return Text.assemble(f"  {command}", (f"{gap}{does}", "dim"))


def _short_source(path: Path, result: Result) -> str:
    """Return the shortest source that was tested; empty if all are long, or without predictions."""
    tests = [name for name, scores in result.splits.items() if scores.role == "test"]
    try:
        sources = [one.source for one in read_predictions(path, tests[0])[:SEEN]] if tests else []
    except UserError:
        return ""
    shortest = min(filter(None, sources), key=len, default="")
    return shortest if len(shortest) <= LONGEST and shortest.isprintable() else ""
