"""The commands that look into runs: attention, instruments, logs, and what changed."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.command_line import app
from tfstudy.cli.finished import load_run
from tfstudy.cli.options import ONE_RUN, RESULTS, Online, Results, Run, complete_study, some_path
from tfstudy.cli.output import Format, Quiet, announce, is_json, print_json, progress_on_stderr
from tfstudy.errors import one_of

Figure = Annotated[
    Path | None, typer.Option(parser=some_path, metavar="PATH", help="Also draw it: a .png, .svg or .pdf file.")
]


@app.command()
def attention(
    run: Run,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Source sequence, tokens separated by spaces.")],
    target: Annotated[str | None, typer.Option(help="Output to read (default: the model's own greedy output).")] = None,
    kind: Annotated[
        str,
        typer.Option(help="encoder, decoder, prefix or cross (default: the last that the model has; json: all)."),
    ] = "",
    layer: Annotated[int | None, typer.Option(min=1, help="Only this layer, from 1.")] = None,
    head: Annotated[int | None, typer.Option(min=1, help="Only this head, from 1.")] = None,
    out: Figure = None,
    format_: Format = "text",
    online: Online = False,
    quiet: Quiet = False,
    results: Results = RESULTS,
) -> None:
    """Show which tokens a finished run attends to.

    The table has the token with the largest weight, as a mean over heads; the figure has all weights of each layer and
    head. A row belongs to the output token that is predicted from it.
    """
    from tfstudy.report.plots import check_file_type
    from tfstudy.runs.find import find_run

    as_json = is_json(format_)
    if out:
        check_file_type(out)
    path = find_run(results, run)
    found = load_run(path, online, quiet).attention(source, target)
    maps = found.maps(kind, layer or 0, head or 0)
    if out:
        from tfstudy.report.plots import heat_maps

        heat_maps.attention(maps.of_one_kind()).save(out)
    if as_json:
        tree = {"source": maps.source, "output": maps.output, "given": found.given}
        print(json.dumps(tree | {"maps": [one._asdict() for one in maps.maps]}, ensure_ascii=False))
        return
    from tfstudy.report.attention_summary import show

    show(maps.of_one_kind())
    if out:
        print(out)


@app.command()
def measure(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="Run, or study: all its finished runs.", autocompletion=complete_study),
    ],
    instrument: Annotated[
        str, typer.Argument(metavar="INSTRUMENT", help="Such as entropy (tfstudy list instruments).")
    ],
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Setting of the instrument: examples=500; repeatable."),
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Save it in the run folders, for the report.")] = False,
    out: Figure = None,
    format_: Format = "text",
    online: Online = False,
    quiet: Quiet = False,
    results: Results = RESULTS,
) -> None:
    """Measure what happens inside trained models.

    The table has means over all examples and runs; --format json has every number. A run that the instrument does not
    apply to is left out, with the reason.
    """
    from tfstudy import instruments
    from tfstudy.analysis.frame import RunRecord
    from tfstudy.config.resolve import overrides
    from tfstudy.report.markup import plural
    from tfstudy.report.measured import by_condition, show
    from tfstudy.report.plots import check_file_type
    from tfstudy.runs.measurement_record import FOLDER

    as_json = is_json(format_)
    one_of("instrument", instrument, instruments.names())
    if out:
        check_file_type(out)
    settings, paths = overrides(assignments or []), _runs(results, target)
    announce(f"{target}: loading PyTorch ...", quiet)
    from tfstudy.experiment.finished import measure_runs

    with progress_on_stderr(quiet):
        measured, notes = measure_runs(paths, instrument, settings, save, online)
    for note in notes:
        print(note, file=sys.stderr)
    conditions = by_condition((RunRecord(path, result), record) for path, result, record in measured)
    if out:
        from tfstudy.report.plots.measurement import plot

        plot(instrument, conditions).save(out)
    if as_json:
        print("[" + ",\n".join(record.json() for *_, record in measured) + "]")
        return
    show(conditions)
    if out:
        print(out)
    if save:
        print(f"saved: {FOLDER}/{instrument}.json in {plural(len(measured), 'run folder')}")


def _runs(results: Path, target: str) -> list[Path]:
    """Return the finished runs of a study, or the one run that the target names."""
    from tfstudy.analysis.frame import read_finished_runs
    from tfstudy.runs.find import STARTED, find_run, studies
    from tfstudy.runs.studyfile import exists

    folder = results / target if target in studies(results) else Path(target)
    if os.path.isdir(folder) and not any(exists(folder / name) for name in STARTED):
        return [run.path for run in read_finished_runs(folder).runs if run.finished]
    return [find_run(results, target, studies(results))]


@app.command()
def logs(
    run: Run,
    follow: Annotated[bool, typer.Option("--follow", help="Continue until the process of the run ends.")] = False,
    results: Results = RESULTS,
) -> None:
    """Print the end of the log of a run."""
    from tfstudy.runs.find import find_run
    from tfstudy.runs.status import log_text

    try:
        for text in log_text(find_run(results, run), follow_run=follow):
            print(text, end="", flush=True)
    except KeyboardInterrupt:
        return


@app.command()
def why(run: Run, format_: Format = "text", online: Online = False, results: Results = RESULTS) -> None:
    """Show whether a run is up to date, and what changed.

    Config, data and code are compared with the record of the run.
    """
    from tfstudy.runs.find import find_run

    as_json = is_json(format_)
    path = find_run(results, run)
    from tfstudy.report.run_changes import examine, verdict_lines
    from tfstudy.report.terminal import show_lines

    found = examine(path, online)
    if as_json:
        print_json(found._asdict())
    else:
        show_lines(verdict_lines(found))


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help=ONE_RUN)],
    b: Annotated[str, typer.Argument(metavar="B", help="Another run.")],
    format_: Format = "text",
    results: Results = RESULTS,
) -> None:
    """Show the differences between two runs.

    These are settings, data, versions and metrics.
    """
    from tfstudy.report.run_changes import difference_lines, difference_values
    from tfstudy.report.terminal import show_lines
    from tfstudy.runs.find import find_run

    as_json = is_json(format_)
    runs = find_run(results, a), find_run(results, b)
    if as_json:
        print_json(difference_values(*runs))
    else:
        show_lines(difference_lines(*runs))
