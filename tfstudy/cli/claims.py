"""The commands that compare results with claims and with papers."""

import sys
from typing import Annotated

import typer

from tfstudy.cli import completion
from tfstudy.cli.options import RESULTS, STUDY, Results, app, existing_results

Format = Annotated[str, typer.Option("--format", help="text (terminals), md (else) or json.", show_default=False)]


@app.command(rich_help_panel=STUDY)
def claims(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Claims, such as L2 (default: all).")] = None,
    format_: Format = "",
    results: Results = RESULTS,
) -> None:
    """Judge claims by the finished runs.

    Each claim is supported, refuted, mixed, undecided or not run; the evidence is listed.
    """
    from tfstudy.report.claims import claims_text, claims_tree
    from tfstudy.report.terminal import show_lines
    from tfstudy.report.verdict_lines import claim_lines
    from tfstudy.tasks.errors import one_of

    names = [name for text in ids or [] for name in text.replace(",", " ").split() or [text]]
    if one_of("format", format_ or ("text" if sys.stdout.isatty() else "md"), ("text", "md", "json")) == "text":
        show_lines(claim_lines(claims_tree(results, names), details=bool(names)))
    else:
        print(claims_text(results, names, format_ or "md"), end="")


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
    format_: Annotated[
        str, typer.Option("--format", help="text (terminals), md (else) or json.", show_default=False)
    ] = "",
    results: Results = RESULTS,
) -> None:
    """Compare the finished runs with the figures of a paper.

    A figure agrees, differs or is undecided if runs of its own settings are finished. Otherwise it was not run, was run
    with other settings, or has no counterpart in tfstudy.
    """
    from tfstudy.report import reproduction
    from tfstudy.report.markup import json_text
    from tfstudy.tasks.errors import UserError

    if not paper:
        if format_ == "json":
            print(json_text(reproduction.paper_values()), end="")
        else:
            print("\n".join(reproduction.paper_lines()))
        return
    format_ = format_ or ("text" if sys.stdout.isatty() else "md")
    reproduction.check_request(paper, format_)
    if tier and not run:
        raise UserError("--tier needs --run")
    if run:
        from tfstudy.report.grid_console import run_paper_grid

        if code := run_paper_grid(paper, tier, results):
            raise typer.Exit(code)
    existing_results(results)
    print(reproduction.reproduction_text(results, paper, within, format_), end="")
