"""Claims with their verdicts and the evidence, as Markdown, JSON, for a terminal, and for the report of a study."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.text import Text

from tfstudy.analysis.claim_files import read_claims, select_claims
from tfstudy.analysis.claims import (
    MIXED,
    NOT_RUN,
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    ClaimVerdict,
    StatementVerdict,
    family_size,
    gather_evidence,
    judge,
    timed_ratios,
)
from tfstudy.analysis.estimates import Estimate, values_by_seed
from tfstudy.analysis.frame import Study, read_studies
from tfstudy.analysis.labels import Condition, settings_text
from tfstudy.performance.record import read_records
from tfstudy.report.evidence import about, evidence, has_section, measured, reason, settings, subject, verdict_table
from tfstudy.report.markup import json_text, markdown_list, plural
from tfstudy.report.terminal import columns
from tfstudy.runs.find import PERFORMANCE

Notes = Sequence[str]
PROTOCOL = (
    "a statement is supported if its whole interval lies within the claimed bounds, refuted if it lies outside, and "
    "otherwise undecided. A claim is supported if all its statements are, mixed if some are supported and others "
    "refuted, and refuted if all were run and all that were decided are refuted",
    "a statement that one of two conditions is higher takes the comparison of their study: difference, interval and p "
    "are those of its table. The other statements with bounds are one family of {tests}, run or not: p is {tests} "
    "times the p of one test (Student's t, two-sided, against the deciding bound), and the intervals have the level "
    "1 - .05/{tests}, so that all of them hold with 95 %. A statement that quotes a published figure is judged by "
    "runs of its own settings, within 5 points, and its family is the figures of that paper with a preset",
    "ratios of speeds that `tfstudy bench` measured are a family of their own, of {ratios}: the interval is that of "
    "the median over rounds (order statistics), at the level 1 - .05/{ratios}. Ratios of memory and FLOPs are exact. "
    "They hold for the machine and the sizes listed with them",
    "percent, BLEU points, or the unit of an instrument; where all seeds have the same result there is no p, and the "
    "interval is Wilson's over the test examples of a run, at the same level: it says nothing of other seeds",
    "a verdict holds for the networks, settings and data listed with it; numbers of further seeds are for a power of "
    "80 % if the present mean and variance are the true ones (of a published figure: if they stay)",
)
COLOURS = {
    SUPPORTED: "green",
    REFUTED: "red",
    MIXED: "yellow",
    UNDECIDED: "yellow",
    NOT_RUN: "dim",
}


def markdown(verdicts: Sequence[ClaimVerdict], notes: Notes = ()) -> str:
    """Return a table of all claims, then the evidence on each claim that was run."""
    blocks = [verdict_table(verdicts)]
    for verdict in verdicts:
        if has_section(verdict) or len(verdicts) == 1:
            blocks += _section(verdict)
    return "\n\n".join([*blocks, markdown_list([*protocol(), *notes])]) + "\n"


def protocol() -> list[str]:
    """Return the notes on how claims are judged."""
    claims = read_claims().values()
    return [line.format(tests=family_size(claims), ratios=timed_ratios(claims)) for line in PROTOCOL]


def protocol_for(statements: Sequence[StatementVerdict], details: bool) -> list[str]:
    """Return the notes of `protocol` that apply to verdicts and, with `details`, to what the statements measured."""
    ran = [one for one in statements if one.verdict != NOT_RUN]
    shown = ran if details else []
    others = [one for one in shown if not one.statement.over]
    estimates = [one.estimate for one in others if one.estimate]
    applies = (ran, estimates, len(others) < len(shown), others, any(one.more_seeds for one in estimates))
    return [note for note, applied in zip(protocol(), applies, strict=True) if applied]


def _section(verdict: ClaimVerdict) -> list[str]:
    claim = verdict.claim
    texts = {
        "Source": claim.source,
        "Literature": claim.literature,
        "Note": claim.note,
        "Not tested": claim.untested,
        "Command": f"`{claim.command}`" if claim.command else "",
    }
    details = "\n".join(f"{name}: {text.removesuffix('.')}." for name, text in texts.items() if text)
    statements = "\n".join(f"{number}. {evidence(statement)}" for number, statement in enumerate(verdict.statements, 1))
    return list(filter(None, (f"## {claim.id}: {verdict.verdict}", claim.claim, details, statements)))


# JSON


def as_json(verdicts: Sequence[ClaimVerdict], notes: Notes = ()) -> str:
    """Return all values as JSON, with the result of every seed, and null where nothing is known."""
    return json_text({"claims": [_claim_tree(verdict) for verdict in verdicts], "notes": [*protocol(), *notes]})


def _claim_tree(verdict: ClaimVerdict) -> dict[str, Any]:
    claim = verdict.claim
    keys = ("id", "claim", "source", "literature", "note", "untested", "command")
    return {key: getattr(claim, key) for key in keys} | {
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "minimum_seeds": claim.minimum_seeds,
        "statements": [_statement_tree(statement) for statement in verdict.statements],
    }


def _statement_tree(judged: StatementVerdict) -> dict[str, Any]:
    statement = judged.statement
    usable = not statement.instrument or judged.estimate is not None
    low, high = (bound if math.isfinite(bound) else None for bound in statement.bounds)
    return {
        "verdict": judged.verdict,
        "reason": judged.reason,
        "of": statement.of,
        "minus": statement.minus,
        **({"over": statement.over} if statement.over else {}),
        "subject": about(judged),
        "measured": measured(judged),
        "metric": statement.metric,
        "published": statement.published or None,
        "claimed": statement.claimed,
        "claimed_low": low,
        "claimed_high": high,
        **(_estimate_tree(judged.estimate) if judged.estimate else {}),
        "settings": [settings_text(condition) for condition in judged.conditions],
        "conditions": [
            _condition_tree(condition, values_by_seed(condition, statement, selector) if usable else {})
            for condition, selector in zip(judged.conditions, (statement.of, statement.minus), strict=False)
        ],
        "other_conditions": judged.unused,
    }


def _estimate_tree(estimate: Estimate) -> dict[str, Any]:
    mean, low, high, n, method = estimate.interval
    tested = {"against": estimate.bound, "p": estimate.p, "test_of_p": estimate.test or None}
    return {
        "mean": mean, "low": low, "high": high, "n": n, "interval": method, **tested, "tests": estimate.family,
        "more_seeds": estimate.more_seeds,
    }  # fmt: skip


def _condition_tree(condition: Condition, values: Mapping[int, float]) -> dict[str, Any]:
    each_seed = {str(seed): value for seed, value in values.items()}
    runs, diverged = ([str(run.path) for run in members] for members in (condition.runs, condition.diverged))
    return {"label": condition.label, "each_seed": each_seed, "runs": runs, "diverged": diverged}


FORMATS: dict[str, Callable[[Sequence[ClaimVerdict], Notes], str]] = {"md": markdown, "json": as_json}


def judged_claims(results: Path, ids: Iterable[str]) -> tuple[list[ClaimVerdict], list[str]]:
    """Return the verdicts on these claims, or on all, by the runs in a folder, and which runs are left out.

    `UserError` for unknown names.
    """
    known = read_claims()
    claims, studies = select_claims(known, ids), read_studies(results)
    records, ratio_tests = read_records(results / PERFORMANCE), timed_ratios(known.values())
    evidence = gather_evidence(claims, studies, family_size(known.values()), records, ratio_tests)
    notes = dict.fromkeys(note for study in studies for note in study.left_out_notes())
    return [judge(claim, evidence) for claim in claims], list(notes)


# For a terminal


def claim_lines(verdicts: Sequence[ClaimVerdict], notes: Sequence[str], details: bool) -> list[Text | str]:
    """Return a line for each claim with its verdict and the reason, with `details` also each statement, and notes."""
    lines: list[Text | str] = []
    for one in verdicts:
        rows = [(f"{one.claim.id:4}", f"{one.verdict:10}", one.claim.claim), ("", "", reason(one))]
        texts = [Text(line) for line in columns(rows)]
        texts[0].stylize("bold", 0, 4)
        texts[0].stylize(COLOURS.get(one.verdict, ""), 6, 16)
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


# For the report of a study


class ClaimText(NamedTuple):
    """A claim with its verdict, in words."""

    id: str
    claim: str
    verdict: str  # `measured in part` if some statements were not measured in this study
    reason: str
    evidence: Sequence[str]  # of each statement that the study measured, with its verdict
    source: str
    runs: Sequence[Path]


def study_claims(study: Study) -> list[ClaimText]:
    """Return the claims of which the study measured any statement; `UserError` if a file of claims is invalid."""
    known = read_claims()
    claims = list(known.values())
    found = gather_evidence(claims, [study], family_size(claims))
    verdicts = (judge(claim, found) for claim in claims)
    return [_claim_text(verdict) for verdict in verdicts if any(judged.conditions for judged in verdict.statements)]


def _claim_text(verdict: ClaimVerdict) -> ClaimText:
    known = [judged for judged in verdict.statements if judged.conditions]
    whole = len(known) == len(verdict.statements)
    left = len(verdict.statements) - len(known)
    reason = verdict.reason if whole else f"{plural(left, 'statement')} not measured in this study: `tfstudy claims`"
    if len(verdict.statements) == 1:
        reason = ""  # its evidence has it
    runs = dict.fromkeys(run.path for judged in known for c in judged.conditions for run in c.runs)
    claim, texts = verdict.claim, [_statement_text(judged) for judged in known]
    overall = verdict.verdict if whole else "measured in part"
    return ClaimText(claim.id, claim.claim, overall, reason, texts, claim.source, list(runs))


def _statement_text(judged: StatementVerdict) -> str:
    """Return `supported: lstm minus cnn on scan length, claimed: above 0; measured: 13.2 [11.0, 15.3] (n = 5); ...`."""
    start = f"{judged.verdict}: {subject(judged)}, claimed: {judged.statement.claimed}"
    found = f"; measured: {text}" if (text := measured(judged)) else ""
    return f"{start}{found}; {judged.reason}; {settings(judged)}"
