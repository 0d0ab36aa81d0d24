"""The command that plots a study."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.options import RESULTS, Results, StudyName, app, study_folder

KINDS = "split, length, learning, operands, data, scaling, differences, errors, slices"


@app.command()
def plot(
    out: Annotated[Path, typer.Option(help="Image file: .png, .svg or .pdf.")],
    study: StudyName = "",
    kind: Annotated[str, typer.Option(help="Kind of plot, listed above.")] = "split",
    tag: Annotated[str, typer.Option(help="With --kind slices: a tag, such as length.")] = "",
    results: Results = RESULTS,
) -> None:
    """Plot the finished runs of a study.

    split: each test set, with published results. length: accuracy by length. learning: losses by step. operands:
    correct sums by number of digits. data, scaling: by training examples or parameters, with a fitted line.
    differences: pairwise comparisons. errors: kinds of wrong predictions. slices: accuracy by the values of a tag.
    """
    from tfstudy.report import plots

    plots.save_plot(study_folder(results, study), kind, out, tag)
    print(out)
