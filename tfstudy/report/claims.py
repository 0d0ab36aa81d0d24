"""Claims with their verdicts and the evidence, as Markdown, JSON, for a terminal, and for the report of a study.

The evidence on a claim is one sentence, made of the numbers of the statement that decides it; the numbers of all its
statements are a table.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from tfstudy.analysis.claim_files import (
    BENCH_DEFAULTS,
    BENCH_SETTINGS,
    CONDITION_KEYS,
    QUANTITIES,
    ROWS,
    SIZES,
    TAKE,
    Claim,
    Selector,
    read_claims,
    select_claims,
)
from tfstudy.analysis.claims import NOT_RUN, REFUTED, SUPPORTED, UNDECIDED, gather_evidence, judge, verdict
from tfstudy.analysis.estimates import values_by_seed
from tfstudy.analysis.frame import Study, read_studies
from tfstudy.analysis.labels import Condition, settings_text
from tfstudy.analysis.stats import EXACT
from tfstudy.analysis.summary import DIVERGED, rows_of
from tfstudy.config.trees import short_key
from tfstudy.performance.record import read_records
from tfstudy.report.markup import (
    markdown_list,
    markdown_table,
    number,
    p_value,
    plural,
    q_equals,
    significant,
    significant_interval,
    with_interval,
)
from tfstudy.report.render import Cells, Listing, Part
from tfstudy.runs.find import PERFORMANCE

PLACE = ("work", *SIZES)  # what two measurements of a ratio mostly share
NETWORKS = {"lstm": "LSTM", "cnn": "CNN", "transformer": "Transformer", "mingru": "minGRU"}  # in sentences
PROTOCOL = (
    "a statement is supported if its mean lies within the claimed bounds and q is below .05, refuted if it lies "
    "outside and q is below .05, otherwise open; q is p adjusted for all statements, or of a comparison that of its "
    "study (docs/concepts/statistics.md)",
    "intervals are 95 %; a verdict holds for the settings and data of these runs (`--format json` has both)",
)
STATEMENT_HEADS = ("claimed", "measured", "q", "verdict")
COLOURS = {SUPPORTED: "green", REFUTED: "red", UNDECIDED: "yellow", NOT_RUN: "dim"}
Judged = Any  # a row of `analysis.claims.judge`


class ClaimText(NamedTuple):
    """A claim, its verdict, the evidence in one sentence, and its statements as rows of `judge`."""

    claim: Claim
    verdict: str
    evidence: str
    statements: Sequence[Judged] = ()

    @property
    def studies(self) -> list[str]:
        """The names of the studies whose runs were used."""
        used = (Path(condition.study).name for one in self.statements for condition in one.conditions)
        return [*dict.fromkeys(used), *([PERFORMANCE] if any(one.ratio for one in self.statements) else [])]


def judged_claims(results: Path, ids: Iterable[str]) -> tuple[list[ClaimText], list[str]]:
    """Return these claims, or all, with their verdicts by the runs in a folder, and which runs are left out.

    `UserError` for unknown names.
    """
    known = read_claims()
    shown, studies = select_claims(known, ids), read_studies(results)
    found = claim_texts([*known.values()], studies, read_records(results / PERFORMANCE))
    notes = dict.fromkeys(note for study in studies for note in study.left_out_notes())
    return [found[claim.id] for claim in shown], list(notes)


def study_claims(study: Study) -> list[ClaimText]:
    """Return the claims of which the study measured any statement; `UserError` if a file of claims is invalid."""
    found = claim_texts([*read_claims().values()], [study])
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


# In words


def _evidence(claim: Claim, statements: Sequence[Judged]) -> str:
    """Return a sentence on the first statement of those that decide a claim: of the most frequent verdict."""
    if not statements:
        return ". ".join(filter(None, [f"tested by {claim.tested_by}", claim.note.partition(". ")[0].rstrip(".")]))
    counts = Counter(one.verdict for one in statements)
    for name in (*sorted((REFUTED, SUPPORTED), key=lambda name: -counts[name]), UNDECIDED):
        if said := next((text for one in statements if one.verdict == name and (text := sentence(one))), ""):
            return said
    problem = dict.fromkeys(filter(None, map(reason, statements)))
    command = f"`{claim.command}`" if claim.command and not any(one.conditions for one in statements) else ""
    return ": ".join(filter(None, ["; ".join([*problem][:1]), command]))


def sentence(judged: Judged) -> str:
    """Return a statement and its number as one reads it aloud; empty if nothing was measured.

    Such as `The LSTM is 14.0 points above the Transformer on scan length; claimed: higher`.
    """
    found = judged.published
    mean = found.ours.mean if found and found.ours else judged.mean
    if math.isnan(mean):
        return ""
    text, more = _measured_in_words(judged, mean), " (undecided)" * (judged.verdict == UNDECIDED)
    return f"{text[0].upper()}{text[1:]}; {'published' if found else 'claimed'}: {_claimed(judged)}{more}"


def _measured_in_words(judged: Judged, mean: float) -> str:
    statement, of, minus = judged.statement, judged.statement.of, judged.statement.minus
    if statement.over:
        work, first, quantities, second = ratio_parts(judged)
        return f"in {work}, {first} has {mean:.3g} times the {quantities[0]} of {second}"
    shown = significant if statement.instrument else number
    size = shown(abs(mean) if minus else mean)
    shared, (own, other) = _shared(of, minus)
    name = _network(of)
    what = {"exact_match": "exact match", DIVERGED: "the share of diverged runs"}.get(
        statement.metric,
        f"{statement.metric} ({', '.join(shared)})" if statement.instrument else statement.metric_label,
    )
    if not minus:
        said = {
            "exact_match": f"{name} gets {size} % of {place(of)} right",
            "bleu": f"{name} has {size} BLEU on {place(of)}",
            DIVERGED: f"{size} % of the runs of {name} on {place(of)} diverge",
        }
        return said.get(statement.metric, f"{what} of {name} is {size} on {place(of)}")
    if place(of) != place(minus):
        way = "falls" if mean > 0 else "rises"
        return f"{what} of {name} {way} by {size} from {place(of)} to {place(minus, of)}"
    unit = {"exact_match": "points", "bleu": "BLEU"}.get(statement.metric, f"points of {what}")
    first, second = (" and ".join(words) for words in (own, other))
    if of["arch"] == minus["arch"]:
        way = "more" if mean > 0 else "less"
        return (
            f"{name} has {size} {unit} {way} with {first} than {f'with {second}' if second else 'else'} on {place(of)}"
        )
    sides = [f"{_network(one)}{f' with {text}' * bool(text)}" for one, text in ((of, first), (minus, second))]
    return f"{sides[0]} is {size} {unit} {'above' if mean > 0 else 'below'} {sides[1]} on {place(of)}"


def _network(selector: Selector) -> str:
    return f"the {NETWORKS.get(selector['arch'], selector['arch'])}"


def _claimed(judged: Judged) -> str:
    """Return what a statement claims, as one reads it aloud: `90.3`, `more than 30`, `higher`, `a fall`."""
    one = judged.statement
    if one.published:
        return str(one.claimed)
    if one.is_ is not None:
        return f"{one.is_:g}"
    if one.minus and 0.0 in (one.above, one.below):
        ways = ("higher", "lower") if place(one.of) == place(one.minus) else ("a fall", "a rise")
        return ways[one.below is not None]
    return str(one.claimed).replace("above", "more than").replace("below", "less than")


def reason(judged: Judged) -> str:
    """Return why a statement is open, or on which side of its bound the mean lies."""
    if judged.published:
        return str(judged.published.reason)
    if judged.problem:
        return str(judged.problem)
    if judged.verdict != UNDECIDED:
        return "within the bounds" if judged.inside else f"on the wrong side of {judged.bound:g}"
    if judged.diverged:
        return f"{judged.diverged} diverged, and the mean would only be over the other runs"
    why = f"not told from {judged.bound:g}"
    if judged.n < judged.least:
        why = f"{judged.n} of at least {judged.least} {'repeats' if judged.ratio else 'seeds'}"
    return why + f"; about {plural(judged.more, 'more seed')} needed" * bool(judged.more and not judged.ratio)


def measured(judged: Judged) -> str:
    """Return the number that a statement is judged by, with its interval: `41.2 [35.0, 47.1]`."""
    if found := judged.published:
        return with_interval(*found.ours[:3]) if found.ours else ""
    if judged.statement.over:
        ends = "" if judged.interval == EXACT else f" [{judged.low:.3g}, {judged.high:.3g}]"
        return f"{judged.mean:.3g}{ends}" if judged.n else ""
    shown = significant_interval if judged.statement.instrument else with_interval
    return shown(judged.mean, judged.low, judged.high, "+" if judged.statement.minus else "")


def about(judged: Judged) -> str:
    """Return what a statement is about, such as `lstm minus cnn on scan length (BLEU)`."""
    statement = judged.statement
    if statement.over:
        work, first, quantities, second = ratio_parts(judged)
        right = second if quantities[0] == quantities[1] else f"{quantities[1]} of {second}"
        return f"{work}: {quantities[0]} of {first} over {right}"
    metric = f" ({statement.metric_label})" if statement.metric != "exact_match" else ""
    return f"{subject(statement.of, statement.minus)}{metric}"


def ratio_parts(judged: Judged) -> tuple[str, str, list[str], str]:
    """Return what two measurements of a ratio share, the name of the first, both quantities, the second's name."""
    of, over = judged.statement.of, judged.statement.over
    shared = [str(of[key]) if key == "work" else f"{key} {of[key]}" for key in PLACE if of[key] == over[key]]
    shown = [key for key in of.keys() | over.keys() if key.startswith(BENCH_SETTINGS)]
    names = []
    for selector in (of, over):
        words = [selector["arch"]] + [selector["variant"]] * (selector["variant"] != BENCH_DEFAULTS["variant"])
        words += [f"{key} {selector[key]}" for key in PLACE if of[key] != over[key]]
        names.append(" ".join([*words, *(f"{key}={selector[key]}" for key in sorted(shown) if key in selector)]))
    return ", ".join(shared), names[0], [QUANTITIES[one["quantity"]] for one in (of, over)], names[1]


