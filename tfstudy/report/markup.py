"""Numbers and text in Markdown, LaTeX, HTML and JSON, for all that is printed or written."""

import html
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

MINUS = "\N{MINUS SIGN}"
LATEX = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {
        "~": r"\textasciitilde{}",
        "|": r"\textbar{}",
        "†": r"$^\dagger$",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
    }
    | {"±": r"$\pm$", "≥": r"$\geq$", MINUS: "$-$", "<": "$<$", ">": "$>$"}
)
MARKDOWN = str.maketrans({"&": "&amp;", "<": "&lt;", "*": r"\*", "`": r"\`"})


# Numbers


def number(value: float, sign: str = "") -> str:
    """Return `41.2`, with a minus sign below 0; with `sign` "+", `+41.2`. Empty for nan."""
    return "" if math.isnan(value) else f"{round(value, 1) + 0.0:{sign}.1f}".replace("-", MINUS)  # no -0.0


def signed(value: float) -> str:
    """Return `+1.2`, with a minus sign below 0."""
    return number(value, "+")


def ends(low: float, high: float, sign: str = "") -> str:
    """Return `[35.0, 47.1]`; empty for nan."""
    return "" if math.isnan(low) else f"[{number(low, sign)}, {number(high, sign)}]"


def with_interval(mean: float, low: float, high: float, sign: str = "") -> str:
    """Return `41.2 [35.0, 47.1]`, without the interval if it is nan; empty if the mean is."""
    return "" if math.isnan(mean) else f"{number(mean, sign)} {ends(low, high, sign)}".rstrip()


def p_value(p: float) -> str:
    """Return `.034`, or `<.001`; empty for nan."""
    return "" if math.isnan(p) else "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def p_equals(p: float) -> str:
    """Return `p = .034`, or `p < .001`."""
    text = p_value(p)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def plural(count: int, noun: str) -> str:
    """Return `1 run`, `2,000 runs`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def count_range(counts: Sequence[int], noun: str) -> str:
    """Return `3 seeds`, or `1 to 5 seeds`."""
    low, high = min(counts), max(counts)
    return f"{low:,} to {plural(high, noun)}" if low < high else plural(high, noun)


def several(values: Iterable[object]) -> str:
    """Return the distinct values, sorted and separated by commas."""
    return ", ".join(sorted({str(value) for value in values}))


# Markdown


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, without a line break at its end; pipes within cells are escaped."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    return "\n".join([line(heads), "|---" * len(heads) + "|", *map(line, rows)])


def markdown_list(lines: Iterable[str]) -> str:
    """Return a list with a bullet for each line."""
    return "\n".join(f"- {line}" for line in lines)


def escape_markdown(text: str) -> str:
    """Return text in one line that Markdown shows as it is; pipes are escaped by `markdown_table`."""
    return " ".join(text.split()).translate(MARKDOWN)


# LaTeX and HTML


def escape_latex(text: str) -> str:
    """Return text in one line that LaTeX prints as it is; `>=` is printed as one sign."""
    return " ".join(text.split()).replace(">=", "≥").translate(LATEX)


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a `<table>`; cells are HTML."""
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in heads)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n"


# JSON


def json_text(tree: Any) -> str:
    """Return indented JSON, with null for nan, and a line break at its end."""
    return json.dumps(_with_null(tree), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _with_null(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _with_null(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_with_null(value) for value in tree]
    return None if isinstance(tree, float) and math.isnan(tree) else tree
