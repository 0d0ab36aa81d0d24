"""Claims with their verdicts and what they rest on, as Markdown or JSON."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from tfstudy.analysis.claims import Finding, Judged, Weighed, figures
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.statements import METRICS, NAMED, Selector
from tfstudy.report.markup import MINUS, p_value

Notes = Sequence[str]
PROTOCOL = (
    "supported: the whole 95 % interval over seeds lies within the claimed bounds; refuted: it lies wholly outside; in "
    "both cases p < .05 against the bound, two-sided, Holm over the parts of the claim; else undecided. A claim is "
    "supported if all its parts are, and refuted if one is",
    "per cent, or BLEU points; intervals are Student's below 10 seeds and the studentised bootstrap's from 10; where "
    "all seeds have the same figure there is no p, and the interval is Wilson's within a run",
    "a verdict is on the networks, settings and data that stand beside it; more seeds: a guess from the spread so far",
)
FEW = (
    "the t tests take figures of seeds for normally distributed; with fewer than 6 pairs no test without that "
    "assumption can go below .05"
)


def markdown(judged: Sequence[Judged], notes: Notes = ()) -> str:
    """A table of all, then the evidence of each claim on which there are runs."""
    lines = ["| id | verdict | claim | why |", "|---|---|---|---|"]
    for one in judged:
        cells = (one.claim.id, one.verdict, one.claim.claim, reason(one))
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    for one in judged:
        if any(found.conditions for found in one.findings) or len(judged) == 1:
            lines += ["", *_section(one)]
    return "\n".join([*lines, "", *(f"- {note}" for note in (*PROTOCOL, *_few(judged), *notes))]) + "\n"


def reason(judged: Judged) -> str:
    """Why this is the verdict, and what would make its runs if there are none."""
    command = f"`{judged.claim.command}`" if judged.claim.command and judged.verdict == "not run" else ""
    return ": ".join(filter(None, (judged.why, command)))


def _section(judged: Judged) -> list[str]:
    claim = judged.claim
    texts = {
        "Source": claim.source,
        "Literature": claim.literature,
        "Note": claim.note,
        "Not judged": claim.untested,
        "Runs are made by": f"`{claim.command}`" if claim.command else "",
    }
    told = [f"{name}: {text.removesuffix('.')}." for name, text in texts.items() if text]
    parts = [f"{number}. {evidence(found)}" for number, found in enumerate(judged.findings, 1)]
    return [f"## {claim.id}: {judged.verdict}", "", claim.claim, "", *told, *([""] if parts else []), *parts]


def evidence(found: Finding) -> str:
    """What was said, what was measured, the verdict, and the folders of the runs."""
    what = f"{METRICS[found.statement.metric]} of {_subject(found)}, said to be {found.statement.said}"
    if found.weighed is None:
        return f"**{found.verdict}**: {what}: {found.why}"
    unused = f"; rows further from the preset or with fewer seeds: {found.unused}" if found.unused else ""
    return f"**{found.verdict}**: {what}: {measured(found)}; {found.why}{unused}. Runs: {folders(found.conditions)}"


def measured(found: Finding) -> str:
    """`41.2 [35.0, 47.1] (n = 5), p = .034 against 50 (paired t)`."""
    weighed = found.weighed
    if weighed is None:
        return ""
    mean, low, high, n, method = weighed.found
    if not n:
        return "nothing measured"
    ends = "" if math.isnan(low) else f" [{_number(low)}, {_number(high)}]" + " within a run" * (method == "Wilson")
    p = p_value(found.p)
    sign = "" if p.startswith("<") else "= "
    tested = f", p {sign}{p} against {weighed.bound:g} ({weighed.test})" if weighed.test else ""
    return f"{_number(mean)}{ends} (n = {n}){tested}"


def folders(rows: Iterable[Condition]) -> str:
    """The folders of runs as links, those of one parent together."""
    paths = list(dict.fromkeys(run.path for row in rows for run in (*row.runs, *row.diverged)))
    told = []
    for parent, members in groupby(paths, key=lambda path: path.parent):
        links = ", ".join(f"[{path.name.partition('-')[0]}]({path.as_posix()})" for path in members)
        told.append(f"{parent.as_posix()} {links}")
    return "; ".join(told) or "none"


def _subject(found: Finding) -> str:
    selectors = [one for one in (found.statement.of, found.statement.minus) if one]
    if not found.conditions:
        return " minus ".join(f"{_network(one)} on {_place(one)}" for one in selectors)
    labels = [row.label for row in found.conditions]
    places = [_place(one) for one in selectors]
    if len(set(places)) == 1:
        return f"{' minus '.join(labels)} on {places[0]}"
    return " minus ".join(f"{label} on {place}" for label, place in zip(labels, places, strict=True))


def _place(selector: Selector) -> str:
    parts = [selector["task"], selector["split"]]
    parts += [selector["test"]] if selector["test"] != "test" else []
    return " ".join([*parts, f"{selector['tag']} {selector['value']}"] if selector["tag"] else parts)


def _network(selector: Selector) -> str:
    settings = [f"{key}={value}" for key, value in selector.items() if key not in NAMED]
    preset = [] if selector["preset"] == "default" else [selector["preset"]]
    return " ".join([selector["arch"], *preset, *settings])


def _number(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".replace("-", MINUS)  # no -0.0


def _few(judged: Sequence[Judged]) -> Notes:
    tested = [found.weighed for one in judged for found in one.findings if found.weighed and found.weighed.test]
    return (FEW,) if any(one.found.n < 6 for one in tested) else ()


def as_json(judged: Sequence[Judged], notes: Notes = ()) -> str:
    """All of it as plain values, with the figure of every seed; null where nothing is known."""
    tree = {"claims": [_tree(one) for one in judged], "notes": [*PROTOCOL, *_few(judged), *notes]}
    return json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _tree(judged: Judged) -> dict[str, Any]:
    claim = judged.claim
    told = {key: getattr(claim, key) for key in ("id", "claim", "source", "literature", "note", "untested", "command")}
    parts = [_part(found) for found in judged.findings]
    return {**told, "verdict": judged.verdict, "why": judged.why, "least_seeds": claim.least, "parts": parts}


def _part(found: Finding) -> dict[str, Any]:
    statement = found.statement
    low, high = (bound if math.isfinite(bound) else None for bound in statement.bounds)
    told: dict[str, Any] = {"verdict": found.verdict, "why": found.why, "of": statement.of, "minus": statement.minus}
    told |= {"metric": statement.metric, "said": statement.said, "said_low": low, "said_high": high}
    told |= _weighed(found.weighed, found.p) if found.weighed else {}
    return told | {"rows": [_row(row, statement.metric) for row in found.conditions], "other_rows": found.unused}


def _weighed(weighed: Weighed, p: float) -> dict[str, Any]:
    mean, low, high, n, method = weighed.found
    told = {"mean": mean, "low": low, "high": high, "n": n, "interval": method, "against": weighed.bound, "p": p}
    told |= {"test_of_p": weighed.test or None, "seeds_needed": weighed.needed}
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in told.items()}


def _row(row: Condition, metric: str) -> dict[str, Any]:
    each = {str(seed): value for seed, value in figures(row, metric).items()}
    runs, diverged = ([str(run.path) for run in members] for members in (row.runs, row.diverged))
    return {"label": row.label, "each_seed": each, "runs": runs, "diverged": diverged}


FORMATS: dict[str, Callable[[Sequence[Judged], Notes], str]] = {"md": markdown, "json": as_json}
