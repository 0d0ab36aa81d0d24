"""What is available: tasks, architectures, instruments, presets, grids and runs. Only architectures import torch."""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tfstudy import instruments, models, tasks
from tfstudy.analysis import labels
from tfstudy.analysis.frame import results
from tfstudy.config.presets import presets
from tfstudy.errors import UserError
from tfstudy.grids.spec import grid_names, read_grid
from tfstudy.registry import Registry
from tfstudy.report.markup import csv_text, json_text
from tfstudy.report.render import STYLES, Cells, Listing, Part
from tfstudy.runs.find import FINISHED, RunStatus, find_runs, run_status
from tfstudy.runs.store import open_run

SOURCE = re.compile(r" \([^()]*\b\d{4}\b[^()]*\)")  # a citation in brackets
FIRST = re.compile(r"(?<!al)\.(?: |$)|; (?![^()]*\))")  # the end of the first sentence
COLUMNS = ("name", "arch", "state", "metric", "path", "settings", "reason", "about")  # of rows, as they are shown
Rows = Sequence[dict[str, Any]]


def each_run(study: str, root: Path, format: str) -> str:
    """Return the frame of `tfstudy.results` as csv or json, without the columns that are empty in all rows."""
    frame = results(study, results=root).dropna(axis="columns", how="all")
    return csv_text(frame) if format == "csv" else json_text(frame.astype(object).to_dict("records"))


def _classes(registry: Registry, about: Callable[[str], str]) -> Rows:
    """Return a row for each class; of a plug-in with where it is from, of a broken one with its error."""
    rows = []
    for name in registry.names():
        try:
            plugin = registry.plugin(name)
            rows.append({"name": name, "about": about(name), "origin": f"plug-in: {plugin.origin}" if plugin else ""})
        except UserError as error:
            rows.append({"name": name, "about": "broken", "origin": str(error)})
    return rows


def _docstring(task: str) -> list[str]:
    """Return the paragraphs of a task's docstring: what it is, and an example."""
    return (inspect.getdoc(sys.modules[tasks.find(task).__module__]) or "").split("\n\n")


def _tasks(task: str) -> Rows:
    rows = _classes(tasks.REGISTRY, lambda name: " ".join(_docstring(name)[0].split()))
    if not task:
        return rows
    example = textwrap.dedent("".join(_docstring(task)[1:2])).splitlines()
    splits = dict(tasks.find(task).split_schemes())
    return [{**row, "example": example, "splits": splits} for row in rows if row["name"] == task]


def _presets(task: str) -> Rows:
    tasks.find(task)
    found = [(name, arch, tree) for name, archs in presets(task).items() for arch, tree in archs.items()]
    return [{"name": n, "arch": a, "about": str(t.get("about", ""))} for n, a, t in found]


def _grids(grid: str) -> Rows:
    trees = {name: read_grid(name) for name in ([grid] if grid else grid_names())}
    return [{"name": name, "about": " ".join(str(tree.get("about", "")).split())} for name, tree in trees.items()]


def runs_list(folder: Path) -> Rows:
    """Return every run under a folder: its state, first metric, folder, the settings that vary, and what is wrong."""
    runs, rows = [open_run(path) for path in find_runs(folder)], []
    for run, settings in zip(runs, labels.of_runs(runs), strict=True):
        status = run_status(run) or RunStatus(run.path, "unknown")
        metric = run.result.headline if run.result and status.state == FINISHED else ""
        about = {"path": str(run.path), "settings": settings, "reason": status.reason}
        rows.append({"state": status.state, "metric": metric, **about})
    return rows


LISTS: dict[str, tuple[Callable[[Any], Rows], str, str]] = {  # the rows, what the second word names, and what they are
    "tasks": (_tasks, "TASK", "every task, or one with an example and its split schemes"),
    "architectures": (
        lambda _: _classes(models.REGISTRY, lambda name: str(models.find(name).__doc__).partition("\n")[0]),
        "", "every architecture",
    ),
    "instruments": (
        lambda _: _classes(instruments.REGISTRY, instruments.summary),
        "", "what `tfstudy measure` can measure on a run",
    ),
    "presets": (lambda task: _presets(task or "scan"), "TASK", "the presets of a task (default: scan)"),
    "grids": (_grids, "GRID", "the grids of configs/grids/, or one with its whole description"),
    "runs": (runs_list, "STUDY", "the runs of a study, or all runs"),
}  # fmt: skip


def listing(what: str, of: Any = "") -> Listing:
    """Return a list, of tasks and grids the first sentence of each; with an empty name the lists that there are."""
    commands = {f"tfstudy list {name} [{of}]".removesuffix(" []"): about for name, (_, of, about) in LISTS.items()}
    rows: Rows = LISTS[what][0](of) if what else [{"name": name, "about": about} for name, about in commands.items()]
    if not rows:
        return Listing([f"no {what}"], (), rows)
    frame = {key: [str(row[key]) for row in rows] for key in COLUMNS if key in rows[0]}
    if "path" in frame:  # as `tfstudy result` takes it
        frame["path"] = ["/".join(Path(row["path"]).parts[-4:]) for row in rows]
    if what in ("tasks", "grids") and not of:
        frame["about"] = [FIRST.split(SOURCE.sub("", about))[0] for about in frame["about"]]
    if "about" in frame:
        notes = [f" ({row['origin']})" if row.get("origin") else "" for row in rows]
        frame["about"] = [about + note for about, note in zip(frame["about"], notes, strict=True)]
    parts: list[Part] = [_table(frame)]
    if what == "tasks" and of:
        splits = rows[0]["splits"]
        parts += [*rows[0]["example"], "", _table({"split": [*splits], "about": [*splits.values()]})]
    return Listing(parts, (), rows)


def _table(frame: dict[str, list[str]]) -> Cells:
    return Cells.listed(frame, folded={*frame} - {"name", "arch", "state", "split"}, styles=STYLES)
