"""A table as Markdown, CSV, LaTeX, HTML or JSON."""

import csv
import html
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

from tfstudy.analysis.metrics import metric_name
from tfstudy.analysis.published import Figure
from tfstudy.report.markup import (
    escape_latex,
    html_table,
    json_text,
    markdown_list,
    markdown_table,
    number,
    p_value,
    with_interval,
)
from tfstudy.report.tables import OVER_LENGTHS, Line, Table

LEFT_ALIGNED = {"task", "split", "architecture", "preset", "published", "group"}
Cells = dict[str, str]  # by column


def columns(table: Table) -> list[Cells]:
    """Return each line's text by column, without the columns that are empty."""
    several_metrics = len({line.metric for line in table.lines}) > 1
    several_tasks = len({line.condition.task for line in table.lines}) > 1
    all_cells = [_cells(line, table.baseline, several_metrics) for line in table.lines]
    names = [
        name for name in all_cells[0] if any(cells[name] for cells in all_cells) and (name != "task" or several_tasks)
    ]
    return [{name: cells[name] for name in names} for cells in all_cells]


def _cells(line: Line, baseline: str, several_metrics: bool) -> Cells:
    condition, against, metric = line.condition, line.against, metric_name(line.metric)
    difference = against.difference if against else None
    return {
        "task": condition.task,
        "split": condition.split_label,
        **({condition.tag: condition.tag_value} if condition.tag else {}),
        "architecture": condition.arch,
        "preset": condition.preset_label,
        "n": f"{len(condition.runs)}" + (f", {len(condition.diverged)} diverged" if condition.diverged else ""),
        **({"metric": metric, "value": mean_text(line)} if several_metrics else {metric: mean_text(line)}),
        "group": line.group,
        f"vs {baseline}": with_interval(difference.mean, difference.low, difference.high, "+") if difference else "",
        "p": p_value(against.p) if against else "",
        "published": published_text(line.published),
        "chrF": number(line.chrf),
        "oracle length": number(line.oracle),
        "published (oracle)": published_text(line.published_oracle),
        OVER_LENGTHS: number(line.over_lengths) if line.published_over_lengths else "",
        "published (over lengths)": published_text(line.published_over_lengths),
        "L90": line.thresholds.get("L90", ""),
        "L50": line.thresholds.get("L50", ""),
        "parameters": f"{line.parameters:,}" if line.parameters else "",
        "seconds": f"{line.seconds:,.0f}" if line.seconds == line.seconds else "",
    }


def mean_text(line: Line) -> str:
    """Return `41.2 [35.0, 47.1]`; empty if nothing was measured."""
    return with_interval(line.mean, line.low, line.high)


def published_text(figures: Sequence[Figure]) -> str:
    """Return published results with their papers."""
    return "; ".join(f"{figure.text} ({figure.citation})" for figure in figures)


def _heads(cells: Cells) -> list[str]:
    """Return the names of the columns as they are printed: `published (oracle)` is `published`."""
    return [re.sub(r" \(.*\)$", "", name) for name in cells]


def _texts(line: Line, cells: Cells, bold: str) -> list[str]:
    """Return the cells of a line, the result of the best group in bold."""
    strong = mean_text(line) if line.best else ""
    return [bold.format(text) if text and text == strong else text for text in cells.values()]


def markdown(table: Table) -> str:
    """Return the table for a README or a report."""
    cells = columns(table)
    rows = [_texts(line, one, "**{}**") for line, one in zip(table.lines, cells, strict=True)]
    return f"{markdown_table(_heads(cells[0]), rows)}\n\n{markdown_list(table.notes)}\n"


def latex(table: Table) -> str:
    """Return a `tabular` with the rules of booktabs, and the notes as comments."""
    cells = columns(table)
    alignment = "".join("lr"[name not in LEFT_ALIGNED] for name in cells[0])
    lines = [*(f"% {note}" for note in table.notes), rf"\begin{{tabular}}{{{alignment}}}"]
    lines += [r"\toprule", " & ".join(map(escape_latex, _heads(cells[0]))) + r" \\", r"\midrule"]
    previous = table.lines[0].condition.examples_key
    for line, one in zip(table.lines, cells, strict=True):
        if line.condition.examples_key != previous:
            lines.append(r"\addlinespace")
            previous = line.condition.examples_key
        escaped = {name: escape_latex(text) for name, text in one.items()}
        strong = mean_text(line) if line.best else ""
        texts = (
            rf"\textbf{{{escaped[name]}}}" if text and text == strong else escaped[name] for name, text in one.items()
        )
        lines.append(" & ".join(texts) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def hypertext(table: Table) -> str:
    """Return a `<table>` and its notes."""
    cells = columns(table)
    escaped = [{name: html.escape(text) for name, text in one.items()} for one in cells]
    rows = [_texts(line, one, "<strong>{}</strong>") for line, one in zip(table.lines, escaped, strict=True)]
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    return f"{html_table(_heads(cells[0]), rows)}<ul>{notes}</ul>\n"


def values(line: Line) -> dict[str, Any]:
    """Return a line as plain numbers and texts, with the folders of its runs; nan or None where nothing is known."""
    condition, against = line.condition, line.against
    difference = against.difference if against else None
    return {
        "task": condition.task, "split": condition.split, "test": condition.test_set, "tag": condition.tag,
        "value": condition.tag_value,
        "arch": condition.arch, "preset": condition.preset, "settings": condition.settings, "metric": line.metric,
        "n": len(condition.runs),
        "experiment": condition.experiment, "examples": condition.example_count(), "diverged": len(condition.diverged),
        "mean": line.mean, "low": line.low, "high": line.high, "interval": line.method,
        "group": line.group, "best_group": line.best, "baseline": against.second.label if against else None,
        "difference": difference and difference.mean, "difference_low": difference and difference.low,
        "difference_high": difference and difference.high, "p": against.p if against else None,
        "test_of_p": difference and difference.method, "oracle_length": line.oracle, "chrf": line.chrf,
        "over_lengths": line.over_lengths, "L90": line.thresholds.get("L90"), "L50": line.thresholds.get("L50"),
        "parameters": line.parameters, "train_seconds": line.seconds,
        "each_seed": {str(seed): value for seed, value in condition.by_seed(line.metric).items()},
        "published": [
            {key: getattr(figure, key) for key in ("paper", "arch", "value", "spread", "source", "place")}
            for figure in line.published
        ],
        "runs": [str(run.path) for run in condition.runs],
    }  # fmt: skip


def as_json(table: Table) -> str:
    """Return all values, the folder of each run, and the notes."""
    rows = [values(line) for line in table.lines]
    return json_text({"baseline": table.baseline or None, "rows": rows, "notes": table.notes})


def as_csv(table: Table) -> str:
    """Return a row for each line; items of lists are separated by blanks."""
    out = io.StringIO()
    rows = [values(line) for line in table.lines]
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        plain = {key: None if value != value else value for key, value in row.items()}  # nan is empty
        figures = [f"{one['value']} {one['arch']} ({one['paper']})" for one in row["published"]]
        seeds = " ".join(f"{seed}:{value:.6g}" for seed, value in row["each_seed"].items())
        writer.writerow(plain | {"each_seed": seeds, "published": "; ".join(figures), "runs": " ".join(row["runs"])})
    return out.getvalue()


FORMATS: dict[str, Callable[[Table], str]] = {
    "md": markdown,
    "csv": as_csv,
    "tex": latex,
    "html": hypertext,
    "json": as_json,
}
