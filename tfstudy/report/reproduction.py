"""A paper's figures beside ours, as Markdown or JSON, and the list of papers; terminals: `reproduction_terminal`."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tfstudy.analysis import published, reproduction
from tfstudy.analysis.collection import Study, read_studies
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.counterparts import command, counts, has_preset
from tfstudy.analysis.estimates import metric_by_seed
from tfstudy.analysis.intervals import Interval
from tfstudy.analysis.published import Figure
from tfstudy.analysis.reproduction import AGREES, DIFFERS, UNDECIDED, VERDICTS, Reproduction, family_size
from tfstudy.analysis.settings_text import settings_text
from tfstudy.report.evidence import run_links
from tfstudy.report.markup import json_text, markdown_list, markdown_table, plural, with_interval
from tfstudy.report.reproduction_terminal import terminal_text
from tfstudy.report.text_columns import aligned
from tfstudy.runs.metrics import metric_name

PROTOCOL = (
    "a figure is compared only with runs of its own settings: of the preset that has them, with nothing changed. Other "
    "settings: our nearest result on the same test set, which neither agrees nor differs",
    "difference: ours minus theirs, with Welch's interval if theirs has a standard error, else Student's interval of "
    "ours. Its level is {level:.4g} % (1 - .05/{m}, as a preset has the settings of {figures} of this paper), so that "
    "all intervals of the paper hold together with 95 %",
    "agrees: the whole interval lies within {tolerance:g} points; differs: the whole interval lies outside; undecided: "
    "neither, or fewer than 3 seeds (5 on split schemes with high variance). Bounds count on one side only; the best "
    "of k seeds has no interval and is compared with the best of our first k",
    "±: as the paper prints it. A standard deviation that the paper divides by n counts as sd / sqrt(n - 1)",
)
PAPER_HEADS = [("", "with", "other", "no", ""), ("paper", "preset", "settings", "counterpart", "citation")]
PLURAL = {AGREES: "agree", DIFFERS: "differ"}
HEADS = ("figure", "split", "network", "metric", "published", "ours", "seeds", "difference", "verdict", "reason")


class Page(NamedTuple):
    """What is printed of a paper."""

    paper: str
    reproductions: Sequence[Reproduction]
    tolerance: float
    left_out: Sequence[str]  # of the records

    @property
    def counts(self) -> str:
        """How many figures have each verdict: `20 figures of Lake & Baroni 2018: 1 agrees, 0 differ, ...`."""
        found = Counter(one.verdict for one in self.reproductions)
        shown = [verdict for verdict in VERDICTS if found[verdict] or verdict in (AGREES, DIFFERS, UNDECIDED)]
        listed = ", ".join(f"{found[one]} {one if found[one] == 1 else PLURAL.get(one, one)}" for one in shown)
        return f"{plural(len(self.reproductions), 'figure')} of {published.papers()[self.paper].short}: {listed}"

    @property
    def notes(self) -> list[str]:
        """How to read it, the command that runs the experiments, and what was left out."""
        m = family_size(self.paper)
        facts = {"tolerance": self.tolerance, "level": 100 * (1 - 0.05 / m), "m": m, "figures": plural(m, "figure")}
        run = command(self.paper)
        run_lines = [f"`{run}` runs the experiments to compare with these figures"] if run else []
        # a paper without any preset has nothing to compare, so how it is done needs no word
        lines = PROTOCOL if any(has_preset(found.figure) for found in self.reproductions) else PROTOCOL[:1]
        return [*(line.format(**facts) for line in lines), *run_lines, *self.left_out]


def markdown(page: Page) -> str:
    """Return a table with a row for each published figure, then the settings and folders of our runs."""
    table = markdown_table(HEADS, map(_cells, page.reproductions))
    lines = dict.fromkeys(f"{c.label}: {settings_text(c)}" for found in page.reproductions for c in found.conditions)
    runs = dict.fromkeys(run_links(found.conditions) for found in page.reproductions if found.conditions)
    return f"{table}\n\n{markdown_list([*page.notes, *lines, *(f'runs: {links}' for links in runs)])}\n"


def _cells(found: Reproduction) -> tuple[str, ...]:
    figure, ours = found.figure, found.ours
    own = [condition.label for condition in found.conditions]
    return (
        figure.id, figure.split, figure.arch, metric_name(figure.metric), published_text(figure),
        f"{interval_text(ours)} ({', '.join(own)})" if ours else "", f"{ours.n}" if ours else "",
        interval_text(found.difference, "+"), found.verdict, "; ".join(filter(None, (found.reason, found.unlike))),
    )  # fmt: skip


def published_text(figure: Figure) -> str:
    """Return `69.2 ± 8.2 (n = 5)`."""
    return f"{figure.text} (n = {figure.n})" if figure.n else figure.text


def interval_text(interval: Interval | None, sign: str = "") -> str:
    """Return `47.2 [31.8, 62.6]`, and without an interval `47.2`, or `47.2 (best)`."""
    if interval is None:
        return ""
    best = " (best)" if interval.method == "best" and not sign else ""
    return with_interval(interval.mean, interval.low, interval.high, sign) + best


def as_json(page: Page) -> str:
    """Return all values, with the result of every seed; null where nothing is known."""
    m = family_size(page.paper)
    head = {"paper": page.paper, "tolerance": page.tolerance, "family": m, "level": 1 - 0.05 / m}
    results = [_tree(found) for found in page.reproductions]
    return json_text({**head, "command": command(page.paper), "results": results, "notes": page.notes})


def _tree(found: Reproduction) -> dict[str, Any]:
    return {
        "figure": msgspec.to_builtins(found.figure),
        "verdict": found.verdict,
        "reason": found.reason,
        "unlike": found.unlike,
        "ours": found.ours._asdict() if found.ours else None,
        "theirs": found.theirs._asdict(),
        "difference": found.difference._asdict() if found.difference else None,
        "conditions": [
            {
                "label": condition.label,
                "settings": settings_text(condition),
                "each_seed": {str(seed): x for seed, x in metric_by_seed(condition, found.figure.metric).items()},
                "runs": [str(run.path) for run in (*condition.runs, *condition.diverged)],
            }
            for condition in found.conditions
        ],
    }


def text(page: Page) -> str:
    """Return a table for a terminal, with the reasons below."""
    return terminal_text(page.counts, page.reproductions, page.notes)


FORMATS: dict[str, Callable[[Page], str]] = {"text": text, "md": markdown, "json": as_json}


def paper_lines() -> list[str]:
    """Return a line for each paper between a head and notes: its name, the numbers of its figures, its citation."""
    citations, figures = published.papers(), published.all_figures()
    names = dict.fromkeys(figure.paper for figure in figures)
    rows = [(name, *map(str, counts(published.figures_of(name))), citations[name].short) for name in names]
    rows = [*PAPER_HEADS, *rows, ("all", *map(str, counts(figures)), plural(len(names), "paper"))]
    return [
        *aligned(rows, right=(1, 2, 3)),
        "with preset: figures whose settings a preset has; other settings: figures beside",
        "our nearest runs; no counterpart: the task, network or metric is missing here",
    ]


def paper_values() -> list[dict[str, Any]]:
    """Return each paper with the numbers of its figures: with a preset, of other settings, without a counterpart."""
    keys = ("with_preset", "other_settings", "no_counterpart")
    citations = published.papers()
    return [
        {"paper": name, "citation": citations[name].short, **dict(zip(keys, counts(figures), strict=True))}
        for name in dict.fromkeys(figure.paper for figure in published.all_figures())
        if (figures := published.figures_of(name))
    ]


def reproduction_text(results: Path, paper: str, tolerance: float, format_: str) -> str:
    """Return a paper's figures beside those of the finished runs in a folder; `UserError` for an unknown paper."""
    studies = read_studies(results)
    known = [condition for study in studies for condition in conditions(study.runs)]  # each of one study, as in claims
    found = reproduction.compare_paper(paper, known, tolerance)
    prefixes = tuple({f"{one.figure.task}-" for one in found})
    every = [one for study in studies for one in study.left_out]
    left_out = [one for one in every if one[0].absolute().parents[1].name.startswith(prefixes)]  # TASK-SPLIT
    return FORMATS[format_](Page(paper, found, tolerance, Study(results, [], left_out).left_out_notes()))
