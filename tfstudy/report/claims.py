"""Claims with their verdicts, and each statement as one line, as Markdown, JSON, for a terminal, and for a report."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import msgspec

from tfstudy.analysis import claim_files as files
from tfstudy.analysis.claims import NUMBERS, judge, values_by_seed, verdict
from tfstudy.analysis.frame import Study, read_studies
from tfstudy.analysis.published import NOT_RUN, OPEN, REFUTED, SUPPORTED
from tfstudy.analysis.stats import EXACT
from tfstudy.analysis.summary import rows_of
from tfstudy.config.trees import short_key
from tfstudy.errors import one_of
from tfstudy.performance.record import read_records
from tfstudy.report.markup import MINUS, ends, markdown_list, markdown_table, number, plural, q_equals, significant
from tfstudy.report.render import Cells, Listing, Part
from tfstudy.runs.find import PERFORMANCE

PROTOCOL = (
    "a statement is supported or refuted if its mean lies within or outside the claimed bounds and q is below .05, "
    "otherwise open; q is p adjusted for all statements, or that of the comparison in its study "
    "(docs/concepts/statistics.md); one on a published figure if our mean is within 5 points (2 BLEU) or outside the "
    "interval of a replication, and one on memory or FLOPs exactly, both without a q",
    "numbers are means over n seeds (of a difference the smaller n), of exact match in percent unless another metric "
    "is named, with 95 % intervals; a verdict holds for the settings and data of these runs, which `--format json` "
    "names; train_pairs=0 is all pairs, max_train_length=0 any length",
)
NETWORKS = {"lstm": "LSTM", "cnn": "CNN", "transformer": "Transformer", "mingru": "minGRU"}  # in sentences
COLOURS = {SUPPORTED: "green", REFUTED: "red", OPEN: "yellow", NOT_RUN: "dim"}
FEWEST_ROWS = 3  # of a table of statements
Judged = Any  # a row of `analysis.claims.judge`


class ClaimText(NamedTuple):
    """A claim, its verdict, the evidence in one line, and its statements as rows of `judge`."""

    claim: files.Claim
    verdict: str
    evidence: str
    statements: Sequence[Judged] = ()


def judged_claims(results: Path, ids: Iterable[str]) -> tuple[list[ClaimText], list[str]]:
    """Return these claims, or all, with their verdicts by the runs in a folder, and which runs are left out.

    `UserError` for unknown names.
    """
    known = files.read_claims()
    names = [
        one_of("claim", name.upper() if name.upper() in known else name, known) for name in dict.fromkeys(ids)
    ] or list(known)
    studies = read_studies(results)
    found = claim_texts([*known.values()], studies, read_records(results / PERFORMANCE))
    notes = dict.fromkeys(note for study in studies for note in study.left_out_notes())
    return [found[name] for name in names], list(notes)


def study_claims(study: Study) -> list[ClaimText]:
    """Return the claims of which the study measured any statement; `UserError` if a file of claims is invalid."""
    found = claim_texts([*files.read_claims().values()], [study])
    return [one for one in found.values() if any(judged.conditions for judged in one.statements)]


def claim_texts(
    claims: Sequence[files.Claim], studies: Sequence[Study], records: Sequence[Any] = ()
) -> dict[str, ClaimText]:
    """Return claims, by id, judged by the runs of studies and the records of `tfstudy bench`."""
    rows = rows_of(judge(claims, studies, records))
    out = {}
    for claim in claims:
        own = [row for row in rows if row.claim == claim.id]
        out[claim.id] = ClaimText(claim, verdict(own) if own else claim.shown_as, _evidence(claim, own), own)
    return out


def _evidence(claim: files.Claim, statements: Sequence[Judged]) -> str:
    """Return the line of the first statement of those that decide a claim: of the most frequent verdict."""
    if not statements:
        return ". ".join(filter(None, [f"tested by {claim.tested_by}", claim.note.partition(". ")[0].rstrip(".")]))
    if all(one.verdict == NOT_RUN for one in statements):
        return f"run `{claim.command}`" if not any(row.conditions for row in statements) else statements[0].reason
    counts = Counter(one.verdict for one in statements if one.verdict in (SUPPORTED, REFUTED)) or {OPEN: 1}
    most = max(sorted(counts), key=lambda name: counts[name])
    return next(line(one) for one in statements if one.verdict == most)


class Said(NamedTuple):
    """A statement in words: as a sentence, and as a cell of a table with a row for each place."""

    place: str  # the examples or the work that it is about
    sentence: str  # what was measured beside what is claimed
    head: str  # of the column: `LSTM \N{MINUS SIGN} CNN (BLEU), claimed higher`
    cell: str  # `+2.5 [2.0, 2.9]: supported (n=3, q=.005)`


def line(judged: Judged) -> str:
    """Return a statement as a sentence: `on scan length: the LSTM scores 14.1 [13.1, 15.1], claimed 18.2 ± 5: open`."""
    said = in_words(judged)
    return f"on {said.place}: {said.sentence}"


def in_words(judged: Judged) -> Said:
    """Return what a statement says; a sentence gives a difference by its size, a cell with its sign."""
    one: files.Statement = judged.statement
    sides = [side for side in (one.of, one.minus or one.over) if side]
    words = [_words(side) for side in sides]
    shared = [word for word in words[0] if word in words[-1]]
    networks = []
    for side, own in zip(sides, words, strict=True):
        others = ", ".join(word for word in own if word not in shared)
        networks.append(f"{NETWORKS.get(side['arch'], side['arch'])}" + f" ({others})" * bool(others))
    names = [f"the {network}" for network in networks]
    write = significant if one.instrument or one.over else number
    size, low, high = judged.mean, judged.low, judged.high
    known = low == low and judged.interval != EXACT
    if one.minus and write is number:  # with signs, which show whether an interval includes 0
        cell = f"{number(size, '+')} {ends(low, high, '+')}".rstrip()
    else:
        cell = f"{write(size)}" + f" [{write(low)}, {write(high)}]" * known
    if falls := bool(one.minus) and size < 0:
        size, low, high = -size, -high, -low
    interval = f" [{write(low)}, {write(high)}]" * known
    metric = "" if one.metric == "exact_match" or one.instrument else f" {files.METRICS[one.metric]}"
    claimed = bounds = one.claimed
    if math.isnan(size):
        said = " and ".join(names)
    elif one.over:
        said = f"{names[0]} has {write(size)}{interval} times that of {names[1]}"
    elif one.minus:
        said = f"{names[0]} is {write(size)}{metric}{interval} {'below' if falls else 'above'} {names[1]}"
        zero = 0.0 in (one.above, one.below)
        bounds = ("higher" if one.below is None else "lower") if zero else claimed
        claimed = bounds if zero else f"{'a difference ' * falls}{claimed}"
    else:
        said = f"{names[0]} {'has' if metric or one.instrument else 'scores'} {write(size)}{metric}{interval}"
    n, q = f"n={judged.n}" * (judged.interval != EXACT), q_equals(judged.q) if judged.q == judged.q else ""
    why = ", ".join(filter(None, [n * (size == size), q.replace(" ", ""), judged.reason]))
    verdict = judged.verdict + f" ({why})" * bool(why)
    examples = words[0][0] if words[0][0] == words[-1][0] else sides[0]["task"]
    given = [one.instrument, f"study {one.study}" * bool(one.study)]
    place = [examples, *filter(None, given), *(word for word in shared if word != examples)]
    by = "published" if one.published else "claimed"
    head = (" / " if one.over else f" {MINUS} ").join(networks) + f" ({metric.strip()})" * bool(metric)
    cell = f"{cell}: {verdict}" if size == size else verdict
    return Said(", ".join(place), f"{said}, {by} {claimed}: {verdict}", f"{head}, {by} {bounds}", cell)


def _words(selector: files.Selector) -> list[str]:
    """Return what a statement selects besides the architecture: examples, preset, settings, rows; or a measurement."""
    if "work" in selector:
        variant = [selector["variant"]] * (selector["variant"] != "default")
        sizes = [f"{key} {selector[key]}" for key in files.SIZES]
        return [selector["work"], *sizes, *variant, files.QUANTITIES[selector["quantity"]]]
    names = [f"{selector['task']} {selector['corpus'] or selector['split']}", selector["test"]]
    names += [f"{selector['tag']} {selector['value']}".strip(), f"preset {selector['preset']}"]
    settings = [f"{short_key(key)}={value}" for key, value in selector.items() if key not in files.CONDITION_KEYS]
    return [word for word in (*names, *settings) if word not in ("", "test", "preset default")]


# In each format


def markdown(claims: Sequence[ClaimText], notes: Sequence[str] = ()) -> str:
    """Return a table of all claims, a section with the statements of each that were measured, and the other claims."""
    rows = [(one.claim.id, one.verdict, one.claim.claim) for one in claims]
    source = Counter(one.claim.source for one in claims).most_common(1)[0][0]
    blocks, others = [markdown_table(("id", "verdict", "claim"), rows), f"Unless named, the source is {source}."], []
    for one in claims:
        if all(row.verdict == NOT_RUN for row in one.statements):
            others.append(f"{one.claim.id}: {one.evidence}")
            continue
        about = [f"Source: {one.claim.source}." * (one.claim.source != source), one.claim.note]
        blocks += filter(None, [f"## {one.claim.id}", " ".join(filter(None, about)), _statements(one)])
    blocks += ["## Not measured", markdown_list(others)] * bool(others)
    return "\n\n".join([*blocks, "## How claims are judged", markdown_list([*PROTOCOL, *notes])]) + "\n"


def _statements(one: ClaimText) -> str:
    """Return the statements of a claim that were measured, by what they are about, and how many were not.

    Places of which the claim says the same are the rows of a table if they are at least `FEWEST_ROWS`.
    """
    places: dict[str, list[Said]] = {}
    for row in one.statements:
        if row.verdict != NOT_RUN:
            places.setdefault((said := in_words(row)).place, []).append(said)
    rows: dict[tuple[str, ...], list[list[str]]] = {}  # by their heads
    for place, own in places.items():
        rows.setdefault(("on", *(said.head for said in own)), []).append([place, *(said.cell for said in own)])
    tables = {heads: own for heads, own in rows.items() if len(own) >= FEWEST_ROWS}
    blocks = [markdown_table(heads, own) + "\n" for heads, own in tables.items()]
    for place, own in places.items():
        if ("on", *(said.head for said in own)) not in tables:
            lines = [said.sentence for said in own]
            nested = [markdown_list([f"on {place}:"]), indent(markdown_list(lines), "  ")]
            blocks += nested if len(own) > 1 else [markdown_list([f"on {place}: {lines[0]}"])]
    missing = sum(row.verdict == NOT_RUN for row in one.statements)
    rest = f"- {plural(missing, 'statement')} not run: `{one.claim.command}`"
    return "\n".join(blocks + [rest] * bool(missing)).rstrip()


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
    said = {"verdict": row.verdict, "reason": row.reason, "sentence": line(row)}
    numbers = {key: getattr(row, key) for key in NUMBERS} if row.n else {}
    return {**said, **msgspec.to_builtins(one), **numbers, "conditions": conditions}


def listing(claims: Sequence[ClaimText], notes: Sequence[str], details: bool) -> Listing:
    """Return the claims with their verdicts and the evidence, with `details` each statement, and all values."""
    parts: list[Part] = []
    for group in [[one] for one in claims] if details else [claims]:
        texts = [[one.claim.claim, *[one.evidence] * (not details or not one.statements)] for one in group]
        frame = {"id": [one.claim.id for one in group], "verdict": [one.verdict for one in group]}
        frame["claim"] = ["\n".join(own) for own in texts]
        parts.append(Cells.listed(frame, folded=("claim",), styles=COLOURS))
        if details and group[0].statements:
            said = {f"  {row.number}": line(row) for row in group[0].statements} | {"": group[0].claim.note}
            said = {number: text for number, text in said.items() if text}
            parts.append(Cells.listed({"number": [*said], "statement": [*said.values()]}, folded=("statement",)))
    hint = [] if details else ["`tfstudy claims ID` lists the statements of a claim"]
    return Listing(parts, [*hint, *PROTOCOL, *notes], values(claims, notes))
