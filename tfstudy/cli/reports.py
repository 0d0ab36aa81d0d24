"""The commands that read the records of a study."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.options import RESULTS, Results, app


@app.command()
def table(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A study, a folder within the results.")] = "runs",
    results: Results = RESULTS,
) -> None:
    """Print a study's finished runs as a Markdown table, beside published figures."""
    from tfstudy.report.table import markdown

    print(markdown(results / study), end="")


@app.command()
def plot(
    out: Annotated[Path, typer.Option(help="The picture's file: .png, .svg or .pdf.")],
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A study, a folder within the results.")] = "runs",
    by: Annotated[str, typer.Option(help="split: a point a seed, beside published figures; length: curves.")] = "split",
    results: Results = RESULTS,
) -> None:
    """Draw a study's exact match by split and architecture, or by length."""
    from tasks import base
    from tfstudy.report import plots

    draw = {"split": plots.by_split, "length": plots.by_length}[base.one_of("--by", by, ("split", "length"))]
    draw(results / study, out)
    print(out)


@app.command()
def errors(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs: folders, or the starts of their hashes.")],
    split: Annotated[str, typer.Option(help="The split whose predictions are read.")] = "test",
    examples: Annotated[int, typer.Option(min=0, help="Of each kind of error, and of each group.")] = 2,
    results: Results = RESULTS,
) -> None:
    """Sort a run's wrong predictions by kind; of several runs also tell who alone gets what right."""
    from tfstudy.report.mistakes import agreeing, kinds
    from tfstudy.runs import find_run

    paths = [find_run(results, run) for run in runs]
    for path in paths:
        print("\n".join(kinds(path, split, examples)), end="\n\n")
    if len(paths) > 1:
        print("\n".join(agreeing(paths, split, examples)))
