"""A table in LaTeX, with the rules of booktabs and citations of published figures."""

import re
from collections.abc import Iterator

from tfstudy.errors import UserError
from tfstudy.report.markup import escape_latex
from tfstudy.report.quotations import OTHER_SETTINGS, SIGN_NOTE, Quotation
from tfstudy.report.table_columns import Column, is_bold, quoted_figures, shown_columns
from tfstudy.report.table_lines import Line, Table


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