def subject(of: Selector, minus: Selector) -> str:
    """Return what is measured, such as `lstm minus transformer (train_pairs=2000) on translation embedded`.

    Both conditions are named by what the statement selects; what they share stands once, in brackets.
    """
    shared, own = _shared(of, minus)
    brackets = f" ({', '.join(shared)})" if shared else ""
    if not minus:
        return f"{of['arch']}{brackets} on {place(of)}"
    names = [" ".join([selector["arch"], *each]) for selector, each in zip((of, minus), own, strict=True)]
    if names[0] == names[1]:
        return f"{names[0]}{brackets} on {place(of)} minus {place(minus, of)}"
    if of["arch"] == minus["arch"] and own[1]:
        names[1] = " ".join(own[1])
    if place(of) == place(minus):
        return f"{' minus '.join(names)}{brackets} on {place(of)}"
    return f"{names[0]} on {place(of)} minus {names[1]} on {place(minus)}{brackets}"


def _shared(of: Selector, minus: Selector) -> tuple[list[str], list[list[str]]]:
    """Return what both selectors choose besides architecture and test set, and what each chooses for itself."""
    words = [_words(selector) for selector in (of, minus or of)]
    shared = [word for word in words[0] if word in words[1]]
    return shared, [[word for word in own if word not in shared] for own in words]


