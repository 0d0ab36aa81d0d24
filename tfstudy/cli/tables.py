"""The commands that read the records of runs: tables and errors."""

from typing import Annotated

import typer

from tfstudy.cli.options import RESULTS, Baseline, Metric, Results, StudyName, app, study_folder


@app.command()
def table(
    study: StudyName = "",
    by: Annotated[str, typer.Option(metavar="NAME,...", help="Sort by task, split, arch, preset or a tag.")] = "",
    metric: Metric = "",
    baseline: Baseline = "",
    format_: Annotated[str, typer.Option("--format", help="md, csv, tex, html or json.")] = "md",
    results: Results = RESULTS,
) -> None:
    """Print the results of a study as a table.

    One row for each condition: the mean over seeds with its interval, which conditions differ, and published results.
    """
    from tasks.errors import one_of
    from tfstudy.report import tables
    from tfstudy.report.table_formats import FORMATS

    write = FORMATS[one_of("format", format_, FORMATS)]
    print(write(tables.table(study_folder(results, study), by, metric, baseline)), end="")


@app.command()
def errors(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs: folders or hash prefixes.")],
    test_set: Annotated[str, typer.Option(help="Test set whose predictions are read.")] = "test",
    examples: Annotated[int, typer.Option(min=0, help="Number of examples of each kind.")] = 2,
    results: Results = RESULTS,
) -> None:
    """Count the wrong predictions of runs by kind.

    For several runs, also list examples that only one model solves.
    """
    from tfstudy.report.error_examples import error_kind_lines, solved_by_lines
    from tfstudy.runs.find import find_run

    paths = [find_run(results, run) for run in runs]
    for path in paths:
        print("\n".join(error_kind_lines(path, test_set, examples)), end="\n\n")
    if len(paths) > 1:
        print("\n".join(solved_by_lines(paths, test_set, examples)))
