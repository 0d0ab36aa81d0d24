"""A table as Markdown, CSV, LaTeX, HTML or JSON."""

import csv
import html
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from tfstudy.analysis.metrics import NAMES
from tfstudy.report.tables import OVER, Line, Table

MINUS = "\N{MINUS SIGN}"
SPECIAL = {**{letter: f"\\{letter}" for letter in "&%$#_{}"}, "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {"\\": r"\textbackslash{}", "±": r"$\pm$", "≥": r"$\geq$", MINUS: "$-$", "<": "$<$", ">": "$>$"}


def columns(table: Table) -> list[dict[str, str]]:
    """Column to text for every line; columns in which nothing stands are left out."""
    metrics = {line.metric for line in table.lines}
    found = [_cells(line, table.baseline, len(metrics) > 1) for line in table.lines]
    several = len({line.row.task for line in table.lines}) > 1
    names = [name for name in found[0] if any(cells[name] for cells in found) and (name != "task" or several)]
    return [{name: cells[name] for name in names} for cells in found]


def _cells(line: Line, baseline: str, mixed: bool) -> dict[str, str]:
    row, against, metric = line.row, line.against, NAMES.get(line.metric, line.metric.replace("_", " "))
    return {
        "task": row.task,
        "split": row.place,
        **({row.tag: row.value} if row.tag else {}),
        "architecture": row.arch,
        "preset": row.name,
        "n": f"{len(row.runs)}" + (f", {len(row.diverged)} diverged" if row.diverged else ""),
        **({"metric": metric, "value": figure(line)} if mixed else {metric: figure(line)}),
        "group": line.group,
        f"to {baseline}": _difference(line) if against else "",
        "p": p_value(against.p) if against and not math.isnan(against.p) else "",
        "published": quoted(line.published),
        "chrF": _number(line.chrf),
        "oracle length": _number(line.oracle),
        "published (oracle)": quoted(line.published_oracle),
        OVER: _number(line.over_lengths) if line.published_over else "",
        "published (over lengths)": quoted(line.published_over),
        "L90": line.reaches.get("L90", ""),
        "L50": line.reaches.get("L50", ""),
        "parameters": f"{line.parameters:,}" if line.parameters else "",
        "seconds": f"{line.seconds:,.0f}" if not math.isnan(line.seconds) else "",
    }


def figure(line: Line) -> str:
    """`41.2 [35.0, 47.1]`; nothing if nothing was measured."""
    if math.isnan(line.mean):
        return ""
    return _number(line.mean) + (" [{:.1f}, {:.1f}]".format(*line.interval) if line.interval else "")


def _difference(line: Line) -> str:
    found = line.against.found if line.against else None
    if not found or math.isnan(found.mean):
        return ""
    ends = "" if math.isnan(found.low) else f" [{signed(found.low)}, {signed(found.high)}]"
    return signed(found.mean) + ends


def p_value(p: float) -> str:
    """`.034`, or `<.001`."""
    return "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def signed(value: float) -> str:
    """`+1.2`, with a minus sign where it is less than 0."""
    return f"{round(value, 1) + 0.0:+.1f}".replace("-", MINUS)  # no -0.0


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1f}"


def quoted(figures: Sequence[dict[str, str]]) -> str:
    """Published figures with their papers."""
    texts = []
    for found in figures:
        plain = found["spread"].replace(".", "", 1).isdigit()
        spread = f" ± {found['spread']}" if plain else f" ({found['setting']})" * bool(found["spread"])
        texts.append(f"{found['value']}{spread} {found['arch']} ({found['paper']})")
    return "; ".join(texts)


def _head(name: str) -> str:
    return re.sub(r" \(.*\)$", "", name)


def markdown(table: Table) -> str:
    """For a README or a report."""
    found = columns(table)
    lines = [f"| {' | '.join(map(_head, found[0]))} |", "|---" * len(found[0]) + "|"]
    for line, cells in zip(table.lines, found, strict=True):
        strong = {figure(line)} if line.top else set()
        texts = (f"**{text}**" if text in strong else text for text in cells.values())
        lines.append(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in texts)} |")
    return "\n".join([*lines, "", *(f"- {note}" for note in table.notes)]) + "\n"


