"""The commands for finished runs: their results, predictions, evaluations and errors."""

from typing import Annotated

import typer

from tfstudy.cli.options import INSPECT, RESULTS, ExistingResults, Online, Results, Run, announce, app


@app.command(rich_help_panel=INSPECT)
def result(
    run: Run,
    by: Annotated[str, typer.Option(metavar="TAG", help="Also show each value of a tag, such as length.")] = "",
    results: Results = RESULTS,
) -> None:
    """Show the results of a finished run.

    These are the metrics of each test set and the published results.
    """
    from tfstudy.report.run_summary import show
    from tfstudy.runs.find import find_run
    from tfstudy.runs.reader import read_result

    show(read_result(find_run(results, run)), by)


@app.command(rich_help_panel=INSPECT)
def predict(
    run: Run,
    source: Annotated[str, typer.Argument(help="Source sequence, tokens separated by spaces.")],
    online: Online = False,
    results: Results = RESULTS,
) -> None:
    """Print the output of a finished run for one source."""
    from tfstudy.runs.find import find_run

    path = find_run(results, run)
    announce(f"{path}: loading PyTorch ...")
    from tfstudy.experiment.finished import load

    print(load(path, online=online).predict(source))


@app.command(rich_help_panel=INSPECT)
def evaluate(
    run: Run,
    test_set: Annotated[list[str] | None, typer.Option(help="Test set to evaluate; repeatable (default: all).")] = None,
    extend: Annotated[bool, typer.Option("--extend", help="Evaluate on new examples of increasing length.")] = False,
    max_length: Annotated[int, typer.Option(min=1, max=10000, help="With --extend: maximum length.")] = 500,
    online: Online = False,
    results: Results = RESULTS,
) -> None:
    """Decode and score a finished run again.

    Each evaluation of a test set is counted.
    """
    from tfstudy.runs.find import find_run
    from tfstudy.tasks.errors import UserError

    if extend and test_set:
        raise UserError("--extend generates new examples, so it can't be combined with --test-set")
    path = find_run(results, run)
    announce(f"{path}: loading PyTorch ...")
    from tfstudy.experiment.finished import load
    from tfstudy.report.run_summary import length_lines, show

    finished = load(path, online=online)
    if extend:
        print("\n".join(length_lines(finished.evaluate_longer(max_length))))
    else:
        show(finished.evaluate(test_set or []))


@app.command(rich_help_panel=INSPECT)
def errors(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs: folders or hash prefixes.")],
    test_set: Annotated[str, typer.Option(help="Test set whose predictions are read.")] = "test",
    examples: Annotated[int, typer.Option(min=0, help="Number of examples of each kind.")] = 2,
    results: ExistingResults = RESULTS,
) -> None:
    """Count the wrong predictions of runs by kind.

    For several runs, also list examples that only one model solves.
    """
    from tfstudy.report.error_examples import error_kind_lines, solved_by_lines
    from tfstudy.runs.find import find_run

    paths = [find_run(results, run) for run in runs]
    for path in paths:
        print("\n".join(error_kind_lines(path, test_set, examples)), end="\n\n")
    if len(paths) > 1:
        print("\n".join(solved_by_lines(paths, test_set, examples)))
