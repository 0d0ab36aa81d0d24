"""The commands that watch, retry, check and compare runs."""

import sys
from typing import Annotated

import typer

from tfstudy.cli.options import (
    INSPECT,
    RESULTS,
    RUN,
    STUDY,
    Accelerator,
    Devices,
    ExistingResults,
    FailFast,
    Online,
    PerDevice,
    Results,
    Run,
    StudyName,
    Timeout,
    announce,
    app,
)


@app.command(rich_help_panel=STUDY)
def status(
    study: StudyName = "",
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every 2 seconds until Ctrl-C.")] = False,
    results: ExistingResults = RESULTS,
) -> None:
    """Show the progress of one study, or of all studies."""
    from tfstudy.report import status as report

    if watch and sys.stdout.isatty():
        report.watch(lambda: report.status(results, study))
        return
    for line in report.status(results, study):
        print(line)


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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs; run nothing.")] = False,
    fail_fast: FailFast = False,
    per_device: PerDevice = "auto",
    timeout: Timeout = 0.0,
    devices: Devices = 1,
    accelerator: Accelerator = "auto",
    results: ExistingResults = RESULTS,
) -> None:
    """Retry the failed and interrupted runs of a study.

    They run on this machine, with the configs in their folders.
    """
    from tfstudy.experiment.options import RunOptions
    from tfstudy.launchers import ExecutorSettings
    from tfstudy.runs.find import find_study

    settings = ExecutorSettings(per_device, timeout, options=RunOptions(devices=devices, accelerator=accelerator))
    folder = find_study(results, study)
    announce(f"{folder}: preparing the runs ...")
    from tfstudy.report.grid_console import retry_study

    raise typer.Exit(retry_study(folder, settings, dry_run, fail_fast))


@app.command(rich_help_panel=INSPECT)
def why(run: Run, online: Online = False, results: Results = RESULTS) -> None:
    """Show whether a run is up to date, and what changed.

    Config, data and code are compared with the record of the run.
    """
    from tfstudy.runs.find import find_run

    path = find_run(results, run)
    from tfstudy.report.outdated import explain

    for line in explain(path, online):
        print(line)


@app.command(rich_help_panel=INSPECT)
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="Run: a folder or hash prefix.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another run.")],
    results: Results = RESULTS,
) -> None:
    """Show the differences between two runs.

    These are settings, data, versions and metrics.
    """
    from tfstudy.report.run_diff import compare
    from tfstudy.runs.find import find_run

    for line in compare(find_run(results, a), find_run(results, b)):
        print(line)
