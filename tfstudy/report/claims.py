"""Claims with their verdicts and the evidence, as Markdown, JSON, for a terminal, and for the report of a study.

The evidence is one sentence for each statement, made of its numbers.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import msgspec

from tfstudy.analysis import claim_files
from tfstudy.analysis.claim_files import METRICS, ROWS, TAKE, Claim, Selector, Statement
from tfstudy.analysis.claims import (
    NOT_RUN,
    OPEN,
    REFUTED,
    SUPPORTED,
    Estimate,
    gather_evidence,
    judge,
    values_by_seed,
    verdict,
)
from tfstudy.analysis.frame import Study, read_studies
from tfstudy.analysis.stats import EXACT
from tfstudy.analysis.summary import DIVERGED, rows_of
from tfstudy.config.trees import short_key
from tfstudy.errors import one_of
from tfstudy.performance.record import read_records
from tfstudy.report.markup import listed, markdown_list, markdown_table, number, plural, q_equals, significant
from tfstudy.report.render import Cells, Listing, Part
from tfstudy.runs.find import PERFORMANCE

NETWORKS = {"lstm": "LSTM", "cnn": "CNN", "transformer": "Transformer", "mingru": "minGRU"}  # in sentences
PROTOCOL = (
    "a statement is supported or refuted if its mean lies within or outside the claimed bounds and q is below .05, "
    "otherwise open; q is p adjusted for all statements, or that of the comparison in its study "
    "(docs/concepts/statistics.md)",
    "scores are exact match; intervals are 95 %; a verdict holds for the settings and data of these runs, which "
    "`--format json` names",
)
COLOURS = {SUPPORTED: "green", REFUTED: "red", OPEN: "yellow", NOT_RUN: "dim"}
Judged = Any  # a row of `analysis.claims.judge`


class ClaimText(NamedTuple):
    """A claim, its verdict, the evidence in one sentence, and its statements as rows of `judge`."""

    claim: Claim
    verdict: str
    evidence: str
    statements: Sequence[Judged] = ()


def judged_claims(results: Path, ids: Iterable[str]) -> tuple[list[ClaimText], list[str]]:
    """Return these claims, or all, with their verdicts by the runs in a folder, and which runs are left out.

    `UserError` for unknown names.
    """
    known = claim_files.read_claims()
    names = [one_of("claim", name.upper(), known) for name in dict.fromkeys(ids)] or list(known)
    studies = read_studies(results)
    found = claim_texts([*known.values()], studies, read_records(results / PERFORMANCE))
    notes = dict.fromkeys(note for study in studies for note in study.left_out_notes())
    return [found[name] for name in names], list(notes)


def study_claims(study: Study) -> list[ClaimText]:
    """Return the claims of which the study measured any statement; `UserError` if a file of claims is invalid."""
    found = claim_texts([*claim_files.read_claims().values()], [study])
    return [one for one in found.values() if any(judged.conditions for judged in one.statements)]


def claim_texts(claims: Sequence[Claim], studies: Sequence[Study], records: Sequence[Any] = ()) -> dict[str, ClaimText]:
    """Return claims, by id, judged by the runs of studies and the records of `tfstudy bench`."""
    statements: dict[str, list[Judged]] = {claim.id: [] for claim in claims}
    for row in rows_of(judge(claims, gather_evidence(claims, studies, records))):
        statements[row.claim].append(row)
    out = {}
    for claim in claims:
        own = statements[claim.id]
        said = verdict(own) if own else claim.shown_as
        out[claim.id] = ClaimText(claim, said, _evidence(claim, own), own)
    return out


def _evidence(claim: Claim, statements: Sequence[Judged]) -> str:
    """Return the sentence of the first statement of those that decide a claim: of the most frequent verdict."""
    if not statements:
        return ". ".join(filter(None, [f"tested by {claim.tested_by}", claim.note.partition(". ")[0].rstrip(".")]))
    if all(one.verdict == NOT_RUN for one in statements):
        return f"run `{claim.command}`" if not any(row.conditions for row in statements) else statements[0].reason
    counts = Counter(one.verdict for one in statements if one.verdict in (SUPPORTED, REFUTED)) or {OPEN: 1}
    most = max(sorted(counts), key=lambda name: counts[name])
    return next(f"{about(one)}: {sentence(one)}" for one in statements if one.verdict == most)


# Sentences


def about(judged: Judged, said: Collection[str] = ()) -> str:
    """Return where and with which settings a statement was measured, without those said before: `On scan length`."""
    one = judged.statement
    shared = [word for word in _sides(one)[0] if word not in said]
    place = f"In {one.of['work']}" if one.over else f"On {_place(one.of)}"
    return " with ".join(filter(None, [place, ", ".join(shared)]))


def sentence(judged: Judged, said: Collection[str] = (), usual: int = 0) -> str:
    """Return a statement, its number and its verdict as one reads them aloud, without what `about` says.

    Such as `the LSTM is 14.0 points above the Transformer [13.0, 14.9], claimed higher: supported (q < .001)`. What was
    claimed is left out if it is among what was `said`, and the number of seeds if it is the `usual` one.
    """
    seeds = f"n = {judged.n}" if judged.n not in (0, usual) and judged.interval != EXACT else ""
    undecided = judged.verdict == OPEN and judged.reason  # why q decides nothing
    q = "" if judged.q != judged.q or undecided else q_equals(judged.q)
    why = ", ".join(filter(None, [seeds, q, judged.reason]))
    claimed = "" if _claimed(judged.statement) in said else f", {_claimed(judged.statement)}"
    return f"{_measured(judged)}{claimed}: {judged.verdict}{f' ({why})' if why else ''}"


def _measured(judged: Judged) -> str:
    """Return the number of a statement in words, or only what it is about if nothing was measured."""
    one, sign = judged.statement, -1 if judged.statement.minus and judged.mean < 0 else 1
    _, name, second = _sides(one)
    if math.isnan(judged.mean):
        return f"{name} against {second}" if second else name
    if one.over:
        first, other = (claim_files.QUANTITIES[selector["quantity"]] for selector in (one.of, one.over))
        if first != other:
            return f"the {first} of {name} are {judged.mean:.3g} times its {other}"
        if one.timed:
            return f"{name} is {judged.mean:.3g} times as fast as {second} [{judged.low:.3g}, {judged.high:.3g}]"
        return f"{name} has {judged.mean:.3g} times the {first} of {second}"
    shown = significant if one.instrument else number
    size, *both = (shown(sign * value) for value in (judged.mean, *(judged.low, judged.high)[::sign]))
    ends = f" [{', '.join(both)}]" if all(both) else ""
    if one.metric == DIVERGED:
        return f"{size} %{ends} of {name}'s runs diverge"
    if not one.minus:
        text = f"{METRICS.get(one.metric, one.metric)} of {{}} is {{}}"
        text = {"exact_match": "{} scores {} %", "bleu": "{} has {} BLEU"}.get(one.metric, text)
        return text.format(name, size) + ends
    unit = {"exact_match": "points", "bleu": "BLEU"}.get(one.metric, f"points of {one.metric}")
    if _place(one.of) == _place(one.minus):
        return f"{name} is {size} {unit} {'above' if sign > 0 else 'below'} {second}{ends}"
    return f"{name} {'falls' if sign > 0 else 'rises'} by {size} {unit} to {_place(one.minus, one.of)}{ends}"


def _claimed(one: Statement) -> str:
    """Return what a statement claims, as one reads it aloud: `claimed 90.3 ± 5`, `claimed more than 30`."""
    if one.minus and 0.0 in (one.above, one.below):
        ways = ("higher", "lower") if _place(one.of) == _place(one.minus) else ("a fall", "a rise")
        return f"claimed {ways[one.below is not None]}"
    text = one.claimed.replace("above", "more than").replace("below", "less than")
    return f"{'published' if one.published else 'claimed'} {text}"


def _sides(one: Statement) -> tuple[list[str], str, str]:
    """Return what both selectors choose besides architecture and test set, and the name of each, with its own words."""
    sides = [(selector["arch"], _words(selector)) for selector in (one.of, one.minus or one.over) if selector]
    shared = [word for word in sides[0][1] if all(word in words for _, words in sides)]
    names = [f"the {NETWORKS.get(arch, arch)}" for arch, _ in sides]
    names = [names[0], *("one" if name == names[0] else name for name in names[1:])]
    for place, (_, words) in enumerate(sides):
        own = ", ".join(word for word in words if word not in shared)
        names[place] += f" with {own}" if own else " without" * (names[place] == "one")
    return shared, names[0], "".join(names[1:])


def _words(selector: Selector) -> list[str]:
    """Return what a statement selects besides architecture and test set: preset, settings, rows of an instrument."""
    if "work" in selector:
        settings = [f"{key}={selector[key]}" for key in sorted(selector) if key.startswith(claim_files.BENCH_SETTINGS)]
        variant = [f"variant {selector['variant']}"] * (selector["variant"] != claim_files.BENCH_DEFAULTS["variant"])
        return [*variant, *(f"{key} {selector[key]}" for key in claim_files.SIZES), *settings]
    preset = [] if selector["preset"] == "default" else [f"preset {selector['preset']}"]
    chosen = [key for key in selector if key not in claim_files.CONDITION_KEYS and key != TAKE]
    settings = [f"{short_key(key)}={selector[key]}" for key in chosen if not key.startswith(ROWS)]
    rows = [f"{key.removeprefix(ROWS)} {selector[key]}" for key in chosen if key.startswith(ROWS)]
    if take := {"max": "largest", "min": "smallest"}.get(selector.get(TAKE, "")):
        rows = [f"{take} of {', '.join(rows)}" if rows else take]
    return [*preset, *settings, *rows]


def _place(selector: Selector, after: Selector | None = None) -> str:
    """Return the test set, such as `scan length`, and the examples of it; `after` another one, only what differs."""
    keys = ("task", "corpus" if selector["corpus"] else "split", "test", "tag", "value")
    words = [selector[key] for key in keys if selector[key] and (key, selector[key]) != ("test", "test")]
    return " ".join(word for word in words if not after or word not in [after[key] for key in keys])


# Markdown


def markdown(claims: Sequence[ClaimText], notes: Sequence[str] = ()) -> str:
    """Return a table of all claims, then the sentences on the statements of each that has measurements.

    What most claims share, their source, is said once; and a statement that several claims make is said with the first.
    """
    rows = [(one.claim.id, one.verdict, one.claim.claim) for one in claims]
    usual = Counter(row.n for one in claims for row in one.statements if row.n > 1).most_common(1)
    source, seeds = Counter(one.claim.source for one in claims).most_common(1)[0][0], usual[0][0] if usual else 0
    blocks = [markdown_table(("id", "verdict", "claim"), rows)]
    blocks += [f"Unless named, the source is {source}, and means are over {seeds} seeds."] * (seeds > 0)
    said: dict[str, str] = {}  # the sentence of a statement to the first claim with it
    without: dict[str, list[str]] = {}
    for one in claims:
        if all(row.verdict == NOT_RUN for row in one.statements):
            without.setdefault(one.evidence, []).append(one.claim.id)
        else:
            intro = f"Source: {one.claim.source}. " * (one.claim.source != source)
            blocks += [f"## {one.claim.id}", *_section(one, intro, seeds, said)]
    if without:
        lines = [f"{', '.join(ids)}: {evidence}" for evidence, ids in without.items()]
        blocks += ["## Not measured", markdown_list(lines)]
    return "\n\n".join([*blocks, "## How claims are judged", markdown_list([*PROTOCOL, *notes])]) + "\n"


def _section(one: ClaimText, source: str, seeds: int, said: dict[str, str]) -> list[str]:
    """Return what all statements of a claim share, then their sentences by test set and settings."""
    rows = [row for row in one.statements if row.verdict != NOT_RUN]
    usual = Counter(row.n for row in rows).most_common(1)[0][0]
    words = [_sides(row.statement)[0] for row in rows]
    shared = [word for word in words[0] if len(rows) > 1 and all(word in own for own in words)]
    intro = [f"{plural(usual, 'round' if rows[0].statement.over else 'seed')}."] * (usual not in (0, 1, seeds))
    intro += [one.claim.note] * bool(one.claim.note) + [f"All with {', '.join(shared)}."] * bool(shared)
    claimed, count = Counter(_claimed(row.statement) for row in rows).most_common(1)[0]
    if count > 1:
        intro.append(f"{claimed.capitalize()}{'' if count == len(rows) else ', unless named'}.")
        shared.append(claimed)
    again: list[str] = []  # earlier claims with the same statements
    places: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        first = said.setdefault(f"{about(row)}: {sentence(row)}", one.claim.id)
        if first != one.claim.id:
            again.append(first)
        else:
            place, _, settings = about(row, shared).partition(" with ")
            places.setdefault(place, {}).setdefault(settings, []).append(sentence(row, shared, usual))
    lines = []
    for place, groups in places.items():
        texts: list[str] = []
        for settings, own in groups.items():
            texts += [f"with {settings}: {'; '.join(own)}"] if settings else own
        if len(texts) > 1:
            lines += [markdown_list([f"{place}:"]), indent(markdown_list(texts), "  ")]
        else:
            lines.append(markdown_list([f"{place}{': ' if '' in groups else ' '}{texts[0]}"]))
    others = [f"{plural(len(again), 'statement')} as under {listed(dict.fromkeys(again))}"] * bool(again)
    if missing := len(one.statements) - len(rows):
        others.append(f"{plural(missing, 'statement')} not run")
    texts = [source + " ".join(intro), "\n".join([*lines, *(markdown_list([text]) for text in others)])]
    return [text for text in texts if text]


# JSON


def values(claims: Sequence[ClaimText], notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return all values for JSON, with the result of every seed."""
    keys = ("id", "claim", "source", "literature", "note", "untested", "command", "minimum_seeds")
    trees = [
        {key: getattr(one.claim, key) for key in keys}
        | {"verdict": one.verdict, "evidence": one.evidence, "statements": [_tree(row) for row in one.statements]}
        for one in claims
    ]
    return {"claims": trees, "notes": [*PROTOCOL, *notes]}


