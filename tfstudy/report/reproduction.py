"""A paper's results beside ours, as Markdown or JSON."""

from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

from tasks.errors import one_of
from tfstudy.analysis import reproduction
from tfstudy.analysis.collection import read_study
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.intervals import Interval
from tfstudy.analysis.published import Published, has_deviation
from tfstudy.analysis.reproduction import Reproduction
from tfstudy.report.claims import Notes, run_links
from tfstudy.report.markup import json_text, markdown_list, markdown_table, with_interval

PROTOCOL = (
    "difference: ours minus theirs, with its 95 % interval: Welch's with a published ±, which is taken for a standard "
    "deviation over the paper's seeds (see the paper for its meaning); otherwise that of our seeds only",
    "agrees: the whole interval lies within {tolerance:g} points; differs: the whole interval lies outside; "
    "underpowered: neither, or fewer than 3 seeds (5 on split schemes with high variance). The best of k seeds has no "
    "interval: it agrees if our best of as many seeds is within {tolerance:g} points",
    "unlike: our network or settings differ from the paper's as described, so this is not a replication",
    "checked: primary results were read in the paper or its released files, secondary ones in a later paper",
)
HEADS = (
    "split", "network", "setting", "metric", "published", "checked", "ours", "n", "condition", "difference", "verdict",
    "reason",
)  # fmt: skip
SUFFIXES = {"Wilson": " within a run", "best": " (best)"}  # by method of the interval


def markdown(reproductions: Sequence[Reproduction], tolerance: float, command: str, notes: Notes = ()) -> str:
    """Return a table with a row for each published result, then the folders of our runs."""
    runs = dict.fromkeys(run_links(figure.conditions) for figure in reproductions if figure.conditions)
    all_notes = [*_notes(tolerance, command), *notes, *(f"runs: {links}" for links in runs)]
    return f"{markdown_table(HEADS, map(_cells, reproductions))}\n\n{markdown_list(all_notes)}\n"


def paper_lines() -> list[str]:
    """Return a line for each paper: its name, the number of its results, and its citation."""
    papers = sorted(reproduction.papers().items())
    return [f"{name:18}{len(figures):3} results  {figures[0]['paper']}" for name, figures in papers]


def check_request(paper: str, format_: str) -> None:
    """Raise `UserError` for an unknown paper or format."""
    reproduction.paper(paper)
    one_of("format", format_, FORMATS)


def reproduction_text(results: Path, paper: str, tolerance: float, format_: str) -> str:
    """Return a paper's results beside those of the finished runs in a folder; `UserError` for unknown names."""
    check_request(paper, format_)
    study = read_study(results)
    comparisons = reproduction.compare_paper(paper, conditions(study.runs), tolerance)
    return FORMATS[format_](comparisons, tolerance, reproduction.command(paper), study.left_out_notes())


def _notes(tolerance: float, command: str = "") -> list[str]:
    lines = [line.format(tolerance=tolerance) for line in PROTOCOL]
    return [*lines, f"`{command}` runs the experiments beside these results"] if command else lines


def _cells(reproduction: Reproduction) -> tuple[str, ...]:
    figure, unlike = reproduction.published, reproduction.unlike
    labels = ", ".join(condition.label for condition in reproduction.conditions)
    return (
        figure["split"], figure["arch"], shorten(figure["setting"], 60, placeholder=" ..."), figure["metric"],
        _published(figure), figure["checked"],
        _interval(reproduction.ours) + (SUFFIXES.get(reproduction.ours.method, "") if reproduction.ours else ""),
        f"{reproduction.ours.n}" if reproduction.ours else "", f"{labels} ({unlike})" if unlike else labels,
        _interval(reproduction.difference, "+"), f"{reproduction.verdict}, unlike" if unlike else reproduction.verdict,
        reproduction.reason,
    )  # fmt: skip


def _published(figure: Published) -> str:
    spread = figure["spread"]
    details = [spread] if spread and not has_deviation(figure) else []
    details += [f"n = {figure['seeds']}" if figure["seeds"].isdigit() else figure["seeds"]] if figure["seeds"] else []
    text = figure["value"] + (f" ± {spread}" if has_deviation(figure) else "")
    return f"{text} ({', '.join(details)})" if details else text


def _interval(interval: Interval | None, sign: str = "") -> str:
    return with_interval(interval.mean, interval.low, interval.high, sign) if interval else ""


def as_json(reproductions: Sequence[Reproduction], tolerance: float, command: str, notes: Notes = ()) -> str:
    """Return all values; null where nothing is known."""
    results = [_tree(reproduction) for reproduction in reproductions]
    all_notes = [*_notes(tolerance), *notes]
    return json_text({"tolerance": tolerance, "command": command, "results": results, "notes": all_notes})


def _tree(reproduction: Reproduction) -> dict[str, Any]:
    return {
        "published": reproduction.published,
        "verdict": reproduction.verdict,
        "reason": reproduction.reason,
        "unlike": reproduction.unlike,
        "ours": reproduction.ours._asdict() if reproduction.ours else None,
        "difference": reproduction.difference._asdict() if reproduction.difference else None,
        "conditions": [condition.label for condition in reproduction.conditions],
        "runs": [str(run.path) for c in reproduction.conditions for run in (*c.runs, *c.diverged)],
    }


FORMATS: dict[str, Callable[[Sequence[Reproduction], float, str, Notes], str]] = {"md": markdown, "json": as_json}
