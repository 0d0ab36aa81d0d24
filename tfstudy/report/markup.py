"""Numbers and text in Markdown, LaTeX, CSV and JSON, for all that is printed or written."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tfstudy.errors import CONTROLS, printable

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("text", "md", "csv", "tex", "html", "json")  # of what a command prints
MINUS = "\N{MINUS SIGN}"
LATEX = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}", "\\": r"\textbackslash{}"}
    | {"†": r"$^\dagger$", "±": r"$\pm$", "≥": r"$\geq$", MINUS: "$-$", "<": "$<$", ">": "$>$"}
)
TAG = re.compile(r"<(?=[A-Za-z/!?])")
FORMULA = re.compile(r"[=+\-@\t\r]")  # how the text of a cell begins that a spreadsheet would compute


# Numbers


def number(value: float, sign: str = "") -> str:
    """Return `41.2`, with a minus sign below 0; with `sign` "+", `+41.2`. Empty for nan.

    With `sign` the sign is that of the exact value, as in -0.0, so one sees whether an interval includes 0.
    """
    shown = value if sign else round(value, 1) + 0.0  # no -0.0
    return "" if math.isnan(value) else f"{shown + 0.0:{sign}.1f}".replace("-", MINUS)


def ends(low: float, high: float, sign: str = "") -> str:
    """Return `[35.0, 47.1]`; empty for nan."""
    return "" if math.isnan(low) else f"[{number(low, sign)}, {number(high, sign)}]"


def significant(value: float) -> str:
    """Return a number with three significant digits, such as `0.0321` or `12,300`; empty for nan."""
    if math.isnan(value):
        return ""
    large = abs(value) >= 99.95  # which rounds to 100
    return (f"{float(f'{value:.3g}'):,.0f}" if large else f"{value:#.3g}").replace("-", MINUS)


def p_value(p: float) -> str:
    """Return `.034`, or `<.001`; empty for nan. What is significant is never rounded up to `.050`: it is `<.050`."""
    if math.isnan(p):
        return ""
    return "<.001" if p < 0.001 else "<.050" if 0.0495 <= p < 0.05 else f"{p:.3f}".removeprefix("0")


def q_equals(q: float) -> str:
    """Return `q = .034`, or `q < .001`."""
    text = p_value(q)
    return f"q < {text[1:]}" if text.startswith("<") else f"q = {text}"


def duration(seconds: float) -> str:
    """Return `45 s`, `12 min`, `3 h 20 min` or `2 d 4 h`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def short_number(size: int) -> str:
    """Return `500`, `16.1k`, `0.67M`."""
    return f"{size / 1e6:.3g}M" if size >= 100_000 else f"{size / 1e3:.3g}k" if size >= 1000 else str(size)


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
        return f"| {' | '.join(markdown_text(cell).replace('|', chr(92) + '|') for cell in cells)} |"

    return "\n".join([line(heads), "|---" * len(heads) + "|", *map(line, rows)])


def markdown_list(lines: Iterable[str]) -> str:
    """Return a list with a bullet for each line."""
    return "\n".join(f"- {markdown_text(line)}" for line in lines)


def markdown_text(text: str) -> str:
    """Return text in one line of which Markdown makes no link and no HTML: `<.001` stays, `<script>` does not."""
    return TAG.sub("&lt;", " ".join(printable(text).splitlines())).replace("](", r"]\(")


# LaTeX


def escape_latex(text: str) -> str:
    """Return text in one line that LaTeX prints as it is; `>=` is printed as one sign."""
    return " ".join(text.split()).replace(">=", "≥").translate(LATEX)


# CSV and JSON


def csv_text(frame: "pd.DataFrame") -> str:
    """Return a frame as CSV: empty for nan; text that a spreadsheet would compute gets an apostrophe before it."""
    import pandas as pd

    def safe(column: "pd.Series") -> "pd.Series":  # whole numbers stay whole where others are unknown
        texts = [f"'{one}" if isinstance(one, str) and FORMULA.match(one) else one for one in column]
        return pd.Series(texts, index=column.index, dtype=object)

    heads = safe(frame.columns.to_series())
    return frame.astype(object).apply(safe).to_csv(index=False, header=list(heads))


def json_text(tree: Any) -> str:
    """Return indented JSON and a line break, with null for nan and infinities and escapes for control characters."""
    plain = json.loads(json.dumps(tree), parse_constant=lambda nan: None)
    text = json.dumps(plain, indent=1, ensure_ascii=False) + "\n"
    return CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
