"""The commands that show a study: its progress, plots and report."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.app import app
from tfstudy.cli.options import (
    RESULTS,
    Baseline,
    ExistingResults,
    Metric,
    OneStudy,
    StudyName,
    complete_study,
    some_path,
)
from tfstudy.cli.output import Format, is_json, print_json


@app.command()
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


@app.command()
def plot(
    out: Annotated[Path, typer.Option(parser=some_path, metavar="PATH", help="Image file: .png, .svg or .pdf.")],
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STUDY",
            help="Studies: folders within the results; the folder of results itself for all.",
            autocompletion=complete_study,
        ),
    ] = None,
    kind: Annotated[str, typer.Option(help="Kind of plot, listed above.")] = "split",
    task: Annotated[str, typer.Option(metavar="NAME,...", help="Only the runs of these tasks.")] = "",
    split: Annotated[str, typer.Option(metavar="NAME,...", help="Only the runs of these split schemes.")] = "",
    tag: Annotated[str, typer.Option(help="With --kind slices: a tag, such as length.")] = "",
    width: Annotated[str, typer.Option(help="column (3.35 in) or page (6.9 in), for print.")] = "",
    results: ExistingResults = RESULTS,
) -> None:
    """Plot the finished runs of one or more studies.

    split: each test set, with published figures. length: accuracy by length. learning: training and validation by
    step. data, scaling: by training examples or parameters, with a fitted line. settings: each setting on each test
    set. differences: pairwise comparisons. errors: kinds of wrong predictions. slices: accuracy by the values of a tag.
    """
    from tfstudy.report import plots
    from tfstudy.runs.find import study_folder

    folders = [study_folder(study, results) for study in studies or [""]]
    plots.save_plot(folders, kind, out, plots.Selection(tag, task, split, width))
    print(out)


@app.command()
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
    from tfstudy.runs.find import study_folder

    check_folder(out)
    runs = read_finished_runs(study_folder(study, results))
    path, page = publish(runs, out, study_claims(runs), metric, baseline)
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB): {page.counts}")
    for line in page.left_out:
        print(line)
