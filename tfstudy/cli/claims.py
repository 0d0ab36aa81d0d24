"""The commands that compare results with claims and with papers."""

from typing import Annotated

import typer

from tfstudy.cli import completion
from tfstudy.cli.options import RESULTS, STUDY, Results, app, existing_results
from tfstudy.cli.output import DocumentFormat, document_format, print_json


@app.command(rich_help_panel=STUDY)
def claims(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Claims, such as L2 (default: all).")] = None,
    format_: DocumentFormat = "",
    results: Results = RESULTS,
) -> None:
    """Judge claims by the finished runs.

    Each claim is supported, refuted, mixed, undecided or not run; the evidence is listed.
    """
    from tfstudy.report.claims import FORMATS, judged_claims
    from tfstudy.report.terminal import show_lines
    from tfstudy.report.verdict_lines import claim_lines

    format_ = document_format(format_, ("text", *FORMATS))
    names = [name for text in ids or [] for name in text.replace(",", " ").split() or [text]]
    verdicts, notes = judged_claims(results, names)
    if format_ == "text":
        show_lines(claim_lines(verdicts, notes, details=bool(names)))
    else:
        print(FORMATS[format_](verdicts, notes), end="")


@app.command(rich_help_panel=STUDY)
def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            metavar="PAPER", help="Paper, such as lake-2018 (default: list all).", autocompletion=completion.paper
        ),
    ] = "",
    run: Annotated[bool, typer.Option("--run", help="First run the grid with the name of the paper.")] = False,
    tier: Annotated[str, typer.Option(help="With --run: named size of the grid, such as quick.")] = "",
    within: Annotated[float, typer.Option(min=0.1, help="Tolerance in percentage points.")] = 5.0,
    format_: DocumentFormat = "",
    results: Results = RESULTS,
) -> None:
    """Compare the finished runs with the figures of a paper.

    A figure agrees, differs or is undecided if runs of its own settings are finished. Otherwise it was not run, was run
    with other settings, or has no counterpart in tfstudy.
    """
    from tfstudy.analysis.published import figures_of
    from tfstudy.errors import UserError
    from tfstudy.report import reproduction

    if not paper:
        if format_ == "json":
            print_json(reproduction.paper_values())
        else:
            print("\n".join(reproduction.paper_lines()))
        return
    figures_of(paper)  # checks the name
    format_ = document_format(format_, reproduction.FORMATS)
    if tier and not run:
        raise UserError("--tier needs --run")
    if run:
        from tfstudy.console.grids import run_paper_grid

        if code := run_paper_grid(paper, tier, results):
            raise typer.Exit(code)
    existing_results(results)
    print(reproduction.reproduction_text(results, paper, within, format_), end="")