def _words(selector: Selector) -> list[str]:
    """Return what a statement selects besides architecture and test set: preset, settings, rows of an instrument."""
    preset = [] if selector["preset"] == "default" else [f"preset {selector['preset']}"]
    chosen = [key for key in selector if key not in CONDITION_KEYS and key != TAKE]
    settings = [f"{short_key(key)}={selector[key]}" for key in chosen if not key.startswith(ROWS)]
    rows = [f"{key.removeprefix(ROWS)} {selector[key]}" for key in chosen if key.startswith(ROWS)]
    if take := {"max": "largest", "min": "smallest"}.get(selector.get(TAKE, "")):
        rows = [f"{take} of {', '.join(rows)}" if rows else take]
    return [*preset, *settings, *rows]


def place(selector: Selector, after: Selector | None = None) -> str:
    """Return the test set, such as `scan length`, and the examples of it; `after` another one, only what differs."""
    data, before = ([one["task"], one["split"], one["corpus"]] for one in (selector, after or {} | selector))
    if after and data == before:
        tag = [selector["tag"], selector["value"]] if selector["tag"] else []
        return " ".join(tag if selector["test"] == after["test"] else [selector["test"], *tag])
    test = [selector["test"]] * (selector["test"] != "test")
    return " ".join(filter(None, [*data, *test, selector["tag"], selector["value"]]))


# Markdown


def markdown(claims: Sequence[ClaimText], notes: Sequence[str] = ()) -> str:
    """Return a table of all claims, then of each claim that was run the table of its statements."""
    rows = [(one.claim.id, one.verdict, one.claim.claim, one.evidence, ", ".join(one.studies)) for one in claims]
    blocks = [markdown_table(("id", "verdict", "claim", "evidence", "study"), rows)]
    for one in claims:
        if one.studies or len(claims) == 1:
            blocks += _section(one)
    return "\n\n".join([*blocks, markdown_list([*PROTOCOL, *notes])]) + "\n"


def _section(one: ClaimText) -> list[str]:
    """Return the section of a claim; the words that end all its statements stand in the head of their table."""
    claim, rows = one.claim, one.statements
    usual = Counter(row.n for row in rows if row.n).most_common(1)
    seeds = f"{plural(usual[0][0], 'round' if rows[0].ratio else 'seed')}. " if usual else ""
    subjects = [about(row).split(" ") for row in rows]
    ends = list(takewhile(lambda words: len({*words}) == 1, zip(*(words[::-1] for words in subjects), strict=False)))
    same = [words[0] for words in ends[::-1]] if len(rows) > 1 else []
    names = [" ".join(words[: len(words) - len(same)]) for words in subjects]
    cells = [_row(row, name, usual[0][0] if usual else 0) for row, name in zip(rows, names, strict=True)]
    table = [markdown_table((" ".join(["statement", *same]), *STATEMENT_HEADS), cells)] if rows else []
    return [f"## {claim.id}", f"Source: {claim.source}. {seeds}{claim.note}".strip(), *table]


