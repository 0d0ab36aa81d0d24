"""The command by which continuous integration notices a drop."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.check_command import CheckCommand
from tfstudy.cli.command_group import file_error
from tfstudy.cli.options import RESULTS, STUDY, ExistingResults, StudyName, app, some_path, study_folder


@app.command(cls=CheckCommand, rich_help_panel=STUDY)
def check(
    against: Annotated[
        Path, typer.Option(parser=some_path, metavar="PATH", help="Baseline: tfstudy table STUDY --format json > FILE.")
    ],
    study: StudyName = "",
    tolerance: Annotated[float, typer.Option(min=0, help="Allowed drop in percentage points.")] = 1.0,
    junit: Annotated[
        Path | None, typer.Option(parser=some_path, metavar="PATH", help="Also write JUnit XML to this file.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(parser=some_path, metavar="PATH", help="Also append the Markdown to this file.")
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Allow missing conditions.")] = False,
    format_: Annotated[
        str, typer.Option("--format", help="text (terminals), md (else) or json.", show_default=False)
    ] = "",
    results: ExistingResults = RESULTS,
) -> None:
    """Fail if a metric dropped below a baseline.

    The exit code is 1 if a metric dropped significantly and beyond the tolerance, or if a condition is missing. Both
    files are written whatever the exit code; if nothing could be checked, they hold the error.
    """
    from tfstudy.report.markup import json_text
    from tfstudy.report.regression import check_study
    from tfstudy.report.terminal import show_lines
    from tfstudy.report.verdict_lines import check_lines
    from tfstudy.runs.files import write_atomically
    from tfstudy.tasks.errors import UserError, one_of

    format_ = one_of("format", format_ or ("text" if sys.stdout.isatty() else "md"), ("text", "md", "json"))
    outcome = check_study(study_folder(results, study), against, tolerance, partial)
    if format_ == "text":
        show_lines(check_lines(outcome.markdown.partition("\n")[0].strip("*"), outcome.rows))
    elif format_ == "json":
        print(json_text({"failed": outcome.failed, "tolerance": tolerance, "conditions": outcome.rows}), end="")
    else:
        print(outcome.markdown)
    try:
        if junit:
            write_atomically(junit, outcome.junit)
        if summary:
            with summary.open("a", encoding="utf-8") as file:
                file.write(outcome.markdown + "\n")
    except OSError as error:  # exit code 1 would mean that a metric dropped
        raise UserError(f"can't write {file_error(error)}") from None
    raise typer.Exit(int(outcome.failed))
