"""Verdicts on claims, and the outcomes of a check, as lines for a terminal."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from rich.text import Text

from tfstudy.analysis import claims, regression
from tfstudy.report.claims import notes_on
from tfstudy.report.listing import columns

VERDICTS = {
    claims.SUPPORTED: "green",
    claims.REFUTED: "red",
    claims.MIXED: "yellow",
    claims.UNDECIDED: "yellow",
    claims.NOT_RUN: "dim",
}
STATES = {
    regression.WORSE: "bold red",
    regression.MISSING: "red",
    regression.UNTESTED: "yellow",
    regression.UNDECIDED: "yellow",
    regression.BETTER: "green",
    regression.UNCHANGED: "green",
}


def claim_lines(tree: Mapping[str, Any], details: bool) -> list[Text | str]:
    """Return a line for each claim with its verdict and the reason, with `details` also each statement, and notes."""
    lines: list[Text | str] = []
    for claim in tree["claims"]:
        rows = [(f"{claim['id']:4}", f"{claim['verdict']:10}", claim["claim"]), ("", "", _reason(claim))]
        texts = [Text(line) for line in columns(rows)]
        texts[0].stylize("bold", 0, 4)
        texts[0].stylize(VERDICTS.get(claim["verdict"], ""), 6, 16)
        for text in texts[len(columns(rows[:1])) :]:
            text.stylize("dim")
        lines += texts
        if details:
            lines += [*columns(_statement(number, one) for number, one in enumerate(claim["statements"], 1)), ""]
    hint = [] if details else ["", "`tfstudy claims ID` lists the statements of a claim"]
    notes = [Text(line, style="dim") for line in columns(("-", note) for note in notes_on(tree, details))]
    return [*lines, *hint, *notes]


def _reason(claim: Mapping[str, Any]) -> str:
    missing = claim["verdict"] == claims.NOT_RUN and not any(one.get("conditions") for one in claim["statements"])
    command = f": `{claim['command']}`" if missing and claim.get("command") else ""
    return f"{claim['reason']}{command}"


def _statement(number: int, one: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the number and verdict of a statement, then its subject, what was measured and claimed, and the reason."""
    parts = (one["subject"], one.get("measured"), f"claimed {one['claimed']}", one["reason"])
    return (f"    {number}", one["verdict"], "; ".join(filter(None, parts)))


def check_lines(headline: str, rows: Sequence[Mapping[str, Any]]) -> list[Text | str]:
    """Return the headline of a check and a line for each condition: its state, both means in percent, the reason."""
    cells = [
        (row["state"], row["name"], _mean(row["baseline"]), "->", _mean(row["current"]), row["reason"]) for row in rows
    ]
    texts = [Text(line) for line in columns(cells, width=0)]
    for text, row in zip(texts, rows, strict=True):
        text.stylize(STATES[row["state"]], 0, len(row["state"]))
    return [Text(headline, style="bold"), *texts]


def _mean(by_seed: Mapping[str, float]) -> str:
    return f"{mean(by_seed.values()):5.1f}" if by_seed else "none"
