"""The command that compares results with a baseline, for continuous integration."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfstudy.cli.app import app
from tfstudy.cli.options import RESULTS, ExistingResults, OneStudy, some_path
from tfstudy.cli.output import DocumentFormat, document_format, print_json

if TYPE_CHECKING:
    from tfstudy.report.baseline import Check


@app.command()
def check(
    against: Annotated[
        Path, typer.Option(parser=some_path, metavar="PATH", help="Baseline: tfstudy table STUDY --format json > FILE.")
    ],
    study: OneStudy = "",
    tolerance: Annotated[float, typer.Option(min=0, help="Allowed drop in percentage points.")] = 1.0,
    format_: DocumentFormat = "",
    results: ExistingResults = RESULTS,
) -> None:
    """Fail if a metric dropped below a baseline.

    The exit code is 1 if a metric dropped significantly and beyond the tolerance, or if a condition or some of its
    seeds are missing, and 2 if no condition could be tested.
    """
    from tfstudy.report.baseline import check_study
    from tfstudy.runs.find import study_folder

    format_ = document_format(format_, ("text", "md", "json"))
    outcome = check_study(study_folder(study, results), against, tolerance)
    _show(outcome, tolerance, format_)
    raise typer.Exit(int(outcome.failed))


def _show(outcome: "Check", tolerance: float, format_: str) -> None:
    """Print a check in one of the formats."""
    from tfstudy.report.baseline import check_lines, outcome_values
    from tfstudy.report.terminal import show_lines

    if format_ == "text":
        show_lines(check_lines(outcome.headline, outcome.outcomes))
    elif format_ == "json":
        conditions = [outcome_values(one) for one in outcome.outcomes]
        print_json({"failed": outcome.failed, "tolerance": tolerance, "conditions": conditions})
    else:
        print(outcome.markdown)