def _tree(row: Judged) -> dict[str, Any]:
    one, conditions = row.statement, []
    for condition, selector in zip(row.conditions, (one.of, one.minus), strict=False):
        each_seed = {} if one.instrument and not row.n else values_by_seed(condition, one, selector)
        runs = {key: [str(run.path) for run in getattr(condition, key)] for key in ("runs", "diverged")}
        conditions.append({"label": condition.label, "each_seed": {str(k): v for k, v in each_seed.items()}} | runs)
    said = {"verdict": row.verdict, "reason": row.reason, "sentence": f"{about(row)}: {sentence(row)}"}
    numbers = {key: getattr(row, key) for key in (*Estimate._fields, "q")} if row.n else {}
    return {**said, **msgspec.to_builtins(one), **numbers, "conditions": conditions}


# For a terminal


def listing(claims: Sequence[ClaimText], notes: Sequence[str], details: bool) -> Listing:
    """Return the claims with their verdicts and the evidence, with `details` that of each statement, and all values."""
    parts: list[Part] = []
    for group in [[one] for one in claims] if details else [claims]:
        frame = {
            "id": [one.claim.id for one in group],
            "verdict": [one.verdict for one in group],
            "claim": ["\n".join([one.claim.claim, one.evidence]) for one in group],
        }
        parts.append(Cells(frame, left=list(frame), folded=frozenset(("claim",)), headless=True, styles=COLOURS))
        if details and (rows := group[0].statements):
            frame = {"number": [f"  {row.number}" for row in rows]}
            frame |= {"evidence": [f"{about(row)}: {sentence(row)}" for row in rows]}
            parts.append(Cells(frame, left=list(frame), folded=frozenset(("evidence",)), headless=True))
        if details and group[0].claim.note:
            parts.append(f"  {group[0].claim.note}")
    hint = [] if details else ["`tfstudy claims ID` lists the statements of a claim"]
    return Listing(parts, [*hint, *PROTOCOL, *notes], lambda: values(claims, notes))
