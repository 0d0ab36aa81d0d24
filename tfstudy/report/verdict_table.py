"""The verdicts on claims in one table: what was claimed, what was measured, and in which study."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

from tfstudy.analysis.claims import MIXED, NOT_RUN, REFUTED, SUPPORTED, UNDECIDED, ClaimVerdict, StatementVerdict
from tfstudy.report.evidence import measured, ratio_subject, subject
from tfstudy.report.markup import markdown_table
from tfstudy.runs.find import PERFORMANCE

SHOWN = 2  # statements of a claim
DECIDING = {SUPPORTED: (SUPPORTED,), REFUTED: (REFUTED,), MIXED: (REFUTED, SUPPORTED), UNDECIDED: (UNDECIDED,)}


def verdict_table(verdicts: Iterable[ClaimVerdict], details: str = "") -> str:
    """Return a Markdown table of claims.

    With `details`, the page that says more of each, its ids and studies are links, from the folder of all results.
    """
    linked = bool(details)
    rows = [
        (_id(one, details), one.verdict, one.claim.claim, _evidence(one, linked), _studies(one.statements, linked))
        for one in verdicts
    ]
    return markdown_table(("id", "verdict", "claim", "evidence", "study"), rows)


def reason(verdict: ClaimVerdict) -> str:
    """Return the reason for a verdict, and the command that runs the experiments if there are none."""
    has_runs = any(statement.conditions for statement in verdict.statements)  # then they only lack a measurement
    missing = verdict.verdict == NOT_RUN and not has_runs
    command = f"`{verdict.claim.command}`" if verdict.claim.command and missing else ""
    return ": ".join(filter(None, (verdict.reason, command)))


def has_section(verdict: ClaimVerdict) -> bool:
    """Return whether the page of claims has a section on this one: whether something of it was run."""
    return any(statement.estimate or statement.conditions for statement in verdict.statements)


def _id(verdict: ClaimVerdict, details: str) -> str:
    heading = f"{verdict.claim.id}-{verdict.verdict}".lower().replace(" ", "-")
    if not details:
        return verdict.claim.id
    return f"[{verdict.claim.id}]({details}{'#' + heading if has_section(verdict) else ''})"


def _evidence(verdict: ClaimVerdict, brief: bool) -> str:
    """Return the numbers that decide a claim, or the reason where there are none; `brief`: in a sentence or two."""
    kinds = DECIDING.get(verdict.verdict, ())
    texts = [[(one, text) for one in verdict.statements if one.verdict == kind and (text := _brief(one))]
             for kind in kinds]  # fmt: skip
    shown = [found for round_ in zip_longest(*texts) for found in round_ if found][:SHOWN]  # of each kind in turn
    if not shown:
        return _brief_reason(verdict) if brief else reason(verdict)
    others = Counter(one.verdict for one in verdict.statements) - Counter(one.verdict for one, _ in shown)
    counts = ", ".join(f"{count} {kind}" for kind, count in others.items())
    return "; ".join([*(text for _, text in shown), *([f"other statements: {counts}"] if counts else [])])


def _brief_reason(verdict: ClaimVerdict) -> str:
    """Return the reason: of one statement its first part, of a theorem also the first sentence of its note."""
    why, claim = reason(verdict), verdict.claim
    if len(verdict.statements) > 1:  # each part is on other statements, such as those that were not run
        return why
    correction = claim.note.partition(". ")[0].rstrip(".") if claim.tested_by else ""
    return ". ".join(filter(None, (why.partition("; ")[0], correction)))  # the note may correct the claim


def _brief(judged: StatementVerdict) -> str:
    """Return a statement in short: `lstm on scan length: 13.3 [11.1, 15.4], claimed: 18.2 ± 5`; empty if unmeasured."""
    if judged.statement.over:
        if judged.estimate is None:
            return ""
        return f"{ratio_subject(judged)}: {judged.estimate.interval.mean:.3g}, claimed: {judged.statement.claimed}"
    number = measured(judged).partition(" (n = ")[0]
    unit = f" ({judged.statement.metric_label})" if judged.statement.metric != "exact_match" else ""
    return f"{subject(judged)}{unit}: {number}, claimed: {judged.statement.claimed}" if number else ""


def _studies(statements: Sequence[StatementVerdict], linked: bool) -> str:
    """Return the names of the studies whose runs were used, as links to their pages if `linked`."""
    used = (Path(condition.study).name for one in statements for condition in one.conditions)
    names = [*dict.fromkeys(used), *([PERFORMANCE] if any(one.pair for one in statements) else [])]
    return ", ".join(f"[{name}]({name}/README.md)" if linked else name for name in names)
