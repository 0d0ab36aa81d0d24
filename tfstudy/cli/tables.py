"""The commands that read the records of a study."""

from typing import Annotated

import typer

from tfstudy.cli.options import RESULTS, Results, StudyName, app, folder


@app.command()
def table(
    study: StudyName = "",
    by: Annotated[str, typer.Option(metavar="NAME,...", help="Order by task, split, arch, preset or a tag.")] = "",
    metric: Annotated[str, typer.Option(help="exact_match, or what else was measured; BLEU for translation.")] = "",
    baseline: Annotated[str, typer.Option(help="An architecture, or a row's, to set the others against.")] = "",
    format_: Annotated[str, typer.Option("--format", help="md, csv, tex, html or json.")] = "md",
    results: Results = RESULTS,
) -> None:
    """Print a study's finished runs as a table: intervals, which rows differ, published figures. All without STUDY."""
    from tasks.errors import one_of
    from tfstudy.report import tables
    from tfstudy.report.markup import FORMATS

    write = FORMATS[one_of("--format", format_, tuple(FORMATS))]
    print(write(tables.table(folder(results, study), by, metric, baseline)), end="")


@app.command()
def errors(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs: folders, or the starts of their hashes.")],
    split: Annotated[str, typer.Option(help="The split whose predictions are read.")] = "test",
    examples: Annotated[int, typer.Option(min=0, help="Of each kind of error, and of each group.")] = 2,
    results: Results = RESULTS,
) -> None:
    """Sort a run's wrong predictions by kind; of several runs also tell who alone gets what right."""
    from tfstudy.report.error_examples import agreeing, kinds
    from tfstudy.runs.reader import find_run

    paths = [find_run(results, run) for run in runs]
    for path in paths:
        print("\n".join(kinds(path, split, examples)), end="\n\n")
    if len(paths) > 1:
        print("\n".join(agreeing(paths, split, examples)))
