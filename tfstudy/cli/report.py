"""The command that writes the report of a study."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.options import (
    RESULTS,
    SHARE,
    Baseline,
    ExistingResults,
    Metric,
    OneStudy,
    app,
    some_path,
)


@app.command(rich_help_panel=SHARE)
def report(
    out: Annotated[
        Path, typer.Option(parser=some_path, metavar="PATH", help="Folder for index.html, report.md and figures/*.svg.")
    ],
    study: OneStudy = "",
    metric: Metric = "",
    baseline: Baseline = "",
    results: ExistingResults = RESULTS,
) -> None:
    """Write the report of a study as HTML and Markdown.

    It opens with what was studied, the main figure and a verdict; tables, figures, errors, claims and the protocol
    follow. The page needs no other file and no network. Other files in the folder stay as they are; a folder with an
    index.html or report.md from something else is refused.
    """
    from tfstudy.analysis.collection import read_finished_runs
    from tfstudy.report.claims import study_claims
    from tfstudy.report.html_page import check_folder, publish
    from tfstudy.runs.find import one_study

    check_folder(out)
    runs = read_finished_runs(one_study(study, results))
    path, page = publish(runs, out, study_claims(runs), metric, baseline)
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB): {page.counts}")
    for line in page.left_out:
        print(line)
