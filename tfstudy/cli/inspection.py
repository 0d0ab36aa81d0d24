"""The commands that look into finished runs: results, predictions, errors, measurements, and scoring again."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfstudy.cli import options as opt
from tfstudy.cli.command_line import app
from tfstudy.cli.output import announce, listing_format, print_json, print_listing, progress_on_stderr
from tfstudy.errors import UserError, one_of, printable

if TYPE_CHECKING:
    from tfstudy.experiment.finished import FinishedRun

EMPTY = "(empty)"  # an output without tokens


def run_with_weights(run: str, results: Path) -> Path:
    """Return a finished run that has weights; `UserError`, before PyTorch is imported, if it has none."""
    from tfstudy.runs.find import find_run
    from tfstudy.runs.store import find_weights, read_result

    path = find_run(results, run)
    find_weights(path, read_result(path))
    return path


def load_run(path: Path, online: bool, quiet: bool) -> "FinishedRun":
    """Return a finished run with its model, and announce before that PyTorch is imported."""
    announce(f"{path}: loading PyTorch ...", quiet)
    from tfstudy.experiment.finished import load

    with progress_on_stderr(quiet):
        return load(path, online=online)


@app.command()
def result(
    run: opt.Run,
    other: Annotated[str, opt.argument("OTHER", "Another run: show how the two differ.")] = "",
    by: Annotated[str, opt.option(metavar="TAG", help="Also show each value of a tag, such as length.")] = "",
    changes: Annotated[bool, opt.option("--changes", help="Show what changed since: config, data and code.")] = False,
    log: Annotated[bool, opt.option("--log", help="Print the end of the log.")] = False,
    format_: opt.Format = "text",
    online: opt.Online = False,
    results: opt.Results = opt.RESULTS,
) -> None:
    """Show a run's result, log or changes, or how two runs differ.

    The result has the metrics of each split and of trivial systems.
    """
    from tfstudy.runs.find import find_run

    views = {"OTHER": other, "--by": by, "--changes": changes, "--log": log}
    if len(given := [name for name, value in views.items() if value]) > 1:
        raise UserError(f"{' and '.join(given)} can't be combined; choose one")
    if listing_format(format_) == "json" and (by or log):
        raise UserError(f"{given[0]} does not apply to --format json, which has the values of all tags")
    path = find_run(results, run)
    if log:
        from tfstudy.runs.find import log_text

        print(log_text(path))
        return
    from tfstudy.report import one_run
    from tfstudy.runs.store import read_result

    if other or changes:
        found = one_run.difference(path, find_run(results, other)) if other else one_run.changes(path, online)
        print_listing(found, format_)
    else:
        print_listing(one_run.listing(read_result(path), by, path), format_)


@app.command()
def errors(
    runs: Annotated[list[str], opt.argument("RUN", opt.ONE_RUN)],
    test_set: Annotated[str, opt.option(help="Test set whose predictions are read (test).", metavar="NAME")] = "test",
    examples: Annotated[int, opt.option(min=0, help="Examples of each kind (1).", metavar="N")] = 1,
    format_: opt.Format = "text",
    results: opt.Results = opt.RESULTS,
) -> None:
    """Count the wrong predictions of runs by kind.

    In the examples, a bar stands before the first wrong token.
    """
    from tfstudy.report import one_run
    from tfstudy.report.render import Listing
    from tfstudy.runs.find import find_run

    format_, paths = listing_format(format_), [find_run(results, run) for run in runs]
    found = [one_run.errors(path, test_set, examples) for path in paths]
    parts = [part for one in found for part in one.parts]
    print_listing(Listing(parts, (), {"runs": [one.values for one in found]}), format_)


@app.command()
def evaluate(
    run: opt.Run,
    test_set: Annotated[list[str] | None, opt.option(help="Test set; repeatable (all).", metavar="NAME")] = None,
    assignments: Annotated[
        list[str] | None,
        opt.option("--set", metavar="KEY=VALUE", help="Setting of decoding: decode.method=beam; repeatable."),
    ] = None,
    format_: opt.Format = "text",
    online: opt.Online = False,
    quiet: opt.Quiet = False,
    results: opt.Results = opt.RESULTS,
) -> None:
    """Decode and score a finished run again.

    Its record stays as it is, and each reading of a test set is counted.
    """
    from tfstudy.config.resolve import overrides
    from tfstudy.config.trees import flatten

    format_, settings = listing_format(format_), flatten(overrides(assignments or []))
    path = run_with_weights(run, results)
    finished = load_run(path, online, quiet)
    from tfstudy.report.one_run import listing

    with progress_on_stderr(quiet):
        measured = finished.evaluate(test_set or [], **settings)
    print_listing(listing(measured, path=path), format_)


# Measurements


@app.command()
def measure(
    target: Annotated[str, opt.argument("TARGET", "Run, or study: all its finished runs.")],
    instrument: Annotated[str, opt.argument("INSTRUMENT", "Such as entropy (tfstudy list instruments).")],
    source: Annotated[str, opt.argument("SOURCE", "Source to read, for attention and patching.")] = "",
    assignments: Annotated[
        list[str] | None,
        opt.option("--set", metavar="KEY=VALUE", help="Setting of the instrument: examples=500; repeatable."),
    ] = None,
    save: Annotated[bool, opt.option("--save", help="Save it in the run folders, for the report.")] = False,
    out: Annotated[Path | None, opt.path_option("Also draw it: a .png, .svg or .pdf file.")] = None,
    format_: opt.Format = "text",
    online: opt.Online = False,
    quiet: opt.Quiet = False,
    results: opt.Results = opt.RESULTS,
) -> None:
    """Measure what happens inside trained models.

    The table has means over all examples and runs; --format json has every number. A run that the instrument does not
    apply to is left out, with the reason. Attention of one run on a SOURCE shows which tokens it attends to; its
    settings are kind (encoder, decoder, prefix or cross), layer, head and target.
    """
    from tfstudy import instruments
    from tfstudy.config.resolve import overrides
    from tfstudy.report.plots import check_file_type

    listing_format(format_)
    one_of("instrument", instrument, instruments.names())
    if out:
        check_file_type(out)
    settings, paths = overrides(assignments or []), _runs(results, target)
    if source:
        settings["source"] = source
    if instrument == "attention" and "source" in settings and len(paths) == 1 and not save:
        attention(paths[0], settings, out, format_, online, quiet)
        return
    announce(f"{target}: loading PyTorch ...", quiet)
    from tfstudy.analysis.frame import RunRecord
    from tfstudy.experiment.finished import measure_runs
    from tfstudy.report.markup import plural
    from tfstudy.report.measured import by_condition, listing
    from tfstudy.runs.store import INSTRUMENTS, open_run

    with progress_on_stderr(quiet):
        measured, notes = measure_runs(paths, instrument, settings, save, online)
    for note in notes:
        print(note, file=sys.stderr)
    records = [RunRecord(*open_run(path)._replace(result=result)) for path, result, _ in measured]
    conditions = by_condition(zip(records, [record for *_, record in measured], strict=True))
    if out:
        from tfstudy.report.plots.instruments import measurement

        measurement(instrument, conditions).save(out)
    print_listing(listing(conditions), format_)
    if out and format_ == "text":
        print(out)
    if save and format_ == "text":
        print(f"saved: {INSTRUMENTS}/{instrument}.json in {plural(len(measured), 'run folder')}")


def attention(path: Path, settings: dict[str, Any], out: Path | None, format: str, online: bool, quiet: bool) -> None:
    """Show which tokens a run attends to while it reads a source: the largest weight of each row, or all as JSON."""
    subject = load_run(path, online, quiet).subject
    from tfstudy.config.resolve import resolve_section
    from tfstudy.instruments.attention import AttentionMaps
    from tfstudy.report.measured import attention_listing
    from tfstudy.report.plots.instruments import attention as figure

    maps = AttentionMaps(resolve_section(AttentionMaps.Config, settings)).maps(subject)
    if out:
        figure(maps).save(out)
    print_listing(attention_listing(maps), format)
    if out and format == "text":
        print(out)


def _runs(results: Path, target: str) -> list[Path]:
    """Return the finished runs of a study, or the one run that the target names."""
    from tfstudy.analysis.frame import read_finished_runs
    from tfstudy.runs.files import exists
    from tfstudy.runs.find import STARTED, find_run, studies

    folder = results / target if target in studies(results) else Path(target)
    if os.path.isdir(folder) and not any(exists(folder / name) for name in STARTED):
        return [run.path for run in read_finished_runs(folder).runs if run.finished]
    return [find_run(results, target, studies(results))]


# Predictions


@app.command()
def predict(
    run: opt.Run,
    sources: Annotated[list[str] | None, opt.argument("SOURCE", "Sources: quoted tokens, spaces between them.")] = None,
    format_: Annotated[str, opt.option("--format", metavar="NAME", help="text or json.")] = "text",
    online: opt.Online = False,
    quiet: opt.Quiet = False,
    results: opt.Results = opt.RESULTS,
) -> None:
    """Print a finished run's outputs for sources.

    For one source this is the output, for several a line `source -> output` for each. Without a source, lines are read
    from standard input, and each is answered by a line with the output.
    """
    as_json = one_of("format", format_, ("text", "json")) == "json"
    path = run_with_weights(run, results)
    inputs, from_stdin = (sources, False) if sources else (read_lines(), True)
    finished = load_run(path, online, quiet)
    tokens, errors = readable(finished, inputs, from_stdin)
    from tfstudy.evaluation.evaluate import cut_outputs

    outputs = dict(zip(tokens, finished.outputs([*tokens.values()]) if tokens else [], strict=True))
    texts = {number: output.text for number, output in outputs.items()}
    if as_json:
        pairs = [{"source": source, "prediction": texts.get(number)} for number, source in enumerate(inputs)]
        print_json({"run": str(path), "predictions": pairs})
    for number, source in enumerate(() if as_json else inputs):
        output = re.sub("[\r\n]+", " ", texts.get(number, ""))
        shown = output if from_stdin else output or EMPTY
        print(f"{source} -> {shown}" if len(inputs) > 1 and not from_stdin else shown)
    if cut := sum(output.cut for output in outputs.values()):
        print(cut_outputs(cut, len(outputs)), file=sys.stderr)
    raise typer.Exit(int(errors))


def readable(run: "FinishedRun", inputs: Sequence[str], lines: bool) -> tuple[dict[int, tuple[str, ...]], bool]:
    """Return the tokens of the sources that the model can read, by number, and whether there are others.

    Of `lines` the others are named on standard error, and empty ones skipped; else `UserError`. Unknown words are named
    too.
    """
    tokens: dict[int, tuple[str, ...]] = {}
    errors = False
    for number, source in enumerate(inputs):
        place = f"line {number + 1}: " if lines else ""
        try:
            if source.strip() or not lines:
                tokens[number] = run.tokens(source)
                if words := run.unknown(tokens[number]):
                    print(printable(f"{place}read as unknown: {' '.join(words)}"), file=sys.stderr)
        except UserError as error:
            if not lines:
                raise
            errors = True
            print(printable(f"{place}{error}"), file=sys.stderr)
    return tokens, errors


def read_lines() -> list[str]:
    """Return the lines of standard input; `UserError` if there are none, or if they can't be read."""
    if sys.stdin.isatty():
        announce("one source a line; Ctrl-D ends")
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")  # without a byte order mark
    except UnicodeDecodeError:
        raise UserError("standard input is not text in UTF-8") from None
    if not text.removesuffix("\n"):
        raise UserError("standard input has no source; give sources as arguments, or one per line in a pipe")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
