"""The command that prints the results of a study as a table."""

import sys
from typing import Annotated

import typer

from tfstudy.cli.app import app
from tfstudy.cli.options import RESULTS, Baseline, ExistingResults, Metric, OneStudy
from tfstudy.cli.output import document_format


@app.command()
def table(
    study: OneStudy = "",
    by: Annotated[str, typer.Option(metavar="NAME,...", help="Sort by task, split, arch, preset or a tag.")] = "",
    metric: Metric = "",
    baseline: Baseline = "",
    columns: Annotated[str, typer.Option(metavar="NAME,...", help="Columns to show: arch,n,result,published.")] = "",
    seeds: Annotated[bool, typer.Option("--seeds", help="Also show the result of each seed.")] = False,
    format_: Annotated[
        str, typer.Option("--format", help="text (terminals), md (else), csv, tex, html, json, or bib for the papers.")
    ] = "",
    caption: Annotated[str, typer.Option(metavar="TEXT", help="LaTeX: caption, in plain text.")] = "",
    label: Annotated[str, typer.Option(metavar="NAME", help="LaTeX: label, such as tab:scan.")] = "",
    results: ExistingResults = RESULTS,
) -> None:
    """Print the results of a study as a table.

    One row for each condition: the mean over seeds with its interval, which conditions differ, and published results.
    """
    from tfstudy.errors import UserError
    from tfstudy.report import tables
    from tfstudy.report.table_formats import FORMATS, latex
    from tfstudy.report.table_terminal import print_table
    from tfstudy.report.terminal import Terminal
    from tfstudy.runs.find import study_folder

    name = document_format(format_, FORMATS)
    if (caption or label) and name != "tex":
        raise UserError(f"--caption and --label need --format tex, not {name}")
    if (columns or seeds) and name in ("csv", "json"):
        raise UserError(f"--columns and --seeds do not apply to --format {name}, which has all values and each seed's")
    found = tables.table(study_folder(study, results), by, metric, baseline, columns, seeds)
    if name == "text" and sys.stdout.isatty():
        print_table(found, Terminal())
    else:
        print(latex(found, caption, label) if name == "tex" else FORMATS[name](found), end="")
