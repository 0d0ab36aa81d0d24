"""The command that plots a study."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli import completion
from tfstudy.cli.options import RESULTS, STUDY, ExistingResults, app, some_path


@app.command(rich_help_panel=STUDY)
def plot(
    out: Annotated[Path, typer.Option(parser=some_path, metavar="PATH", help="Image file: .png, .svg or .pdf.")],
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STUDY",
            help="Studies: folders within the results; the folder of results itself for all.",
            autocompletion=completion.study,
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
    from tfstudy.runs.find import one_study

    folders = [one_study(study, results) for study in studies or [""]]
    plots.save_plot(folders, kind, out, plots.Selection(tag, task, split, width))
    print(out)
