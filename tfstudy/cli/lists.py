"""The commands that list what is available, and export data."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.command_line import app
from tfstudy.cli.options import RESULTS, Results, Split, TaskName, existing_results, some_path
from tfstudy.cli.output import Format, is_json, print_json
from tfstudy.errors import one_of, path_of


@app.command("list")
def list_(
    what: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="tasks, splits, architectures, instruments, presets, grids, runs or corpora."
        ),
    ] = "",
    of: Annotated[
        str, typer.Argument(metavar="OF", help="Task (splits, presets), study (runs), folder (corpora).")
    ] = "",
    format_: Format = "text",
    results: Results = RESULTS,
) -> None:
    """List tasks, presets, grids, runs and more.

    Alone it shows the kinds of lists. corpora shows the corpora of a folder with their files.
    """
    from tfstudy.report.lists import KINDS, LISTS, list_lines
    from tfstudy.report.terminal import show_lines
    from tfstudy.runs.find import find_study

    as_json = is_json(format_)
    if what:
        one_of("kind of list", what, (*LISTS, "corpora"))
    if what != "corpora":
        root = existing_results(results) if what == "runs" else Path()
        folder = find_study(root, of) if of and what == "runs" else root
        rows = LISTS[what](folder if what == "runs" else of or "scan") if what else KINDS
        if as_json:
            print_json(rows)
        else:
            show_lines(list_lines(what, rows))
        return
    from tfstudy.tasks.reading import corpora

    found = corpora(path_of(of or ".", "corpora"))
    if as_json:
        print_json([{"name": name, "files": files} for name, files in found.items()])
    else:
        show_lines(f"{name}  {' '.join(files)}" for name, files in found.items())


@app.command()
def export(
    task: TaskName,
    out: Annotated[Path, typer.Option(parser=some_path, metavar="PATH", help="New folder for the files.")],
    split: Split = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting of the data: data.train_examples=500."),
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="jsonl or parquet.")] = "jsonl",
) -> None:
    """Write the examples of a task as JSON lines or Parquet.

    `datasets.load_dataset` reads these files.
    """
    from tfstudy.config.resolve import overrides, resolve_data
    from tfstudy.tasks.base import write_examples

    settings = overrides([*(set_ or []), *([f"data.split={split}"] if split else [])])
    for path in write_examples(resolve_data(task, settings), out, format_):
        print(path)
