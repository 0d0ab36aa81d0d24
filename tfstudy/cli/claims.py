"""The commands that set records against what is claimed, and against what papers report."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.options import RESULTS, Results, app

Format = Annotated[str, typer.Option("--format", help="md or json.")]


@app.command()
def claims(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Claims, such as L2; all without.")] = None,
    format_: Format = "md",
    results: Results = RESULTS,
) -> None:
    """Judge claims by what finished runs measured: supported, refuted, undecided or not run, and the evidence."""
    from tasks.errors import one_of
    from tfstudy.analysis import claims, statements
    from tfstudy.analysis.collection import read
    from tfstudy.report.claims import FORMATS

    write = FORMATS[one_of("--format", format_, FORMATS)]
    chosen = statements.chosen(statements.read(), ids or [])
    study = read(results)
    rows = claims.rows_of(chosen, study.runs)
    print(write([claims.judge(claim, rows) for claim in chosen], study.told()), end="")


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(metavar="[PAPER]", help="Such as lake-2018; all are listed without.")] = "",
    run: Annotated[bool, typer.Option("--run", help="First make the runs, by the grid of the paper's name.")] = False,
    tier: Annotated[str, typer.Option(help="With --run: a size of that grid, such as quick.")] = "",
    within: Annotated[float, typer.Option(min=0.1, help="Points up to which figures agree.")] = 5.0,
    format_: Format = "md",
    results: Results = RESULTS,
) -> None:
    """Set a paper's figures beside ours: agrees, differs, underpowered, or not run."""
    from tasks.errors import UserError, one_of
    from tfstudy.analysis import reproduction as reproduction
    from tfstudy.analysis.collection import read
    from tfstudy.analysis.conditions import conditions
    from tfstudy.report.reproduction import FORMATS

    if not paper:
        for name, figures in sorted(reproduction.papers().items()):
            print(f"{name:18}{len(figures):3} figures  {figures[0]['paper']}")
        return
    write = FORMATS[one_of("--format", format_, FORMATS)]
    reproduction.paper(paper)
    if tier and not run:
        raise UserError("--tier goes with --run")
    if run:
        make(paper, tier, results)
    study = read(results)
    found = reproduction.compare(paper, conditions(study.runs), within)
    print(write(found, within, reproduction.command(paper), study.told()), end="")


def make(paper: str, tier: str, results: Path) -> None:
    """Makes the runs of the paper's grid; ends the command as the grid does, if any of them failed."""
    from tasks.errors import one_of
    from tfstudy.cli.grids import grid
    from tfstudy.grids.expand import names

    try:
        grid(one_of("--run needs a grid of the paper's name; grid", paper, names()), tier=tier, results=results)
    except typer.Exit as ended:
        if ended.exit_code:
            raise
