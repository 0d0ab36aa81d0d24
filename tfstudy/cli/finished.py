"""The commands for a finished run: its results, predictions, evaluations, errors and weights."""

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tfstudy.cli.command_line import app
from tfstudy.cli.options import ONE_RUN, RESULTS, Online, Results, Run, some_path
from tfstudy.cli.output import Format, Quiet, announce, is_json, print_json, progress_on_stderr
from tfstudy.errors import UserError, one_of, printable, quoted

if TYPE_CHECKING:
    from tfstudy.experiment.finished import FinishedRun

CHUNK = 1024  # sources that are predicted before their outputs are printed
STDIN = "-"
EMPTY = "(empty)"  # an output without tokens
SHOWN = 20  # tokens that the prompt lists


def run_with_weights(run: str, results: Path) -> Path:
    """Return a finished run that has weights; `UserError`, before PyTorch is imported, if it has none."""
    from tfstudy.runs.find import find_run
    from tfstudy.runs.reader import find_weights, read_result

    path = find_run(results, run)
    find_weights(path, read_result(path))
    return path


def load_run(path: Path, online: bool, quiet: bool) -> "FinishedRun":
    """Return a finished run with its model, and announce before that PyTorch is imported."""
    announce(f"{path}: loading PyTorch ...", quiet)
    from tfstudy.experiment.finished import load

    with progress_on_stderr(quiet):
        return load(path, online=online)


def result_values(path: Path, measured: Any) -> dict[str, Any]:
    """Return the folder of a run and a record of it as plain values."""
    import msgspec

    return {"path": str(path), **msgspec.json.decode(msgspec.json.encode(measured))}


@app.command()
def result(
    run: Run,
    by: Annotated[str, typer.Option(metavar="TAG", help="Also show each value of a tag, such as length.")] = "",
    format_: Format = "text",
    results: Results = RESULTS,
) -> None:
    """Show the results of a finished run.

    These are the metrics of each test set and the published results.
    """
    from tfstudy.report.run_summary import show
    from tfstudy.runs.find import find_run
    from tfstudy.runs.reader import read_result

    as_json = is_json(format_)
    if as_json and by:
        raise UserError("--by does not apply to --format json, which has the values of all tags")
    path = find_run(results, run)
    if as_json:
        print_json(result_values(path, read_result(path)))
    else:
        show(read_result(path), by, path)


@app.command()
def evaluate(
    run: Run,
    test_set: Annotated[list[str] | None, typer.Option(help="Test set to evaluate; repeatable (default: all).")] = None,
    extend: Annotated[bool, typer.Option("--extend", help="Evaluate on new examples of increasing length.")] = False,
    max_length: Annotated[int, typer.Option(min=1, max=10000, help="With --extend: maximum length.")] = 500,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Setting of decoding: decode.beam_size=8; repeatable."),
    ] = None,
    format_: Format = "text",
    online: Online = False,
    quiet: Quiet = False,
    results: Results = RESULTS,
) -> None:
    """Decode and score a finished run again.

    Each evaluation of a test set is counted. The run's record stays as it is.
    """
    from tfstudy.config.resolve import overrides
    from tfstudy.config.trees import flatten

    as_json, settings = is_json(format_), flatten(overrides(assignments or []))
    if extend and test_set:
        raise UserError("--extend generates new examples, so it can't be combined with --test-set")
    if extend and settings:
        raise UserError("--extend adds to the run's record, so it can't be combined with --set")
    path = run_with_weights(run, results)
    finished = load_run(path, online, quiet)
    from tfstudy.report.run_summary import length_lines, show
    from tfstudy.report.terminal import Terminal

    # Lengths are printed when they are done: they are the result, and progress only beside the document
    report = print if as_json else partial(print, file=sys.stdout, flush=True)
    with progress_on_stderr(quiet):
        lengths = finished.evaluate_longer(max_length, report) if extend else None
        measured = finished.evaluate(test_set or [], **settings) if lengths is None else finished.result
    if as_json:
        print_json(result_values(path, measured if lengths is None else lengths))
    elif lengths is not None:
        Terminal().print(*length_lines(lengths), sep="\n")
    else:
        show(measured)


