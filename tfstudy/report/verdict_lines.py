"""Verdicts on claims, and the outcomes of a check, as lines for a terminal."""

from collections.abc import Mapping, Sequence
from statistics import mean

from rich.text import Text

from tfstudy.analysis import claims, regression
from tfstudy.analysis.claims import ClaimVerdict, StatementVerdict
from tfstudy.analysis.regression import Outcome
from tfstudy.report.claims import protocol_for
from tfstudy.report.evidence import about, measured
from tfstudy.report.terminal import columns
from tfstudy.report.verdict_table import reason

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


def claim_lines(verdicts: Sequence[ClaimVerdict], notes: Sequence[str], details: bool) -> list[Text | str]:
    """Return a line for each claim with its verdict and the reason, with `details` also each statement, and notes."""
    lines: list[Text | str] = []
    for one in verdicts:
        rows = [(f"{one.claim.id:4}", f"{one.verdict:10}", one.claim.claim), ("", "", reason(one))]
        texts = [Text(line) for line in columns(rows)]
        texts[0].stylize("bold", 0, 4)
        texts[0].stylize(VERDICTS.get(one.verdict, ""), 6, 16)
        for text in texts[len(columns(rows[:1])) :]:
            text.stylize("dim")
        lines += texts
        if details:
            lines += [*columns(_statement(number, each) for number, each in enumerate(one.statements, 1)), ""]
    hint = [] if details else ["", "`tfstudy claims ID` lists the statements of a claim"]
    applying = protocol_for([each for one in verdicts for each in one.statements], details)
    return [*lines, *hint, *(Text(line, style="dim") for line in columns(("-", note) for note in (*applying, *notes)))]


def _statement(number: int, judged: StatementVerdict) -> tuple[str, ...]:
    """Return the number and verdict of a statement, then its subject, what was measured and claimed, and the reason."""
    parts = (about(judged), measured(judged), f"claimed {judged.statement.claimed}", judged.reason)
    return (f"    {number}", judged.verdict, "; ".join(filter(None, parts)))


def check_lines(headline: str, outcomes: Sequence[Outcome]) -> list[Text | str]:
    """Return the headline of a check and a line for each condition: its state, both means in percent, the reason."""
    cells = [
        (one.state, one.baseline.name, _mean(one.baseline.each_seed), "->", _mean(one.current), one.reason)
        for one in outcomes
    ]
    texts = [Text(line) for line in columns(cells, width=0)]
    for text, one in zip(texts, outcomes, strict=True):
        text.stylize(STATES[one.state], 0, len(one.state))
    return [Text(headline, style="bold"), *texts]


def _mean(by_seed: Mapping[int, float]) -> str:
    return f"{mean(by_seed.values()):5.1f}" if by_seed else "none"
