"""Claims with their verdicts and the evidence, as Markdown, JSON, for a terminal, and for the report of a study."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfstudy.analysis.claim_files import read_claims, select_claims
from tfstudy.analysis.claims import (
    MIXED,
    NOT_RUN,
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    ClaimVerdict,
    StatementVerdict,
    gather_evidence,
    judge,
)
from tfstudy.analysis.estimates import Estimate, values_by_seed
from tfstudy.analysis.frame import Study, read_studies
from tfstudy.analysis.labels import Condition, settings_text
from tfstudy.performance.record import read_records
from tfstudy.report.evidence import about, evidence, has_section, measured, reason, settings, subject, verdict_table
from tfstudy.report.markup import markdown_list, plural
from tfstudy.report.render import Cells, Listing, Part
from tfstudy.runs.find import PERFORMANCE

Notes = Sequence[str]
PROTOCOL = (
    "a statement is supported if its mean lies within the claimed bounds and q is below .05, refuted if it lies "
    "outside and q is below .05, and otherwise undecided. A claim is supported if all its statements are, mixed if "
    "some are supported and others refuted, and refuted if all were run and all that were decided are refuted",
    "all statements that were measured are one family: q is p (Student's t, Welch's, or a score test of a share, "
    "two-sided, against the deciding bound) adjusted for their number (Benjamini-Hochberg), so that 5 % of what is "
    "decided is expected to be wrong. A statement that one of two conditions is higher takes the comparison of their "
    "study: difference, interval and q are those of its table. A statement that quotes a published figure is judged by "
    "runs of its own settings: by the 95 % prediction interval of a replication, and 5 points",
    "ratios of speeds that `tfstudy bench` measured are medians over rounds, tested by signs, in the same family. "
    "Ratios of memory and FLOPs are exact. They hold for the machine and the sizes listed with them",
    "percent, BLEU points, or the unit of an instrument, with plain 95 % intervals; where all seeds have the same "
    "result the interval is Wilson's over the test examples of a run: it says nothing of other seeds",
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
    return "\n\n".join([*blocks, markdown_list([*PROTOCOL, *notes])]) + "\n"


def protocol_for(statements: Sequence[StatementVerdict], details: bool) -> list[str]:
    """Return the notes of `PROTOCOL` that apply to verdicts and, with `details`, to what the statements measured."""
    ran = [one for one in statements if one.verdict != NOT_RUN]
    shown = ran if details else []
    others = [one for one in shown if not one.statement.over]
    estimates = [one.estimate for one in others if one.estimate]
    applies = (ran, estimates, len(others) < len(shown), others, any("more" in one.reason for one in others))
    return [note for note, applied in zip(PROTOCOL, applies, strict=True) if applied]


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


def values(verdicts: Sequence[ClaimVerdict], notes: Notes = ()) -> dict[str, Any]:
    """Return all values for JSON, with the result of every seed."""
    return {"claims": [_claim_tree(verdict) for verdict in verdicts], "notes": [*PROTOCOL, *notes]}


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
        **(_estimate_tree(judged.estimate, judged.q) if judged.estimate else {}),
        "settings": [settings_text(condition) for condition in judged.conditions],
        "conditions": [
            _condition_tree(condition, values_by_seed(condition, statement, selector) if usable else {})
            for condition, selector in zip(judged.conditions, (statement.of, statement.minus), strict=False)
        ],
        "other_conditions": judged.unused,
    }


def _estimate_tree(estimate: Estimate, q: float) -> dict[str, Any]:
    mean, low, high, n, method = estimate.interval
    tested = {"against": estimate.bound, "p": estimate.p, "q": q, "test_of_p": estimate.test or None}
    return {"mean": mean, "low": low, "high": high, "n": n, "interval": method, **tested}


def _condition_tree(condition: Condition, values: Mapping[int, float]) -> dict[str, Any]:
    each_seed = {str(seed): value for seed, value in values.items()}
    runs, diverged = ([str(run.path) for run in members] for members in (condition.runs, condition.diverged))
    return {"label": condition.label, "each_seed": each_seed, "runs": runs, "diverged": diverged}


def judged_claims(results: Path, ids: Iterable[str]) -> tuple[list[ClaimVerdict], list[str]]:
    """Return the verdicts on these claims, or on all, by the runs in a folder, and which runs are left out.

    `UserError` for unknown names.
    """
    known = read_claims()
    shown, studies = select_claims(known, ids), read_studies(results)
    evidence = gather_evidence(list(known.values()), studies, read_records(results / PERFORMANCE))
    notes = dict.fromkeys(note for study in studies for note in study.left_out_notes())
    verdicts = {one.claim.id: one for one in judge(list(known.values()), evidence)}
    return [verdicts[claim.id] for claim in shown], list(notes)


# For a terminal


def listing(verdicts: Sequence[ClaimVerdict], notes: Sequence[str], details: bool) -> Listing:
    """Return the claims with their verdicts and the reasons, with `details` also each statement, and all values."""
    parts: list[Part] = []
    for group in [[one] for one in verdicts] if details else [verdicts]:
        frame = {
            "id": [one.claim.id for one in group],
            "verdict": [one.verdict for one in group],
            "claim": ["\n".join(filter(None, (one.claim.claim, reason(one)))) for one in group],
        }
        parts.append(Cells(frame, left=list(frame), folded=frozenset(("claim",)), headless=True, styles=COLOURS))
        if details and (statements := group[0].statements):
            parts.append(_statements(statements))
    hint = [] if details else ["`tfstudy claims ID` lists the statements of a claim"]
    applying = protocol_for([each for one in verdicts for each in one.statements], details)
    return Listing(parts, [*hint, *applying, *notes], lambda: values(verdicts, notes))


def _statements(judged: Sequence[StatementVerdict]) -> Cells:
    """Return the verdict on each statement, with its subject, what was measured and claimed, and the reason."""
    texts = [(about(one), measured(one), f"claimed {one.statement.claimed}", one.reason) for one in judged]
    frame = {
        "statement": [f"  {number}" for number in range(1, len(judged) + 1)],
        "verdict": [one.verdict for one in judged],
        "evidence": ["; ".join(filter(None, parts)) for parts in texts],
    }
    return Cells(frame, left=list(frame), folded=frozenset(("evidence",)), headless=True, styles=COLOURS)


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
    claims = list(read_claims().values())
    verdicts = judge(claims, gather_evidence(claims, [study]))
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