@app.command()
def errors(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help=ONE_RUN)],
    test_set: Annotated[str, typer.Option(help="Test set whose predictions are read.")] = "test",
    examples: Annotated[int, typer.Option(min=0, help="Number of examples of each kind.")] = 2,
    format_: Format = "text",
    results: Results = RESULTS,
) -> None:
    """Count the wrong predictions of runs by kind.

    In the examples, the first wrong token is marked.
    """
    from tfstudy.report.error_examples import error_kind_lines, error_values
    from tfstudy.report.terminal import Terminal
    from tfstudy.runs.find import find_run

    as_json = is_json(format_)
    paths = [find_run(results, run) for run in runs]
    if as_json:
        print_json({"runs": [error_values(path, test_set, examples) for path in paths]})
        return
    console = Terminal(soft_wrap=True)
    for path in paths:
        for line in error_kind_lines(path, test_set, examples, console.width):
            console.print(line)


@app.command()
def weights(
    run: Run,
    out: Annotated[
        Path | None, typer.Option(parser=some_path, metavar="FILE", help="File (default: in the run folder).")
    ] = None,
    online: Online = False,
    quiet: Quiet = False,
    results: Results = RESULTS,
) -> None:
    """Write the weights as safetensors, to share them.

    Commands on the run use weights.safetensors in its folder where there is no checkpoint.
    """
    path = run_with_weights(run, results)
    if out and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise UserError(f"--out must be a file in an existing folder, but is {out}")
    finished = load_run(path, online, quiet)
    with progress_on_stderr(quiet):
        file = finished.save_weights(out)
    print(f"{file} ({file.stat().st_size / 1e6:.1f} MB)")


@app.command()
def predict(
    run: Run,
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE", help="Sources: tokens separated by spaces, in quotes.")
    ] = None,
    file: Annotated[
        str, typer.Option("--file", metavar="FILE", help="Read a source per line from a file, or from - (stdin).")
    ] = "",
    format_: Annotated[str, typer.Option("--format", help="text, lines (outputs only, for scripts) or json.")] = "text",
    online: Online = False,
    quiet: Quiet = False,
    results: Results = RESULTS,
) -> None:
    """Print a finished run's outputs for sources.

    For one source this is the output, for several a line `source -> output` for each. Without a source, lines are read
    from standard input; on a terminal, a prompt asks for them.
    """
    given, as_json = list(sources or []), one_of("format", format_, ("text", "lines", "json")) == "json"
    if given == [STDIN]:
        given, file = [], file or STDIN
    interactive = not given and not file and sys.stdin is not None and sys.stdin.isatty()
    if interactive and as_json:
        raise UserError("--format json needs sources: as arguments, with --file, or from a pipe")
    path = run_with_weights(run, results)
    inputs = [] if interactive else read_sources(given, file)
    finished = load_run(path, online, quiet)
    if interactive:
        converse(finished)
        return
    for source in inputs:
        try:
            finished.tokens(source.text)
        except UserError as error:
            raise UserError(f"{source.place}{error}") from None
    texts = [source.text for source in inputs]
    outputs = []
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK]
        outputs += (new := finished.predict(chunk))
        if not as_json:
            several = len(texts) > 1 and format_ == "text"
            for text, output in zip(chunk, new, strict=True):
                line = re.sub("[\r\n]+", " ", output) or EMPTY * (format_ == "text")
                print(f"{text} -> {line}" if several else line)
            sys.stdout.flush()
    if as_json:
        pairs = [{"source": text, "prediction": output} for text, output in zip(texts, outputs, strict=True)]
        print_json({"run": str(path), "predictions": pairs})


class Source(NamedTuple):
    """A source as text, and where it was given; empty for an argument of the command."""

    text: str
    place: str = ""


def read_sources(sources: Sequence[str], file: str) -> list[Source]:
    """Return the given sources, or a source for each line of a file or of standard input.

    `UserError` if none are given, or if the file can't be read.
    """
    if sources and file:
        raise UserError("--file can't be combined with sources on the command line")
    if sources:
        return [Source(text) for text in sources]
    name = "standard input" if file in ("", STDIN) else file
    try:
        if file not in ("", STDIN):
            content = Path(file).read_bytes()
        else:
            content = sys.stdin.buffer.read() if sys.stdin is not None else b""
        lines = content.decode("utf-8-sig").removesuffix("\n").split("\n")  # without a byte order mark
    except OSError as error:
        raise UserError(f"can't read {quoted(name)}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{name} is not text in UTF-8") from None
    if lines == [""]:
        raise UserError(f"{name} has no source; give sources as arguments, or one per line with --file or a pipe")
    return [Source(line.removesuffix("\r"), f"{name}, line {number}: ") for number, line in enumerate(lines, 1)]


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
