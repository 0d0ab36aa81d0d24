"""Claims with their verdicts and the evidence, as Markdown, JSON, and for the report of a study."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from tasks.errors import one_of
from tfstudy.analysis.claims import NOT_RUN, ClaimVerdict, Measurement, StatementVerdict, judge_claim, metric_by_seed
from tfstudy.analysis.collection import Study, read_study
from tfstudy.analysis.condition_selection import candidate_conditions
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.statements import CONDITION_KEYS, METRICS, Selector, read_claims, select_claims
from tfstudy.report.markup import json_text, markdown_list, markdown_table, p_equals, with_interval

Notes = Sequence[str]
PROTOCOL = (
    "supported: the whole 95 % interval over seeds lies within the claimed bounds; refuted: the whole interval lies "
    "outside; both need p < .05 against the deciding bound (two-sided, Holm correction over the statements of the "
    "claim); otherwise undecided. A claim is supported if all its statements are, and refuted if one is",
    "percent, or BLEU points; intervals are Student's t for fewer than 10 seeds and the studentised bootstrap "
    "otherwise; if all seeds have the same result there is no p, and the interval is Wilson's within a run",
    "a verdict holds for the networks, settings and data listed with it; numbers of further seeds are estimated from "
    "the present variance",
)
FEW_SEEDS = (
    "t tests assume normally distributed results over seeds; with fewer than 6 pairs, no test without this assumption "
    "can reach p < .05"
)


def markdown(verdicts: Sequence[ClaimVerdict], notes: Notes = ()) -> str:
    """Return a table of all claims, then the evidence on each claim that was run."""
    rows = [(verdict.claim.id, verdict.verdict, verdict.claim.claim, reason(verdict)) for verdict in verdicts]
    blocks = [markdown_table(("id", "verdict", "claim", "reason"), rows)]
    for verdict in verdicts:
        if any(statement.conditions for statement in verdict.statements) or len(verdicts) == 1:
            blocks += _section(verdict)
    return "\n\n".join([*blocks, markdown_list([*PROTOCOL, *_seed_note(verdicts), *notes])]) + "\n"


def reason(verdict: ClaimVerdict) -> str:
    """Return the reason for a verdict, and the command that runs the experiments if there are none."""
    command = f"`{verdict.claim.command}`" if verdict.claim.command and verdict.verdict == NOT_RUN else ""
    return ": ".join(filter(None, (verdict.reason, command)))


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


def evidence(judged: StatementVerdict) -> str:
    """Return what was claimed, what was measured, the verdict, and the folders of the runs."""
    claimed = f"{METRICS[judged.statement.metric]} of {_subject(judged)}, claimed: {judged.statement.claimed}"
    if judged.measurement is None:
        return f"**{judged.verdict}**: {claimed}: {judged.reason}"
    unused = f"; not used (further from the preset, or fewer seeds): {judged.unused}" if judged.unused else ""
    runs = run_links(judged.conditions)
    return f"**{judged.verdict}**: {claimed}; measured: {measured(judged)}; {judged.reason}{unused}. Runs: {runs}"


def measured(judged: StatementVerdict) -> str:
    """Return `41.2 [35.0, 47.1] (n = 5), p = .034 against 50 (paired t)`."""
    measurement = judged.measurement
    if measurement is None:
        return ""
    mean, low, high, n, method = measurement.interval
    if not n:
        return "nothing measured"
    within_run = " within a run" * (method == "Wilson")
    test = f", {p_equals(judged.p)} against {measurement.bound:g} ({measurement.test})" if measurement.test else ""
    return f"{with_interval(mean, low, high)}{within_run} (n = {n}){test}"


def run_links(conditions: Iterable[Condition]) -> str:
    """Return the folders of the runs as links, grouped by parent."""
    paths = list(dict.fromkeys(run.path for condition in conditions for run in (*condition.runs, *condition.diverged)))
    texts = []
    for parent, members in groupby(paths, key=lambda path: path.parent):
        links = ", ".join(f"[{path.name.partition('-')[0]}]({path.as_posix()})" for path in members)
        texts.append(f"{parent.as_posix()} {links}")
    return "; ".join(texts) or "none"


def _subject(judged: StatementVerdict) -> str:
    selectors = [selector for selector in (judged.statement.of, judged.statement.minus) if selector]
    splits = [_split(selector) for selector in selectors]
    labels = [condition.label for condition in judged.conditions] or [_network(selector) for selector in selectors]
    if len(set(splits)) == 1 and judged.conditions:
        return f"{' minus '.join(labels)} on {splits[0]}"
    return " minus ".join(f"{label} on {split}" for label, split in zip(labels, splits, strict=True))


def _split(selector: Selector) -> str:
    words = [selector["task"], selector["split"]]
    words += [selector["test"]] if selector["test"] != "test" else []
    return " ".join([*words, f"{selector['tag']} {selector['value']}"] if selector["tag"] else words)


def _network(selector: Selector) -> str:
    settings = [f"{key}={value}" for key, value in selector.items() if key not in CONDITION_KEYS]
    preset = [] if selector["preset"] == "default" else [selector["preset"]]
    return " ".join([selector["arch"], *preset, *settings])


def _seed_note(verdicts: Sequence[ClaimVerdict]) -> Notes:
    measurements = (statement.measurement for verdict in verdicts for statement in verdict.statements)
    return (FEW_SEEDS,) if any(one and one.test and one.interval.n < 6 for one in measurements) else ()


# JSON


def as_json(verdicts: Sequence[ClaimVerdict], notes: Notes = ()) -> str:
    """Return all values, with the result of every seed; null where nothing is known."""
    all_notes = [*PROTOCOL, *_seed_note(verdicts), *notes]
    return json_text({"claims": [_claim_tree(verdict) for verdict in verdicts], "notes": all_notes})


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
    low, high = (bound if math.isfinite(bound) else None for bound in statement.bounds)
    return {
        "verdict": judged.verdict,
        "reason": judged.reason,
        "of": statement.of,
        "minus": statement.minus,
        "metric": statement.metric,
        "claimed": statement.claimed,
        "claimed_low": low,
        "claimed_high": high,
        **(_measurement_tree(judged.measurement, judged.p) if judged.measurement else {}),
        "conditions": [_condition_tree(condition, statement.metric) for condition in judged.conditions],
        "other_conditions": judged.unused,
    }


def _measurement_tree(measurement: Measurement, p: float) -> dict[str, Any]:
    mean, low, high, n, method = measurement.interval
    tree = {"mean": mean, "low": low, "high": high, "n": n, "interval": method, "against": measurement.bound, "p": p}
    return tree | {"test_of_p": measurement.test or None, "seeds_needed": measurement.seeds_needed}


def _condition_tree(condition: Condition, metric: str) -> dict[str, Any]:
    each_seed = {str(seed): value for seed, value in metric_by_seed(condition, metric).items()}
    runs, diverged = ([str(run.path) for run in members] for members in (condition.runs, condition.diverged))
    return {"label": condition.label, "each_seed": each_seed, "runs": runs, "diverged": diverged}


FORMATS: dict[str, Callable[[Sequence[ClaimVerdict], Notes], str]] = {"md": markdown, "json": as_json}


def claims_text(results: Path, ids: Iterable[str], format_: str) -> str:
    """Return the verdicts on these claims, or on all, by the runs in a folder; `UserError` for unknown names."""
    write = FORMATS[one_of("format", format_, FORMATS)]
    claims, study = select_claims(read_claims(), ids), read_study(results)
    conditions = candidate_conditions(claims, study.runs)
    return write([judge_claim(claim, conditions) for claim in claims], study.left_out_notes())


# For the report of a study


class ClaimText(NamedTuple):
    """A claim with its verdict, in words."""

    id: str
    claim: str
    verdict: str
    reason: str
    evidence: Sequence[str]  # of each statement
    source: str
    runs: Sequence[Path]


def study_claims(study: Study) -> list[ClaimText]:
    """Return the claims of which the study measured any statement; `UserError` if a file of claims is invalid."""
    claims = list(read_claims().values())
    conditions = candidate_conditions(claims, study.runs)
    verdicts = (judge_claim(claim, conditions) for claim in claims)
    return [_claim_text(verdict) for verdict in verdicts if any(judged.conditions for judged in verdict.statements)]


def _claim_text(verdict: ClaimVerdict) -> ClaimText:
    texts = [_statement_text(one) for one in verdict.statements]
    overall = verdict.reason if len(texts) > 1 else ""  # a single statement has it in its evidence
    runs = dict.fromkeys(run.path for one in verdict.statements for c in one.conditions for run in c.runs)
    claim = verdict.claim
    return ClaimText(claim.id, claim.claim, verdict.verdict, overall, texts, claim.source, list(runs))


def _statement_text(judged: StatementVerdict) -> str:
    """Return `lstm minus cnn on length, claimed: above 0; measured: 13.2 [11.0, 15.3] (n = 5); the whole ...`."""
    if not judged.conditions:
        return f"a statement without runs, claimed: {judged.statement.claimed}; {judged.reason}"
    labels = " minus ".join(condition.label for condition in judged.conditions)
    splits = ", ".join(dict.fromkeys(condition.split_label for condition in judged.conditions))
    return f"{labels} on {splits}, claimed: {judged.statement.claimed}; measured: {measured(judged)}; {judged.reason}"
