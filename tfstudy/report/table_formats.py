"""A table as Markdown, CSV, HTML, JSON or LaTeX (with the rules of booktabs), and all formats by name."""

import csv
import html
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tfstudy.analysis.counterparts import OTHER_SETTINGS, SIGN_NOTE, Quotation
from tfstudy.analysis.published import papers
from tfstudy.errors import UserError
from tfstudy.report.markup import (
    csv_cell,
    escape_latex,
    html_table,
    json_text,
    markdown_list,
    markdown_table,
    without_links,
)
from tfstudy.report.table_columns import Column, Line, Table, columns, is_bold, quoted_figures, shown_columns
from tfstudy.report.table_terminal import terminal_text

FIGURE_KEYS = (
    "id", "paper", "arch", "value", "value_kind", "spread", "spread_kind", "n", "settings", "preset", "source", "place",
)  # fmt: skip


def _rows(table: Table, bold: str, escape: Callable[[str], str] = str) -> list[list[str]]:
    """Return the cells of each line, those that do not differ from the best in bold."""
    shown = shown_columns(table)
    return [
        [
            bold.format(text) if is_bold(column, line) and text else text
            for column, text in zip(shown, texts, strict=True)
        ]
        for line, texts in ((line, [escape(column.text(line)) for column in shown]) for line in table.lines)
    ]


def markdown(table: Table) -> str:
    """Return the table for a README or a report."""
    heads = list(columns(table)[0])
    rows, notes = _rows(table, "**{}**", without_links), map(without_links, table.notes)
    return f"{markdown_table(heads, rows)}\n\n{markdown_list(notes)}\n"


def hypertext(table: Table) -> str:
    """Return a `<table>` and its notes."""
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    rows = _rows(table, "<strong>{}</strong>", html.escape)
    return f"{html_table(list(columns(table)[0]), rows)}<ul>{notes}</ul>\n"


def bibliography(table: Table) -> str:
    """Return the BibTeX entries of the papers whose figures are in the table."""
    keys = sorted({one.figure.paper for one in quoted_figures(table)})
    return "\n\n".join(papers()[key].entry for key in keys) + "\n" if keys else ""


def values(line: Line) -> dict[str, Any]:
    """Return a line as plain numbers and texts, with the folders of its runs; nan or None where nothing is known."""
    condition, against = line.condition, line.against
    difference = against.difference if against else None
    return {
        "task": condition.task, "split": condition.split, "corpus": condition.corpus, "test": condition.test_set,
        "tag": condition.tag, "value": condition.tag_value,
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
        "published": _figures(line.published), "published_oracle_length": _figures(line.published_oracle),
        "published_over_lengths": _figures(line.published_over_lengths),
        "runs": [str(run.path) for run in condition.runs],
    }  # fmt: skip


def _figures(quoted: Sequence[Quotation]) -> list[dict[str, Any]]:
    return [
        {key: getattr(one.figure, key) for key in FIGURE_KEYS} | {"same_settings": one.same_settings} for one in quoted
    ]


def as_json(table: Table) -> str:
    """Return all values, the folder of each run, and the notes."""
    rows = [values(line) for line in table.lines]
    return json_text({"baseline": table.baseline or None, "rows": rows, "notes": table.notes})


def as_csv(table: Table) -> str:
    """Return a row for each line; items of lists are separated by spaces or semicolons."""
    out = io.StringIO()
    rows = [values(line) | _csv_texts(line) for line in table.lines]
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: csv_cell(value) for key, value in row.items()})
    return out.getvalue()


def _csv_texts(line: Line) -> dict[str, str]:
    """Return what is not a number or a text, as text."""
    return {
        "each_seed": " ".join(f"{seed}:{value:.6g}" for seed, value in line.condition.by_seed(line.metric).items()),
        "published": "; ".join(one.text for one in line.published),
        "published_oracle_length": "; ".join(one.text for one in line.published_oracle),
        "published_over_lengths": "; ".join(one.text for one in line.published_over_lengths),
        "runs": " ".join(str(run.path) for run in line.condition.runs),
    }


# LaTeX


def latex(table: Table, caption: str = "", label: str = "") -> str:
    """Return a `tabular`, within a `table` if it has a caption or a label.

    The notes are comments; a `table` also prints those that its reader needs. The caption is plain text. `UserError`
    for a label that LaTeX can't read.
    """
    if not re.fullmatch(r"[A-Za-z0-9:._/+-]*", label):
        raise UserError(f"--label must consist of letters, digits and :._/+-, such as tab:scan, but is '{label}'")
    head = ["% needs \\usepackage{booktabs}", *(f"% {' '.join(note.split())}" for note in table.notes)]
    body = list(_tabular(table))
    if caption or label:
        body = [
            r"\begin{table}",
            r"\centering",
            *([rf"\caption{{{escape_latex(caption)}}}"] if caption else []),
            *([rf"\label{{{label}}}"] if label else []),
            *body,
            rf"\par\smallskip{{\footnotesize {escape_latex('. '.join(_reading_notes(table)))}.\par}}",
            r"\end{table}",
        ]
    return "\n".join([*head, *body]) + "\n"


def _reading_notes(table: Table) -> list[str]:
    """Return what a reader of the printed table must know: its intervals, letters and signs."""
    other = any(not one.same_settings for one in quoted_figures(table))
    tests = [note for note in table.notes[1:] if note.startswith(("group:", "differences:"))]
    return [table.notes[0], *tests, *([SIGN_NOTE] if other else [])]


def _tabular(table: Table) -> Iterator[str]:
    columns = shown_columns(table)
    yield rf"\begin{{tabular}}{{{''.join('l' if column.left else 'r' for column in columns)}}}"
    yield r"\toprule"
    yield _row([escape_latex(column.head) for column in columns])
    yield r"\midrule"
    previous = table.lines[0].condition.comparison_key
    for line in table.lines:
        if line.condition.comparison_key != previous:
            yield r"\addlinespace"
            previous = line.condition.comparison_key
        yield _row([_cell(column, line) for column in columns])
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(cells: list[str]) -> str:
    row = " & ".join(cells) + r" \\"
    return f"{{}}{row}" if row.startswith(("[", "*")) else row  # else it would be read as an option of the line before


def _cell(column: Column, line: Line) -> str:
    if column.quoted:
        return "; ".join(map(_cite, column.quoted(line)))
    text = escape_latex(column.text(line))
    return rf"\textbf{{{text}}}" if text and is_bold(column, line) else text


def _cite(one: Quotation) -> str:
    sign = "" if one.same_settings else escape_latex(OTHER_SETTINGS)
    return rf"{escape_latex(one.figure.text)}~\cite{{{one.figure.paper}}}{sign}"


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": terminal_text,
    "md": markdown,
    "csv": as_csv,
    "tex": latex,
    "html": hypertext,
    "json": as_json,
    "bib": bibliography,
}
