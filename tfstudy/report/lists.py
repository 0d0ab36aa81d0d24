"""What is available: tasks, split schemes, architectures, presets, grids and runs, as rows and as lines. No torch."""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from tfstudy import instruments, models, tasks
from tfstudy.analysis import labels
from tfstudy.config.presets import all_presets
from tfstudy.errors import UserError
from tfstudy.grids.spec import grid_names, read_grid
from tfstudy.report.terminal import GAP, coloured, columns, terminal_width
from tfstudy.runs.display import first_test_metric
from tfstudy.runs.find import find_runs
from tfstudy.runs.status import FINISHED, RunStatus, status_and_result

SOURCE = re.compile(r" \([^()]*\b\d{4}\b[^()]*\)")  # a citation in brackets
Row = dict[str, Any]
Rows = Sequence[Row]
KINDS: Rows = [
    {"name": f"tfstudy list {words}", "about": about}
    for words, about in (
        ("tasks [TASK]", "every task, or one with splits and examples"),
        ("splits [TASK]", "the split schemes of a task (default: scan)"),
        ("architectures", "every architecture"),
        ("instruments", "what `tfstudy measure` can measure on a run"),
        ("presets [TASK]", "the presets of a task (default: scan)"),
        ("grids", "the grids of configs/grids/"),
        ("runs [STUDY]", "the runs of a study, or all runs"),
        ("corpora [FOLDER]", "the corpora for translation in a folder"),
    )
]


def tasks_list(task: str) -> Rows:
    """Return the tasks, or the one named, with their examples and split schemes; a broken plug-in with its error."""

    def row(name: str) -> Row:
        kind = tasks.find(name)
        about, example, *_ = [*(inspect.getdoc(sys.modules[kind.__module__]) or "").split("\n\n"), ""]
        lines = textwrap.dedent(example).splitlines()
        return {"about": " ".join(about.split()), "example": lines, "splits": list(kind.split_schemes())}

    if task:
        tasks.find(task)
    rows = _rows(tasks, row, {"example": [], "splits": []})
    return [one for one in rows if task in ("", one["name"])]


def architectures_list(_: object) -> Rows:
    """Return the architectures; a broken plug-in with its error."""
    return _rows(models, lambda name: {"about": (models.find(name).__doc__ or "").strip().partition("\n")[0]}, {})


def _rows(package: ModuleType, row: Callable[[str], Row], nothing: Row) -> Rows:
    """Return a row for each name of a package; a plug-in with where it is from, a broken one with its error."""
    rows = []
    for name in package.names():
        try:
            plugin = package.plugin(name)
            rows.append({"name": name, **row(name), "origin": f"plug-in: {plugin.origin}" if plugin else ""})
        except UserError as error:
            rows.append({"name": name, "about": f"broken: {error}", **nothing, "origin": ""})
    return rows


def splits_list(task: str) -> Rows:
    """Return the split schemes of a task."""
    return [{"name": name, "about": text} for name, text in tasks.find(task or "scan").split_schemes().items()]


def instruments_list(_: object) -> Rows:
    """Return the instruments; a broken plug-in with its error."""
    rows = []
    for name in instruments.names():
        try:
            rows.append({"name": name, "about": instruments.summary(name)})
        except UserError as error:
            rows.append({"name": name, "about": f"broken: {error}"})
    return rows


def presets_list(task: str) -> Rows:
    """Return the presets of a task, for each architecture that has them."""
    tasks.find(task := task or "scan")
    return [
        {"name": name, "arch": arch, "about": str(tree.get("about", ""))}
        for name, archs in all_presets(task).items()
        for arch, tree in archs.items()
        if isinstance(tree, dict)
    ]


def grids_list(_: object) -> Rows:
    """Return the grids of `configs/grids/`."""
    return [{"name": name, "about": " ".join(str(read_grid(name).get("about", "")).split())} for name in grid_names()]


def runs_list(folder: Path) -> Rows:
    """Return every run under a folder: its state, first metric, folder, the settings that vary, and what is wrong."""
    paths, rows = list(find_runs(folder)), []
    for path, settings in zip(paths, labels.of_runs(paths), strict=True):
        status, result = status_and_result(path)
        status = status or RunStatus(path, "unknown")
        metric = first_test_metric(result) if result and status.state == FINISHED else ""
        about = {"path": str(path), "settings": settings, "reason": status.reason}
        rows.append({"state": status.state, "metric": metric, **about})
    return rows


def corpora_list(folder: Path) -> Rows:
    """Return the corpora for translation in a folder, with their files."""
    from tfstudy.tasks.reading import corpora

    return [{"name": name, "files": files} for name, files in corpora(folder).items()]


LISTS: dict[str, Callable[[Any], Rows]] = {
    "tasks": tasks_list,
    "splits": splits_list,
    "architectures": architectures_list,
    "instruments": instruments_list,
    "presets": presets_list,
    "grids": grids_list,
    "runs": runs_list,
    "corpora": corpora_list,
}


def list_lines(what: str, rows: Rows, details: bool = False) -> Iterable[Text | str]:
    """Return a line for each row, wrapped on a terminal; with `details` more about a task stands below it."""
    if what == "runs":
        notes = ["  ".join(filter(None, (row["settings"], row["reason"] and f"({row['reason']})"))) for row in rows]
        cells = [(row["state"], row["metric"], row["path"], note) for row, note in zip(rows, notes, strict=True)]
        return [coloured(line) for line in columns(cells)] or ["no runs"]
    lines, width = [], terminal_width()
    room = width - max((cell_len(row["name"]) for row in rows), default=0) - GAP
    for row in rows:
        names = [row[key] for key in ("name", "arch") if key in row]
        about = str(row["about"] if "about" in row else " ".join(row["files"]))
        origin = f" ({row['origin']})" if row.get("origin") else ""
        if what == "tasks" and not details and not about.startswith("broken"):
            sentence = re.split(r"(?<!al)[.;] ", SOURCE.sub("", about))[0].rstrip(".:;")
            about = textwrap.shorten(sentence, room, placeholder=" ...") if width else sentence
        lines.append([*names, about + origin])
        if what == "tasks" and details:
            more = [*row["example"], f"splits: {', '.join(row['splits'])}"]
            lines += [[*[""] * len(names), text] for text in more]
    return columns(lines)
