"""What is available: tasks, split schemes, architectures, presets, grids and runs. No torch."""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
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
from tfstudy.report.render import STYLES, Cells, Listing
from tfstudy.runs.find import find_runs
from tfstudy.runs.status import FINISHED, RunStatus, run_status
from tfstudy.runs.store import open_run

SOURCE = re.compile(r" \([^()]*\b\d{4}\b[^()]*\)")  # a citation in brackets
FIRST = re.compile(r"(?<!al)[.;](?: |$)")  # the end of the first sentence
Row = dict[str, Any]
Rows = Sequence[Row]


def each_run(study: str, root: Path, format: str) -> str:
    """Return the frame of `tfstudy.results` as csv or json, without the columns that are empty in all rows."""
    frame = results(study, results=root).dropna(axis="columns", how="all")
    frame["run"] = frame["run"].map(str)
    return csv_text(frame) if format == "csv" else json_text(frame.astype(object).to_dict("records"))


def _named(abouts: Mapping[str, str]) -> Rows:
    return [{"name": name, "about": " ".join(about.split())} for name, about in abouts.items()]


def _classes(registry: Registry, row: Callable[[str], Row]) -> Rows:
    """Return a row for each class; of a plug-in with where it is from, of a broken one with its error."""
    rows = []
    for name in registry.names():
        try:
            plugin = registry.plugin(name)
            rows.append({"name": name, **row(name), "origin": f"plug-in: {plugin.origin}" if plugin else ""})
        except UserError as error:
            rows.append({"name": name, "about": f"broken: {error}", "origin": ""})
    return rows


def _tasks(task: str) -> Rows:
    def row(name: str) -> Row:
        kind = tasks.find(name)
        about, example, *_ = [*(inspect.getdoc(sys.modules[kind.__module__]) or "").split("\n\n"), ""]
        lines = textwrap.dedent(example).splitlines()
        return {"about": " ".join(about.split()), "example": lines, "splits": list(kind.split_schemes())}

    if task:
        tasks.find(task)
    return [one for one in _classes(tasks.REGISTRY, row) if task in ("", one["name"])]


def _presets(task: str) -> Rows:
    tasks.find(task)
    found = [(name, arch, tree) for name, archs in presets(task).items() for arch, tree in archs.items()]
    return [{"name": n, "arch": a, "about": str(t.get("about", ""))} for n, a, t in found]


def runs_list(folder: Path) -> Rows:
    """Return every run under a folder: its state, first metric, folder, the settings that vary, and what is wrong."""
    paths, rows = list(find_runs(folder)), []
    for path, settings in zip(paths, labels.of_runs(paths), strict=True):
        run = open_run(path)
        status = run_status(run) or RunStatus(path, "unknown")
        metric = run.result.headline if run.result and status.state == FINISHED else ""
        about = {"path": str(path), "settings": settings, "reason": status.reason}
        rows.append({"state": status.state, "metric": metric, **about})
    return rows


LISTS: dict[str, tuple[Callable[[Any], Rows], str, str]] = {  # the rows, what the second word names, and what they are
    "tasks": (_tasks, "TASK", "every task, or one with splits and examples"),
    "splits": (
        lambda task: _named(tasks.find(task or "scan").split_schemes()),
        "TASK", "the split schemes of a task (default: scan)",
    ),
    "architectures": (
        lambda _: _classes(models.REGISTRY, lambda name: {"about": str(models.find(name).__doc__).partition("\n")[0]}),
        "", "every architecture",
    ),
    "instruments": (
        lambda _: _classes(instruments.REGISTRY, lambda name: {"about": instruments.summary(name)}),
        "", "what `tfstudy measure` can measure on a run",
    ),
    "presets": (lambda task: _presets(task or "scan"), "TASK", "the presets of a task (default: scan)"),
    "grids": (
        lambda _: _named({name: str(read_grid(name).get("about", "")) for name in grid_names()}),
        "", "the grids of configs/grids/",
    ),
    "runs": (runs_list, "STUDY", "the runs of a study, or all runs"),
}  # fmt: skip


def listing(what: str, of: Any = "") -> Listing:
    """Return a list; with an empty name the lists that there are."""
    commands = {f"tfstudy list {name} [{of}]".removesuffix(" []"): about for name, (_, of, about) in LISTS.items()}
    rows = LISTS[what][0](of) if what else _named(commands)
    keys = [key for key in ("name", "arch", "state", "metric", "path", "settings", "reason") if rows and key in rows[0]]
    frame: dict[str, list[str]] = {key: [str(row[key]) for row in rows] for key in keys}
    if "path" in frame:  # as `tfstudy result` takes it
        frame["path"] = ["/".join(Path(row["path"]).parts[-4:]) for row in rows]
    if "name" in frame:
        short = what == "tasks" and not of
        abouts = [FIRST.split(SOURCE.sub("", row["about"]))[0] if short else row["about"] for row in rows]
        origins = [f" ({row['origin']})" if row.get("origin") else "" for row in rows]
        frame["about"] = [about + origin for about, origin in zip(abouts, origins, strict=True)]
    shown = {key: texts for key, texts in frame.items() if any(texts)}
    folded = frozenset(("about", "path", "settings", "reason"))
    cells = Cells(shown, left=list(shown), folded=folded, headless=True, styles=STYLES)
    more = [*rows[0]["example"], "", f"splits: {', '.join(rows[0]['splits'])}"] if what == "tasks" and of else []
    return Listing([cells, *more] if rows else [f"no {what}"], (), lambda: rows)