def latex(table: Table) -> str:
    """A `tabular` with the rules of booktabs, its notes as comments."""
    found = columns(table)
    left = {"task", "split", "architecture", "preset", "published", "group"}
    lines = [
        *(f"% {note}" for note in table.notes),
        rf"\begin{{tabular}}{{{''.join('lr'[n not in left] for n in found[0])}}}",
    ]
    lines += [r"\toprule", " & ".join(_escaped(_head(name)) for name in found[0]) + r" \\", r"\midrule"]
    place = table.lines[0].row.where
    for line, cells in zip(table.lines, found, strict=True):
        if line.row.where != place:
            lines.append(r"\addlinespace")
            place = line.row.where
        texts = (
            rf"\textbf{{{_escaped(t)}}}" if line.top and t == figure(line) else _escaped(t) for t in cells.values()
        )
        lines.append(" & ".join(texts) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _escaped(text: str) -> str:
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def hypertext(table: Table) -> str:
    """A `<table>` and its notes."""
    found = columns(table)
    heads = "".join(f'<th scope="col">{html.escape(_head(name))}</th>' for name in found[0])
    body = []
    for line, cells in zip(table.lines, found, strict=True):
        texts = (
            f"<strong>{html.escape(t)}</strong>" if line.top and t == figure(line) else html.escape(t)
            for t in cells.values()
        )
        body.append("<tr>" + "".join(f"<td>{text}</td>" for text in texts) + "</tr>")
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    rows = "\n".join(body)
    return f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n<ul>{notes}</ul>\n"


def values(line: Line) -> dict[str, Any]:
    """A line as plain numbers and texts, with the folders of its runs; None where nothing is known."""
    row, against = line.row, line.against
    low, high = line.interval or (None, None)
    found: dict[str, Any] = {
        "task": row.task, "split": row.split, "test": row.test, "tag": row.tag, "value": row.value, "arch": row.arch,
        "preset": row.preset, "settings": row.settings, "metric": line.metric, "n": len(row.runs),
        "experiment": row.experiment,
        "examples": max((part.n for part in row.measured().values()), default=0),
        "diverged": len(row.diverged), "mean": line.mean, "low": low, "high": high, "interval": line.method,
        "group": line.group, "best_group": line.top, "baseline": against.second.label if against else None,
        "difference": against.found.mean if against else None, "difference_low": against.found.low if against else None,
        "difference_high": against.found.high if against else None, "p": against.p if against else None,
        "test_of_p": against.found.method if against else None, "oracle_length": line.oracle, "chrf": line.chrf,
        "over_lengths": line.over_lengths, "L90": line.reaches.get("L90"), "L50": line.reaches.get("L50"),
        "parameters": line.parameters, "train_seconds": line.seconds,
        "each_seed": {str(seed): value for seed, value in row.by_seed(line.metric).items()},
        "published": [
            {key: one[key] for key in ("paper", "arch", "value", "spread", "source", "place")} for one in line.published
        ],
        "runs": [str(run.path) for run in row.runs],
    }  # fmt: skip
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in found.items()}


def as_json(table: Table) -> str:
    """All values, each run's folder, and the notes."""
    tree = {"baseline": table.baseline or None, "rows": [values(line) for line in table.lines], "notes": table.notes}
    return json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(table: Table) -> str:
    """A line a row; what is a list is set apart by blanks."""
    out = io.StringIO()
    found = [values(line) for line in table.lines]
    writer = csv.DictWriter(out, fieldnames=list(found[0]), lineterminator="\n")
    writer.writeheader()
    for one in found:
        one["each_seed"] = " ".join(f"{seed}:{value:.6g}" for seed, value in one["each_seed"].items())
        one["published"] = "; ".join(
            f"{figure['value']} {figure['arch']} ({figure['paper']})" for figure in one["published"]
        )
        writer.writerow(one | {"runs": " ".join(one["runs"])})
    return out.getvalue()


FORMATS: dict[str, Callable[[Table], str]] = {
    "md": markdown,
    "csv": as_csv,
    "tex": latex,
    "html": hypertext,
    "json": as_json,
}
