"""The commands that show a study: its progress, table, plots, claims, report, and a check against a saved table."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli import options as opt
from tfstudy.cli.command_line import app
from tfstudy.cli.output import document_format, listing_format, print_listing
from tfstudy.errors import UserError, one_of


@app.command()
def status(
    study: opt.StudyName = "",
    format_: opt.Format = "text",
    results: opt.Results = opt.RESULTS,
) -> None:
    """Show the progress of one study, or of all studies."""
    from tfstudy.report import progress
    from tfstudy.runs.find import study_folder

    format_ = listing_format(format_)
    folder = study_folder(study, results, several=True)
    print_listing(progress.status(results, folder if folder != results else None), format_)


@app.command()
def table(
    study: opt.OneStudy = "",
    by: Annotated[str, opt.option(metavar="TAG", help="A row for each value of a tag, such as length.")] = "",
    metric: opt.Metric = "",
    baseline: opt.Baseline = "",
    runs: Annotated[bool, opt.option("--runs", help="Each run and test set with its settings: csv or json.")] = False,
    notes: Annotated[bool, opt.option("--notes", help="All notes on how the numbers were obtained.")] = False,
    format_: Annotated[
        str, opt.option("--format", metavar="NAME", help="text (terminals), md (else), csv, tex, html, json or bib.")
    ] = "",
    results: opt.Results = opt.RESULTS,
) -> None:
    """Print the results of a study as a table.

    A row for each condition, a column for each test set: the mean over seeds with its interval, letters that say which
    conditions differ, and published results.
    """
    from tfstudy.report import tables

    if runs:
        from tfstudy.report.lists import each_run

        if any((by, metric, baseline, notes)):
            raise UserError("--runs has all metrics and settings of each run; only --format and --results go with it")
        print(each_run(study, results, one_of("format", format_ or "csv", ("csv", "json"))), end="")
        return
    name = document_format(format_, tables.FORMATS)
    found = tables.table(study, by=by, metric=metric, baseline=baseline, results=results)
    if name == "text":
        print_listing(found.listing(name, notes), name)
    else:
        print(found.render(name, notes), end="")


@app.command()
def plot(
    out: Annotated[Path, opt.path_option("Image file: .png, .svg or .pdf.")],
    studies: Annotated[
        list[str] | None,
        opt.argument("STUDY", "Studies: folders within the results; the folder of results itself for all."),
    ] = None,
    kind: Annotated[str, opt.option(metavar="NAME", help="Kind of plot, listed above (split).")] = "split",
    task: Annotated[str, opt.option(metavar="NAME,...", help="Only the runs of these tasks.")] = "",
    tag: Annotated[str, opt.option(metavar="TAG", help="With --kind slices: a tag, such as length.")] = "",
    results: opt.Results = opt.RESULTS,
) -> None:
    """Plot the finished runs of one or more studies.

    split: each test set, with published figures. length: accuracy by length. learning: training and validation by
    step. data: by training examples, with a fitted line. settings: each setting on each test set, a heat map.
    differences: pairwise comparisons. errors: kinds of wrong predictions. slices: accuracy by the values of a tag.
    """
    from tfstudy.report import plots
    from tfstudy.runs.find import study_folder

    folders = [study_folder(study, results) for study in studies or [""]]
    left_out = plots.save_plot(folders, kind, out, tag, task)
    print(out, *left_out, sep="\n")


@app.command()
def claims(
    ids: Annotated[list[str] | None, opt.argument("ID", "Claims, such as L2 (default: all).")] = None,
    format_: opt.DocumentFormat = "",
    results: opt.Results = opt.RESULTS,
) -> None:
    """Judge claims by the finished runs.

    The statements of each claim are supported, refuted, open or not run; the evidence is one sentence.
    """
    from tfstudy.report.claims import judged_claims, listing, markdown

    format_ = document_format(format_)
    names = [name for text in ids or [] for name in text.replace(",", " ").split() or [text]]
    verdicts, notes = judged_claims(results, names)
    if format_ == "md":  # with the evidence in sections
        print(markdown(verdicts, notes), end="")
    else:
        print_listing(listing(verdicts, notes, details=bool(names)), format_)


@app.command()
def check(
    against: Annotated[Path, opt.path_option("Baseline: tfstudy table STUDY --format json > FILE.")],
    study: opt.OneStudy = "",
    tolerance: Annotated[float, opt.option(min=0, metavar="N", help="Allowed drop in percentage points (1).")] = 1.0,
    format_: opt.DocumentFormat = "",
    results: opt.Results = opt.RESULTS,
) -> None:
    """Fail if a metric dropped below a baseline.

    The exit code is 1 if a metric dropped significantly and beyond the tolerance, or if a condition or some of its
    seeds are missing, and 2 if no condition could be tested.
    """
    from tfstudy.report.comparisons import check_study
    from tfstudy.runs.find import study_folder

    format_ = document_format(format_)
    found, failed = check_study(study_folder(study, results), against, tolerance)
    print_listing(found, format_)
    raise typer.Exit(int(failed))


@app.command()
def report(
    out: Annotated[Path, opt.path_option("Folder for index.html.")],
    study: opt.OneStudy = "",
    metric: opt.Metric = "",
    baseline: opt.Baseline = "",
    results: opt.Results = opt.RESULTS,
) -> None:
    """Write the report of a study as HTML.

    It opens with the verdict and the main figure; tables, comparisons, figures, claims and the runs follow. The page
    needs no other file and no network. Other files in the folder stay as they are; a folder with an index.html from
    something else is refused.
    """
    from tfstudy.analysis.frame import read_finished_runs
    from tfstudy.report.claims import study_claims
    from tfstudy.report.page import check_folder, write_report
    from tfstudy.runs.find import study_folder

    check_folder(out)
    runs = read_finished_runs(study_folder(study, results))
    page = write_report(runs, out, study_claims(runs), metric, baseline)
    path = out / "index.html"
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB): {page.counts}")
    for line in page.left_out:
        print(line)
