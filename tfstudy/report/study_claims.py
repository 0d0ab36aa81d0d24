"""The claims that a study has runs for, judged, as plain rows of a report."""

from tfstudy.analysis import claims, statements
from tfstudy.analysis.collection import Study
from tfstudy.report.claims import PROTOCOL, measured
from tfstudy.report.study_page import Claim, Claims


def claims_of(study: Study) -> Claims:
    """A row for each claim of which some part was measured; `UserError` if a file of claims is bad."""
    chosen = list(statements.read().values())
    rows = claims.rows_of(chosen, study.runs)
    judged = [claims.judge(claim, rows) for claim in chosen]
    return Claims([_row(one) for one in judged if any(found.conditions for found in one.findings)], PROTOCOL)


def _row(one: claims.Judged) -> Claim:
    paths = dict.fromkeys(run.path for found in one.findings for row in found.conditions for run in row.runs)
    parts = [_part(found) for found in one.findings]
    why = one.why if len(parts) > 1 else ""  # of one part it stands in the evidence
    return Claim(one.claim.id, one.claim.claim, one.verdict, why, parts, one.claim.source, list(paths))


def _part(found: claims.Finding) -> str:
    """`lstm minus cnn on length, said to be above 0: 13.2 [11.0, 15.3] (n = 5); the whole interval lies there`."""
    if not found.conditions:
        return f"a part without runs, said to be {found.statement.said}: {found.why}"
    labels = " minus ".join(row.label for row in found.conditions)
    places = ", ".join(dict.fromkeys(row.place for row in found.conditions))
    return f"{labels} on {places}, said to be {found.statement.said}: {measured(found)}; {found.why}"
