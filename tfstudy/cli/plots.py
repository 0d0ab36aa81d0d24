"""The command that draws a study."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.options import RESULTS, Results, StudyName, app, folder

KINDS = "split, length, learning, operands, data, scaling, differences, errors, or slices with --tag"


@app.command()
def plot(
    out: Annotated[Path, typer.Option(help="The picture's file: .png, .svg or .pdf.")],
    study: StudyName = "",
    kind: Annotated[str, typer.Option(help=f"What to draw: {KINDS}.")] = "split",
    tag: Annotated[str, typer.Option(help="What slices are by, such as length.")] = "",
    results: Results = RESULTS,
) -> None:
    """Draw a study's finished runs: by split, length, step, size, difference, kind of error or tag. All without STUDY.

    split: each test split, beside published figures. length: curves over lengths. learning: losses over steps.
    operands: right sums by digits. data, scaling: over training examples and parameters, with a fit. differences:
    which rows differ. errors: kinds of wrong predictions. slices: bars by a tag.
    """
    from tfstudy.report import plots

    plots.draw(folder(results, study), kind, out, tag)
    print(out)
