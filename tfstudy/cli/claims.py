"""The commands that compare results with claims and with papers."""

from typing import Annotated

import typer

from tfstudy.cli.options import RESULTS, Results, app

Format = Annotated[str, typer.Option("--format", help="md or json.")]


@app.command()
def claims(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Claims, such as L2 (default: all).")
    ] = None,
    format_: Format = "md",
    results: Results = RESULTS,
) -> None:
    """Judge claims by the finished runs.

    Each claim is supported, refuted, mixed, undecided or not run; the evidence is listed.
    """
    from tasks.errors import one_of
    from tfstudy.analysis import claims, condition_selection, statements
    from tfstudy.analysis.collection import read_study
    from tfstudy.report.claims import FORMATS

    write = FORMATS[one_of("format", format_, FORMATS)]
    chosen = statements.select_claims(statements.read_claims(), ids or [])
    study = read_study(results)
    known = condition_selection.candidate_conditions(chosen, study.runs)
    print(write([claims.judge_claim(claim, known) for claim in chosen], study.left_out_notes()), end="")


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(metavar="[PAPER]", help="Paper, such as lake-2018 (default: list all).")] = "",
    run: Annotated[bool, typer.Option("--run", help="First run the grid with the name of the paper.")] = False,
    tier: Annotated[str, typer.Option(help="With --run: named size of the grid, such as quick.")] = "",
    within: Annotated[float, typer.Option(min=0.1, help="Tolerance in percentage points.")] = 5.0,
    format_: Format = "md",
    results: Results = RESULTS,
) -> None:
    """Compare the finished runs with the results of a paper.

    Each result agrees, differs, is underpowered or was not run.
    """
    from tasks.errors import UserError, one_of
    from tfstudy.analysis import reproduction
    from tfstudy.analysis.collection import read_study
    from tfstudy.analysis.conditions import conditions
    from tfstudy.report.reproduction import FORMATS

    if not paper:
        for name, figures in sorted(reproduction.papers().items()):
            print(f"{name:18}{len(figures):3} results  {figures[0]['paper']}")
        return
    write = FORMATS[one_of("format", format_, FORMATS)]
    reproduction.paper(paper)  # checks the name
    if tier and not run:
        raise UserError("--tier needs --run")
    if run:
        from tfstudy.grids.spec import grid_names, load_grid
        from tfstudy.launchers import ExecutorSettings
        from tfstudy.report.grid_console import run_grid

        spec = load_grid(one_of("grid", paper, grid_names(), "--run needs a grid with the name of the paper"), tier)
        if code := run_grid(spec, results / paper, ExecutorSettings()):
            raise typer.Exit(code)
    study = read_study(results)
    found = reproduction.compare_paper(paper, conditions(study.runs), within)
    print(write(found, within, reproduction.command(paper), study.left_out_notes()), end="")
