"""The commands for finished runs: their results, predictions, evaluations, errors and weights."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tfstudy.cli.options import INSPECT, ONE_RUN, RESULTS, SHARE, Online, Results, Run, app, some_path
from tfstudy.cli.output import Format, Quiet, announce, is_json, print_json, progress_on_stderr

CHUNK = 1024  # sources that are predicted before their outputs are printed


@app.command(rich_help_panel=INSPECT)
def result(
    run: Run,
    by: Annotated[str, typer.Option(metavar="TAG", help="Also show each value of a tag, such as length.")] = "",
    format_: Format = "text",
    results: Results = RESULTS,
) -> None:
    """Show the results of a finished run.

    These are the metrics of each test set and the published results.
    """
    from tfstudy.errors import UserError
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


@app.command(rich_help_panel=INSPECT)
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
    from tfstudy.cli.sources import (
        STDIN,
        check_sources,
        converse,
        is_interactive,
        one_line,
        prediction_lines,
        read_sources,
    )
    from tfstudy.errors import UserError, one_of

    given, as_json = list(sources or []), one_of("format", format_, ("text", "lines", "json")) == "json"
    if given == [STDIN]:
        given, file = [], file or STDIN
    interactive = is_interactive(given, file)
    if interactive and as_json:
        raise UserError("--format json needs sources: as arguments, with --file, or from a pipe")
    path = run_with_weights(run, results)
    inputs = [] if interactive else read_sources(given, file)
    announce(f"{path}: loading PyTorch ...", quiet)
    from tfstudy.experiment.finished import load

    with progress_on_stderr(quiet):
        finished = load(path, online=online)
    if interactive:
        converse(finished)
        return
    check_sources(finished, inputs)
    texts = [one.text for one in inputs]
    outputs = []
    for start in range(0, len(texts), CHUNK):
        outputs += finished.predict(texts[start : start + CHUNK])
        if not as_json:
            new = map(one_line, outputs[start:]) if format_ == "lines" else prediction_lines(texts, outputs, start)
            print("\n".join(new), flush=True)
    if as_json:
        pairs = [{"source": text, "prediction": output} for text, output in zip(texts, outputs, strict=True)]
        print_json({"run": str(path), "predictions": pairs})


@app.command(rich_help_panel=INSPECT)
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
    from tfstudy.errors import UserError

    as_json, settings = is_json(format_), flatten(overrides(assignments or []))
    if extend and test_set:
        raise UserError("--extend generates new examples, so it can't be combined with --test-set")
    if extend and settings:
        raise UserError("--extend adds to the run's record, so it can't be combined with --set")
    path = run_with_weights(run, results)
    announce(f"{path}: loading PyTorch ...", quiet)
    from tfstudy.experiment.finished import load
    from tfstudy.report.run_summary import length_lines, show
    from tfstudy.report.terminal import Terminal

    # Lengths are printed when they are done: they are the result, and progress only beside the document
    report = print if as_json else partial(print, file=sys.stdout, flush=True)
    with progress_on_stderr(quiet):
        finished = load(path, online=online)
        lengths = finished.evaluate_longer(max_length, report) if extend else None
        measured = finished.evaluate(test_set or [], **settings) if lengths is None else finished.result
    if as_json:
        print_json(result_values(path, measured if lengths is None else lengths))
    elif lengths is not None:
        Terminal().print(*length_lines(lengths), sep="\n")
    else:
        show(measured)


@app.command(rich_help_panel=INSPECT)
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


@app.command(rich_help_panel=SHARE)
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
    from tfstudy.errors import UserError

    path = run_with_weights(run, results)
    if out and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise UserError(f"--out must be a file in an existing folder, but is {out}")
    announce(f"{path}: loading PyTorch ...", quiet)
    from tfstudy.experiment.finished import load

    with progress_on_stderr(quiet):
        file = load(path, online=online).save_weights(out)
    print(f"{file} ({file.stat().st_size / 1e6:.1f} MB)")


def run_with_weights(run: str, results: Path) -> Path:
    """Return a finished run that has weights; `UserError`, before PyTorch is imported, if it has none."""
    from tfstudy.runs.find import find_run
    from tfstudy.runs.reader import read_result
    from tfstudy.runs.weights import find_weights

    path = find_run(results, run)
    find_weights(path, read_result(path))
    return path


def result_values(path: Path, measured: Any) -> dict[str, Any]:
    """Return the folder of a run and a record of it as plain values."""
    import msgspec

    return {"path": str(path), **msgspec.json.decode(msgspec.json.encode(measured))}
