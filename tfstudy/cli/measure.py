"""The command that measures finished runs with an instrument."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli import completion
from tfstudy.cli.options import INSPECT, RESULTS, Online, Results, app, some_path
from tfstudy.cli.output import Format, Quiet, announce, is_json, progress_on_stderr

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Setting of the instrument: examples=500; repeatable."),
]


@app.command(rich_help_panel=INSPECT)
def measure(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="Run, or study: all its finished runs.", autocompletion=completion.study),
    ],
    instrument: Annotated[
        str, typer.Argument(metavar="INSTRUMENT", help="Such as entropy (tfstudy list instruments).")
    ],
    assignments: Settings = None,
    save: Annotated[bool, typer.Option("--save", help="Save it in the run folders, for the report.")] = False,
    out: Annotated[
        Path | None, typer.Option(parser=some_path, metavar="PATH", help="Also draw it: a .png, .svg or .pdf file.")
    ] = None,
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
    from tfstudy.analysis.collection import RunRecord
    from tfstudy.config.resolve import overrides
    from tfstudy.errors import one_of
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
    from tfstudy.experiment.measure_runs import measure_runs

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
    from tfstudy.analysis.collection import read_finished_runs
    from tfstudy.runs.find import STARTED, find_run, studies
    from tfstudy.runs.studyfile import exists

    folder = results / target if target in studies(results) else Path(target)
    if os.path.isdir(folder) and not any(exists(folder / name) for name in STARTED):
        return [run.path for run in read_finished_runs(folder).runs if run.finished]
    return [find_run(results, target, studies(results))]
