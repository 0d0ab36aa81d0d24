"""The commands that list what is available, and export data."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfstudy.cli.options import RESULTS, RUN, SHARE, Results, Set, Split, TaskName, app, existing_results, some_path

if TYPE_CHECKING:
    from tfstudy.tasks.plugins import Plugin


@app.command("list", rich_help_panel=RUN)
def list_(
    what: Annotated[
        str, typer.Argument(help="tasks, splits, architectures, presets, grids, runs or corpora.")
    ] = "tasks",
    of: Annotated[str, typer.Argument(metavar="[TASK|FOLDER]", help="Task (splits, presets); folder (corpora).")] = "",
    results: Results = RESULTS,
) -> None:
    """List tasks, corpora, presets, runs and more."""
    from tfstudy.tasks.errors import one_of

    lines = LISTS[one_of("kind of list", what, LISTS)]
    for line in lines(of or ("." if what == "corpora" else "scan"), results):
        print(line)


def _tasks(_: str, __: Path) -> list[str]:
    import inspect
    import sys
    import textwrap

    from tfstudy import tasks
    from tfstudy.tasks.errors import UserError

    lines = []
    for name in tasks.names():
        try:
            kind, origin = tasks.find(name), _origin(tasks.plugin(name))
        except UserError as error:
            lines.append(f"{name:14}broken: {error}")
            continue
        paragraphs = (inspect.getdoc(sys.modules[kind.__module__]) or "").split("\n\n")
        example = textwrap.dedent("".join(paragraphs[1:2])).splitlines()
        lines += [f"{name:14}{paragraphs[0]}", *(f"{'':14}{line}" for line in example)]
        lines.append(f"{'':14}splits: {', '.join(kind.split_schemes())}")
        lines += [f"{'':14}{origin}"] if origin else []
    return lines


def _origin(plugin: "Plugin | None") -> str:
    """Where a plug-in is from; empty for what is built in."""
    return f"plug-in: {plugin.origin}" if plugin else ""


def _splits(task: str, _: Path) -> list[str]:
    from tfstudy import tasks

    return [f"{name:42}{text}" for name, text in tasks.find(task).split_schemes().items()]


def _architectures(_: str, __: Path) -> list[str]:
    from tfstudy import models
    from tfstudy.tasks.errors import UserError

    lines = []
    for name in models.names():
        try:
            kind, origin = models.find(name), _origin(models.plugin(name))
        except UserError as error:
            lines.append(f"{name:14}broken: {error}")
            continue
        lines.append(f"{name:14}{(kind.__doc__ or '').strip().splitlines()[0]}")
        lines += [f"{'':14}{origin}"] if origin else []
    return lines


def _presets(task: str, _: Path) -> list[str]:
    from tfstudy import tasks
    from tfstudy.config.presets import all_presets

    tasks.find(task)
    known = all_presets(task)
    width = max(map(len, known), default=0)
    return [
        f"{name:{width}}  {arch:12}  {tree.get('about', '')}"
        for name, archs in known.items()
        for arch, tree in archs.items()
        if isinstance(tree, dict)
    ]


def _grids(_: str, __: Path) -> list[str]:
    from tfstudy.grids.spec import grid_names, read_grid

    width = max(map(len, grid_names()))
    return [f"{name:{width}}  {read_grid(name).get('about', '')}" for name in grid_names()]


def _runs(_: str, results: Path) -> list[str]:
    from tfstudy.runs.describe import describe_run
    from tfstudy.runs.find import find_runs

    return [describe_run(path) for path in find_runs(existing_results(results))]


def _corpora(folder: str, _: Path) -> Iterator[str]:
    from tfstudy.tasks.translation.listing import list_corpora

    return list_corpora(Path(folder).expanduser())


LISTS: dict[str, Callable[[str, Path], Iterable[str]]] = {
    "tasks": _tasks,
    "splits": _splits,
    "architectures": _architectures,
    "presets": _presets,
    "grids": _grids,
    "runs": _runs,
    "corpora": _corpora,
}


@app.command(rich_help_panel=SHARE)
def export(
    task: TaskName,
    out: Annotated[Path, typer.Option(parser=some_path, metavar="PATH", help="New folder for the files.")],
    split: Split = None,
    set_: Set = None,
    format_: Annotated[str, typer.Option("--format", help="jsonl or parquet.")] = "jsonl",
) -> None:
    """Write the examples of a task as JSON lines or Parquet.

    `datasets.load_dataset` reads these files.
    """
    from tfstudy.config.resolve import overrides, resolve_data
    from tfstudy.tasks.base import write_datasets

    settings = overrides([*(set_ or []), *([f"data.split={split}"] if split else [])])
    for path in write_datasets(resolve_data(task, settings), out, format_):
        print(path)
