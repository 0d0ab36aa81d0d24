"""The commands that list and export what there is."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.options import RESULTS, Results, Set, Split, TaskName, app


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="tasks, splits, architectures, presets or runs.")] = "tasks",
    task: Annotated[str, typer.Argument(metavar="[TASK]", help="For splits and presets: of which task.")] = "scan",
    results: Results = RESULTS,
) -> None:
    """List what there is."""
    from tasks import errors

    errors.one_of("what to list", what, LISTS)
    for line in LISTS[what](task, results):
        print(line)


def _tasks(_: str, __: Path) -> list[str]:
    import inspect
    import textwrap

    import tasks

    lines = []
    for name in tasks.names():
        text = (inspect.getdoc(sys.modules[tasks.find(name).__module__]) or "").split("\n\n")
        example = textwrap.dedent("".join(text[1:2])).splitlines()
        lines += [f"{name:14}{text[0]}", *(f"{'':14}{line}" for line in example)]
        lines.append(f"{'':14}splits: {', '.join(tasks.find(name).experiments())}")
    return lines


def _splits(task: str, _: Path) -> list[str]:
    import tasks

    return [f"{name:42}{text}" for name, text in tasks.find(task).experiments().items()]


def _architectures(_: str, __: Path) -> list[str]:
    from tfstudy import models

    return [f"{name:14}{(models.find(name).__doc__ or '').splitlines()[0]}" for name in models.names()]


def _presets(task: str, _: Path) -> list[str]:
    import tasks
    from tfstudy.config.presets import presets

    tasks.find(task)
    return [
        f"{name:16}{arch:14}{tree.get('about', '')}"
        for name, archs in presets(task).items()
        for arch, tree in archs.items()
    ]


def _runs(_: str, results: Path) -> list[str]:
    from tfstudy.runs.reader import describe_run, find_runs

    return [describe_run(path) for path in find_runs(results)]


LISTS = {"tasks": _tasks, "splits": _splits, "architectures": _architectures, "presets": _presets, "runs": _runs}


@app.command()
def export(
    task: TaskName,
    out: Annotated[Path, typer.Option(help="A folder that is not there yet.")],
    split: Split = None,
    set_: Set = None,
    form: Annotated[str, typer.Option("--format", help="jsonl or parquet.")] = "jsonl",
) -> None:
    """Write a task's splits as files that `datasets.load_dataset` reads."""
    from tasks.base import write_datasets
    from tfstudy.config.resolve import overrides, resolve_data

    chosen = overrides([*(set_ or []), *([f"data.split={split}"] if split else [])])
    for path in write_datasets(resolve_data(task, chosen), out, form):
        print(path)
