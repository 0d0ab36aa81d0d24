"""The commands that watch, retry, check and compare runs."""

from typing import Annotated

import typer

from tfstudy.cli.execution_options import ManyRuns
from tfstudy.cli.options import (
    INSPECT,
    ONE_RUN,
    RESULTS,
    RUN,
    STUDY,
    ExistingResults,
    FailFast,
    Online,
    Results,
    Run,
    StudyName,
    app,
)
from tfstudy.cli.output import Format, Quiet, announce, is_json, print_json, without_progress


@app.command(rich_help_panel=STUDY)
def status(
    study: StudyName = "",
    format_: Format = "text",
    results: ExistingResults = RESULTS,
) -> None:
    """Show the progress of one study, or of all studies."""
    from tfstudy.report import status as report
    from tfstudy.report.terminal import show_lines
    from tfstudy.runs.find import find_study

    study = find_study(results, study).name if study else ""
    if is_json(format_):
        print_json(report.status_values(results, study))
    else:
        show_lines(report.status_lines(results, study))


@app.command(rich_help_panel=INSPECT)
def logs(
    run: Run,
    lines: Annotated[int, typer.Option(min=1, help="Number of lines.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", help="Continue until the process of the run ends.")] = False,
    results: Results = RESULTS,
) -> None:
    """Print the end of the log of a run."""
    from tfstudy.runs.find import find_run
    from tfstudy.runs.train_log import log_text

    try:
        for text in log_text(find_run(results, run), lines, follow):
            print(text, end="", flush=True)
    except KeyboardInterrupt:
        return


@app.command(rich_help_panel=RUN)
def retry(
    study: StudyName = "runs",
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs; run nothing.")] = False,
    fail_fast: FailFast = False,
    settings: ManyRuns,
    online: Online = False,
    quiet: Quiet = False,
    results: ExistingResults = RESULTS,
) -> None:
    """Retry the failed and interrupted runs of a study.

    They run on this machine, with the configs in their folders. To continue a grid as it was started, repeat its
    --execution, --logger and --measure.
    """
    from tfstudy.runs.find import find_study

    folder = find_study(results, study)
    announce(f"{folder}: preparing the runs ...", quiet)
    from tfstudy.console.grids import retry_study
    from tfstudy.report.status import end_line

    with without_progress(quiet and not dry_run):
        code = retry_study(folder, settings, dry_run, fail_fast, online)
    if not dry_run:
        print(end_line(folder))
    raise typer.Exit(code)


@app.command(rich_help_panel=INSPECT)
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


@app.command(rich_help_panel=INSPECT)
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
