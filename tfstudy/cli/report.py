"""The command that writes a study's report."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.options import RESULTS, Results, StudyName, app, folder


@app.command()
def report(
    out: Annotated[Path, typer.Option(help="The folder of the report: index.html, report.md and figures/*.svg.")],
    study: StudyName = "",
    metric: Annotated[str, typer.Option(help="exact_match, or what else was measured; BLEU for translation.")] = "",
    baseline: Annotated[str, typer.Option(help="An architecture, or a row's, to set the others against.")] = "",
    results: Results = RESULTS,
) -> None:
    """Write a study as a page for a browser: verdicts, table, figures, errors and protocol. All without STUDY.

    The page needs no other file and no network. Other files of the folder are left alone; one that has an index.html
    or report.md of something else is refused.
    """
    from tfstudy.analysis.collection import read_finished
    from tfstudy.report.html_page import check, publish
    from tfstudy.report.study_claims import claims_of

    check(out)
    found = read_finished(folder(results, study))
    path, made = publish(found, out, claims_of(found), metric, baseline)
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB): {made.counts}")
    for line in made.left_out:
        print(line)
