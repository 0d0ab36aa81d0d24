"""What is available: tasks, split schemes, architectures, presets, grids and runs. No torch."""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tfstudy import instruments, models, tasks
from tfstudy.analysis import labels
from tfstudy.analysis.frame import results
from tfstudy.config.presets import all_presets
from tfstudy.errors import UserError
from tfstudy.grids.spec import grid_names, read_grid
from tfstudy.report.markup import csv_text, json_text
from tfstudy.report.render import STYLES, Cells, Listing
from tfstudy.runs.display import first_test_metric
from tfstudy.runs.find import find_runs
from tfstudy.runs.status import FINISHED, RunStatus, status_and_result

SOURCE = re.compile(r" \([^()]*\b\d{4}\b[^()]*\)")  # a citation in brackets
SHORT = 66  # characters of a task in the list of all
Row = dict[str, Any]
Rows = Sequence[Row]


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


def each_run(study: str, root: Path, format: str) -> str:
    """Return the frame of `tfstudy.results` as csv or json, without the columns that are empty in all rows."""
    frame = results(study, results=root).dropna(axis="columns", how="all")
    frame["run"] = frame["run"].map(str)
    return csv_text(frame) if format == "csv" else json_text(frame.astype(object).to_dict("records"))


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
    """Return the corpora for translation in a folder: their size with the preset for it, faults by line, and files."""
    from tfstudy.tasks.reading import corpora
    from tfstudy.tasks.translation.task import overview

    found = corpora(folder).items()
    return [{"name": path.resolve().name, **overview(str(path)), "files": files} for path, files in found]


LISTS: dict[str, tuple[Callable[[Any], Rows], str, str]] = {  # the rows, what the second word names, and what they are
    "tasks": (tasks_list, "TASK", "every task, or one with splits and examples"),
    "splits": (splits_list, "TASK", "the split schemes of a task (default: scan)"),
    "architectures": (architectures_list, "", "every architecture"),
    "instruments": (instruments_list, "", "what `tfstudy measure` can measure on a run"),
    "presets": (presets_list, "TASK", "the presets of a task (default: scan)"),
    "grids": (grids_list, "", "the grids of configs/grids/"),
    "runs": (runs_list, "STUDY", "the runs of a study, or all runs"),
    "corpora": (corpora_list, "FOLDER", "the corpora for translation in a folder"),
}


def listing(what: str, of: Any = "") -> Listing:
    """Return a list; with an empty name the lists that there are."""
    if not what:
        rows: Rows = [
            {"name": f"tfstudy list {name}{f' [{of}]' if of else ''}", "about": about}
            for name, (_, of, about) in LISTS.items()
        ]
    else:
        rows = LISTS[what][0](of)
    keys = [key for key in ("name", "arch", "state", "metric", "path", "settings", "reason") if rows and key in rows[0]]
    frame: dict[str, list[str]] = {key: [str(row[key]) for row in rows] for key in keys}
    if "path" in frame:  # as `tfstudy result` takes it
        frame["path"] = ["/".join(Path(row["path"]).parts[-4:]) for row in rows]
    if "name" in frame:
        frame["about"] = [_about(row, what == "tasks" and not of) for row in rows]
    shown = {key: texts for key, texts in frame.items() if any(texts)}
    folded = frozenset(("about", "path", "settings", "reason"))
    cells = Cells(shown, left=list(shown), folded=folded, headless=True, styles=STYLES)
    more = [*rows[0]["example"], "", f"splits: {', '.join(rows[0]['splits'])}"] if what == "tasks" and of else []
    return Listing([cells, *more] if rows else [f"no {what}"], (), lambda: rows)


def _about(row: Row, short: bool) -> str:
    """Return what a row says of itself; `short` is its first sentence in one line, without sources."""
    about = str(row["about"])
    if short and not about.startswith("broken"):
        sentence = re.split(r"(?<!al)[.;] ", SOURCE.sub("", about))[0].rstrip(".:;")
        about = textwrap.shorten(sentence, SHORT, placeholder=" ...")
    return about + (f" ({row['origin']})" if row.get("origin") else "")
