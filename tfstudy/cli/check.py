"""The command by which CI catches a drop."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.options import RESULTS, Results, StudyName, app, folder, reason


@app.command()
def check(
    against: Annotated[Path, typer.Option(help="A kept table: `tfstudy table STUDY --format json > FILE`.")],
    study: StudyName = "",
    tolerance: Annotated[float, typer.Option(min=0, help="Points that a figure may fall by.")] = 1.0,
    junit: Annotated[Path | None, typer.Option(help="Also write JUnit XML to this file.")] = None,
    summary: Annotated[Path | None, typer.Option(help="Also add the Markdown to this file.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="A row that is missing is no failure.")] = False,
    results: Results = RESULTS,
) -> None:
    """Exit with 1 if a figure of a study fell, significantly and by more than the tolerance, or is gone."""
    from tasks.errors import UserError
    from tfstudy.analysis import regression
    from tfstudy.analysis.collection import read
    from tfstudy.analysis.conditions import conditions
    from tfstudy.report import regression as report
    from tfstudy.runs.files import write_whole

    baseline = regression.read_baseline(against)
    found = read(folder(results, study))
    outcomes = regression.judge(
        baseline, conditions(found.runs, baseline[0].tag), tolerance
    )  # a table has one tag for all
    text = "\n".join([report.markdown(outcomes, tolerance), *(f"- {line}" for line in found.told())])
    failing = (regression.WORSE,) if partial else (regression.WORSE, regression.MISSING)
    print(text)
    try:
        if junit:
            write_whole(junit, report.junit(outcomes, tolerance, failing))
        if summary:
            with summary.open("a", encoding="utf-8") as file:
                file.write(text + "\n")
    except OSError as error:  # exit code 1 would mean that a figure fell
        raise UserError(f"can't write {reason(error)}") from None
    raise typer.Exit(any(outcome.state in failing for outcome in outcomes))
