"""One run's result as a table for the terminal, with the published figures for its split."""

import csv
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from tasks.base import one_of
from tfstudy.config import configs

COLUMNS = {
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
    "oracle_length_exact_match": "exact, oracle length",
    "teacher_forced_accuracy": "teacher-forced",
}


def published(task: str, split: str, metric: str = "") -> list[dict[str, str]]:
    """The rows of `configs/published.csv` for this split, of one of its metrics or of all."""
    path = configs() / "published.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["task"], row["split"]) == (task, split)]
    return [row for row in rows if metric in ("", row["metric"])]


def summary(result: Mapping[str, Any], by: str = "") -> list[Table | str]:
    """What to print of a result: its splits (each sliced by the tag `by`), and what papers report."""
    title = f"{result['task']} {result['split']}, {result['arch']}, seed {result['seed']}"
    if result["smoke"]:
        title = f"SMOKE RUN, its numbers mean nothing: {title}"
    if result["status"] != "finished":
        return [f"{title}: {result['status']} ({result['reason']})"]
    table = Table(title=f"{title} (per cent)", title_justify="left")
    table.add_column("split")
    table.add_column(by or "examples", justify="right")
    if by:
        table.add_column("examples", justify="right")
    for name in ("exact match", "95 % interval", *list(COLUMNS.values())[1:]):
        table.add_column(name, justify="right")
    for name, split in result["splits"].items():
        table.add_row(name, *(["all"] if by else []), *_cells(split))
        for value, part in split.get("slices", {}).get(by, {}).items() if by else ():
            table.add_row("", value, *_cells(part))
    out: list[Table | str] = [table]
    rows = published(result["task"], result["split"])
    if rows and not result["smoke"]:
        out.append(_published(rows))
    return out


def _cells(part: Mapping[str, Any]) -> list[str]:
    if not part["n"]:
        return ["0"]
    low, high = part["exact_match_interval"]
    values = [f"{100 * part['metrics'][name]:.1f}" if name in part["metrics"] else "" for name in COLUMNS]
    return [f"{part['n']:,}", values[0], f"{100 * low:.1f} to {100 * high:.1f}", *values[1:]]


def _published(rows: list[dict[str, str]]) -> Table:
    columns = ("arch", "metric", "value", "spread", "paper", "setting")
    table = Table(title="published, on test (per cent; spreads differ by paper)", title_justify="left")
    for name in columns:
        table.add_column(name, justify="right" if name in ("value", "spread") else "left")
    for row in rows:
        table.add_row(*(row[name] for name in columns))
    return table


def show(result: Mapping[str, Any], by: str = "") -> None:
    """Prints a result; `UserError` if `by` is no tag of its examples."""
    tags = {tag for split in result.get("splits", {}).values() for tag in split.get("slices", {})}
    if by:
        one_of("--by", by, sorted(tags))
    console = Console()
    if not console.is_terminal:
        console = Console(width=150)
    for part in summary(result, by):
        console.print(part, markup=False, highlight=False)
