"""What is available: tasks, split schemes, architectures, presets, grids and runs, as rows and as lines."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from tfstudy.errors import UserError
from tfstudy.report.text_columns import coloured, columns, run_lines

if TYPE_CHECKING:
    from tfstudy.plugins import Plugin

Rows = Sequence[dict[str, Any]]
KINDS: Rows = [
    {"name": f"tfstudy list {words}", "about": about}
    for words, about in (
        ("tasks", "every task with its split schemes and examples"),
        ("splits [TASK]", "the split schemes of a task (default: scan)"),
        ("architectures", "every architecture"),
        ("instruments", "what `tfstudy measure` can measure on a run"),
        ("presets [TASK]", "the presets of a task (default: scan)"),
        ("grids", "the grids of configs/grids/"),
        ("runs [STUDY]", "the runs of a study, or all runs"),
        ("corpora [FOLDER]", "the corpora for translation in a folder"),
    )
]


def tasks_list(_: object) -> Rows:
    """Return the tasks with their examples and split schemes; a broken plug-in with its error."""
    import inspect
    import sys
    import textwrap

    from tfstudy import tasks

    rows: list[dict[str, Any]] = []
    for name in tasks.names():
        try:
            kind, origin = tasks.find(name), _origin(tasks.plugin(name))
        except UserError as error:
            rows.append({"name": name, "about": f"broken: {error}", "example": [], "splits": [], "origin": ""})
            continue
        paragraphs = (inspect.getdoc(sys.modules[kind.__module__]) or "").split("\n\n")
        example = textwrap.dedent("".join(paragraphs[1:2])).splitlines()
        about, splits = " ".join(paragraphs[0].split()), list(kind.split_schemes())
        rows.append({"name": name, "about": about, "example": example, "splits": splits, "origin": origin})
    return rows


def _origin(plugin: "Plugin | None") -> str:
    """Where a plug-in is from; empty for what is built in."""
    return f"plug-in: {plugin.origin}" if plugin else ""


def _task_lines(rows: Rows) -> Iterable[Text | str]:
    for row in rows:
        yield Text(row["name"], style="bold")
        yield from columns([("", row["about"])])
        yield from (f"    {line}" for line in row["example"])
        facts = (f"splits: {', '.join(row['splits'])}" if row["splits"] else "", row["origin"])
        yield from columns([("", fact) for fact in facts if fact])


def splits_list(task: str) -> Rows:
    """Return the split schemes of a task."""
    from tfstudy import tasks

    return [{"name": name, "about": text} for name, text in tasks.find(task).split_schemes().items()]


def architectures_list(_: object) -> Rows:
    """Return the architectures; a broken plug-in with its error."""
    from tfstudy import models

    rows = []
    for name in models.names():
        try:
            kind, origin = models.find(name), _origin(models.plugin(name))
        except UserError as error:
            rows.append({"name": name, "about": f"broken: {error}", "origin": ""})
            continue
        rows.append({"name": name, "about": (kind.__doc__ or "").strip().splitlines()[0], "origin": origin})
    return rows


def instruments_list(_: object) -> Rows:
    """Return the instruments; a broken plug-in with its error."""
    from tfstudy import instruments

    rows = []
    for name in instruments.names():
        try:
            rows.append({"name": name, "about": instruments.summary(name)})
        except UserError as error:
            rows.append({"name": name, "about": f"broken: {error}"})
    return rows


def presets_list(task: str) -> Rows:
    """Return the presets of a task, for each architecture that has them."""
    from tfstudy import tasks
    from tfstudy.config.presets import all_presets

    tasks.find(task)
    return [
        {"name": name, "arch": arch, "about": str(tree.get("about", ""))}
        for name, archs in all_presets(task).items()
        for arch, tree in archs.items()
        if isinstance(tree, dict)
    ]


def grids_list(_: object) -> Rows:
    """Return the grids of `configs/grids/`."""
    from tfstudy.grids.spec import grid_names, read_grid

    return [{"name": name, "about": " ".join(str(read_grid(name).get("about", "")).split())} for name in grid_names()]


def runs_list(folder: Path) -> Rows:
    """Return every run under a folder: its state, first metric, folder, the settings that vary, and what is wrong."""
    from tfstudy.report.varying import varying_runs
    from tfstudy.runs.display import first_test_metric
    from tfstudy.runs.find import find_runs
    from tfstudy.runs.status import FINISHED, RunStatus, status_and_result

    paths, rows = list(find_runs(folder)), []
    for path, settings in zip(paths, varying_runs(paths), strict=True):
        status, result = status_and_result(path)
        status = status or RunStatus(path, "unknown")
        metric = first_test_metric(result) if result and status.state == FINISHED else ""
        about = {"path": str(path), "settings": settings, "reason": status.reason}
        rows.append({"state": status.state, "metric": metric, **about})
    return rows


def _run_lines(rows: Rows) -> Iterable[Text | str]:
    def note(row: dict[str, Any]) -> str:
        return "  ".join(filter(None, (row["settings"], row["reason"] and f"({row['reason']})")))

    lines = run_lines(((row["state"], row["metric"], row["path"], note(row)) for row in rows), name=2)
    return [coloured(line) for line in lines] or ["no runs"]


def described(rows: Rows) -> Iterable[Text | str]:
    """Return a line for each row, wrapped on a terminal; where a plug-in is from comes on a line of its own."""
    lines = []
    for row in rows:
        cells = [text for key, text in row.items() if key != "origin"]
        lines += [cells, *([["", row["origin"]]] if row.get("origin") else [])]
    return columns(lines)


LISTS: dict[str, Callable[[Any], Rows]] = {
    "tasks": tasks_list,
    "splits": splits_list,
    "architectures": architectures_list,
    "instruments": instruments_list,
    "presets": presets_list,
    "grids": grids_list,
    "runs": runs_list,
}
TEXTS: dict[str, Callable[[Rows], Iterable[Text | str]]] = {"tasks": _task_lines, "runs": _run_lines}