def _row(row: Judged, name: str, usual: int) -> tuple[str, ...]:
    """Return the cells of a statement; the number of its seeds if it is not the `usual` one, and why it is open."""
    seeds = f" (n = {row.n})" if row.n not in (0, usual) and row.interval != EXACT else ""
    more = f" ({reason(row)})" if row.verdict == NOT_RUN or (row.verdict == UNDECIDED and not row.test) else ""
    found = row.published.condition if row.published else None
    seeds = f" (n = {len(found.runs)})" if found else seeds
    return name, row.statement.claimed, f"{measured(row)}{seeds}", p_value(row.q), f"{row.verdict}{more}"


# JSON


def values(claims: Sequence[ClaimText], notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return all values for JSON, with the result of every seed."""
    return {"claims": [_claim_tree(one) for one in claims], "notes": [*PROTOCOL, *notes]}


def _claim_tree(one: ClaimText) -> dict[str, Any]:
    keys = ("id", "claim", "source", "literature", "note", "untested", "command", "minimum_seeds")
    return {key: getattr(one.claim, key) for key in keys} | {
        "verdict": one.verdict,
        "evidence": one.evidence,
        "statements": [_statement_tree(row) for row in one.statements],
    }


def _statement_tree(row: Judged) -> dict[str, Any]:
    statement = row.statement
    usable = not statement.instrument or row.n > 0
    low, high = (bound if math.isfinite(bound) else None for bound in statement.bounds)
    numbers = {key: getattr(row, key) for key in ("mean", "low", "high", "n", "interval", "p", "q")}
    numbers |= {"against": row.bound, "test_of_p": row.test or None}
    return {
        "verdict": row.verdict,
        "reason": reason(row),
        "of": statement.of,
        "minus": statement.minus,
        **({"over": statement.over} if statement.over else {}),
        "subject": about(row),
        "measured": measured(row),
        "metric": statement.metric,
        "published": statement.published or None,
        "claimed": statement.claimed,
        "claimed_low": low,
        "claimed_high": high,
        **(numbers if row.test or row.n else {}),
        "settings": [settings_text(condition) for condition in row.conditions],
        "conditions": [
            _condition_tree(condition, values_by_seed(condition, statement, selector) if usable else {})
            for condition, selector in zip(row.conditions, (statement.of, statement.minus), strict=False)
        ],
        "other_conditions": row.unused,
    }


def _condition_tree(condition: Condition, values: Mapping[int, float]) -> dict[str, Any]:
    each_seed = {str(seed): value for seed, value in values.items()}
    runs, diverged = ([str(run.path) for run in members] for members in (condition.runs, condition.diverged))
    return {"label": condition.label, "each_seed": each_seed, "runs": runs, "diverged": diverged}


# For a terminal


def listing(claims: Sequence[ClaimText], notes: Sequence[str], details: bool) -> Listing:
    """Return the claims with their verdicts and the evidence, with `details` also each statement, and all values."""
    parts: list[Part] = []
    for group in [[one] for one in claims] if details else [claims]:
        frame = {
            "id": [one.claim.id for one in group],
            "verdict": [one.verdict for one in group],
            "claim": ["\n".join([one.claim.claim, one.evidence]) for one in group],
        }
        parts.append(Cells(frame, left=list(frame), folded=frozenset(("claim",)), headless=True, styles=COLOURS))
        if details and group[0].statements:
            parts.append(_statements(group[0].statements))
        if details and group[0].claim.note:
            parts.append(f"  {group[0].claim.note}")
    hint = [] if details else ["`tfstudy claims ID` lists the statements of a claim"]
    return Listing(parts, [*hint, *PROTOCOL, *notes], lambda: values(claims, notes))


def _statements(rows: Sequence[Judged]) -> Cells:
    """Return the verdict on each statement, then what it is about, was claimed and measured, and the reason."""
    tests = [f"{measured(row)} (n = {row.n}), {q_equals(row.q)}" if row.test else measured(row) for row in rows]
    texts = [
        (about(row), f"claimed {row.statement.claimed}", test, reason(row))
        for row, test in zip(rows, tests, strict=True)
    ]
    frame = {
        "statement": [f"  {row.number}" for row in rows],
        "verdict": [row.verdict for row in rows],
        "evidence": ["; ".join(filter(None, parts)) for parts in texts],
    }
    return Cells(frame, left=list(frame), folded=frozenset(("evidence",)), headless=True, styles=COLOURS)
