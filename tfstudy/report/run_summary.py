"""One run's result as a table for the terminal, with the published figures for its split."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from tasks.errors import one_of
from tfstudy.analysis.published import published

COLUMNS = {  # metrics that have a column, where they are measured
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
    "oracle_length_exact_match": "exact, oracle length",
    "teacher_forced_accuracy": "teacher-forced",
}


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
    measured = list(dict.fromkeys(metric for split in result["splits"].values() for metric in split.get("metrics", {})))
    metrics = [metric for metric in COLUMNS if metric in measured]
    for metric in metrics:
        table.add_column(COLUMNS[metric], justify="right")
        if metric == "exact_match":
            table.add_column("95 % interval", justify="right")
    for name, split in result["splits"].items():
        table.add_row(name, *(["all"] if by else []), *_cells(split, metrics))
        for value, part in split.get("slices", {}).get(by, {}).items() if by else ():
            table.add_row("", value, *_cells(part, metrics))
    out: list[Table | str] = [table]
    if others := [metric for metric in measured if metric not in COLUMNS]:
        out.append(_others(result["splits"], others))
    out += [line for line in (*reach(result.get("lengths", {})), *_signatures(result)) if not by]
    rows = published(result["task"], result["split"])
    if rows and not result["smoke"]:
        out.append(_published(rows))
    return out


def _cells(part: Mapping[str, Any], metrics: Sequence[str]) -> list[str]:
    if not part["n"]:
        return ["0"]
    cells = [f"{part['n']:,}"]
    for metric in metrics:
        cells.append(f"{100 * part['metrics'][metric]:.1f}")
        if metric == "exact_match":
            cells.append("{:.1f} to {:.1f}".format(*(100 * bound for bound in part["exact_match_interval"])))
    return cells


def _others(splits: Mapping[str, Any], metrics: Sequence[str]) -> Table:
    """The metrics of one task alone."""
    table = Table(title="more metrics (per cent)", title_justify="left")
    table.add_column("split")
    for metric in metrics:
        table.add_column(metric.replace("_", " "), justify="right")
    for name, split in splits.items():
        values = split.get("metrics", {})
        table.add_row(name, *(f"{100 * values[metric]:.1f}" if metric in values else "" for metric in metrics))
    return table


def reach(lengths: Mapping[str, Any]) -> list[str]:
    """One line on how far accuracy reaches, if the result says it."""
    if not lengths:
        return []
    parts = ", ".join(f"{name} {reached(lengths, name)}" for name in ("L90", "L50"))
    return [f"{parts}: the length up to which exact match is 90 and 50 % (longest seen: {lengths['longest']})"]


def reached(lengths: Mapping[str, Any], name: str) -> str:
    """L90 or L50 as a table shows it: `>=` if no longer length was tested, `none` if not even the shortest holds."""
    value = lengths[name]
    return "none" if value is None else f">={value}" if value == lengths["longest"] else str(value)


def _signatures(result: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {signature}" for name, signature in result.get("signatures", {}).items()]


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
