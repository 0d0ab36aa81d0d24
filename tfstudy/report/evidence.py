"""The evidence on a statement of a claim in words, and the verdicts on claims in one table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, zip_longest
from pathlib import Path

from tfstudy.analysis.claim_files import (
    BENCH_DEFAULTS,
    BENCH_SETTINGS,
    CONDITION_KEYS,
    QUANTITIES,
    ROWS,
    SIZES,
    TAKE,
    Selector,
)
from tfstudy.analysis.claims import (
    MIXED,
    NOT_RUN,
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    ClaimVerdict,
    StatementVerdict,
)
from tfstudy.analysis.labels import Condition, settings_text
from tfstudy.analysis.stats import EXACT
from tfstudy.config.trees import short_key
from tfstudy.report.markup import markdown_table, plural, q_equals, significant_interval, with_interval
from tfstudy.runs.find import PERFORMANCE
from tfstudy.runs.studyfile import packed_in

PLACE = ("work", *SIZES)  # what two measurements of a ratio mostly share
SHOWN = 2  # statements of a claim
DECIDING = {SUPPORTED: (SUPPORTED,), REFUTED: (REFUTED,), MIXED: (REFUTED, SUPPORTED), UNDECIDED: (UNDECIDED,)}


def evidence(judged: StatementVerdict) -> str:
    """Return what was claimed, what was measured at which settings, the verdict, and the folders of the runs.

    Of a ratio of two measurements it names the machine that they were measured on.
    """
    claimed = f"**{judged.verdict}**: {about(judged)}, claimed: {judged.statement.claimed}"
    if judged.published:
        figure = judged.published.figure
        seeds = f" (n = {figure.n})" if figure.n else ""
        claimed += f"{seeds} [{figure.citation}, {figure.place}]"
    if judged.verdict == NOT_RUN:
        return f"{claimed}: {judged.reason}"
    found = f"; measured: {text}" if (text := measured(judged)) else ""
    if judged.pair:
        one = judged.pair.of.machine
        place = f"{one.device}, {plural(one.threads, 'thread')}, torch {one.versions.get('torch', 'unknown')}"
        return f"{claimed}{found}; {judged.reason}. Machine: {place}, {one.started[:10]}"
    unused = f"; not used (further from the preset, or fewer seeds): {judged.unused}" if judged.unused else ""
    settings_and_runs = f"Settings: {settings(judged)}. Runs: {_run_links(judged.conditions)}"
    return f"{claimed}{found}; {judged.reason}{unused}. {settings_and_runs}"


def about(judged: StatementVerdict) -> str:
    """Return what a statement is about, such as `exact match of lstm on scan length`."""
    statement = judged.statement
    if statement.over:
        return ratio_subject(judged)
    if statement.instrument:
        return f"{subject(judged)}, {statement.metric_label}"
    return f"{statement.metric_label} of {subject(judged)}"


def measured(judged: StatementVerdict) -> str:
    """Return the result, `41.2 [35.0, 47.1] (n = 5), q = .034 against 50 (t)`; empty if it could not be measured.

    Of a published figure it is ours and the difference, of a ratio `1.76 [1.70, 1.80] (median of n = 15 rounds)`.
    """
    number, estimate = result(judged), judged.estimate
    if found := judged.published:
        difference = f", difference {with_interval(*found.difference[:3], '+')}" if found.difference else ""
        return f"{number} (n = {found.ours.n}){difference}" if found.ours else number
    if estimate is None or not estimate.interval.n or estimate.interval.method == EXACT:
        return number
    n, method = estimate.interval.n, estimate.interval.method
    test = f", {q_equals(judged.q)} against {estimate.bound:g} ({estimate.test})" if estimate.test else ""
    # the number of seeds of both conditions, such as `10 and 5`, where they differ and are not paired
    counts = dict.fromkeys(len(condition.runs) for condition in judged.conditions)
    seeds = " and ".join(map(str, counts)) if method == "Welch" and min(counts) == n else n
    return f"{number}{'' if judged.pair else f' (n = {seeds})'}{test}"


def result(judged: StatementVerdict) -> str:
    """Return the number that a statement is judged by, with its interval: `41.2 [35.0, 47.1]`."""
    if found := judged.published:
        return with_interval(*found.ours[:3]) if found.ours else "nothing measured"
    if judged.estimate is None:
        return ""
    mean, low, high, n, method = judged.estimate.interval
    if judged.statement.over:
        return f"{mean:.3g} {'exact' if method == EXACT else f'[{low:.3g}, {high:.3g}] (median of n = {n} rounds)'}"
    if not n:
        return "nothing measured"
    shown = significant_interval if judged.statement.instrument else with_interval
    within_run = " over test examples" * (method == "Wilson")
    return f"{shown(mean, low, high, '+' if judged.statement.minus else '')}{within_run}"


def ratio_subject(judged: StatementVerdict) -> str:
    """Return the subject of a ratio: `generation, length 64: target tokens per second of lstm over transformer`."""
    of, over = judged.statement.of, judged.statement.over
    shared = [str(of[key]) if key == "work" else f"{key} {of[key]}" for key in PLACE if of[key] == over[key]]
    shown = [key for key in of.keys() | over.keys() if key.startswith(BENCH_SETTINGS)]
    names = []
    for selector in (of, over):
        words = [selector["arch"]] + [selector["variant"]] * (selector["variant"] != BENCH_DEFAULTS["variant"])
        words += [f"{key} {selector[key]}" for key in PLACE if of[key] != over[key]]
        names.append(" ".join([*words, *(f"{key}={selector[key]}" for key in sorted(shown) if key in selector)]))
    first, second = QUANTITIES[of["quantity"]], QUANTITIES[over["quantity"]]
    right = names[1] if first == second else f"{second} of {names[1]}"
    return f"{', '.join(shared)}: {first} of {names[0]} over {right}"


def settings(judged: StatementVerdict) -> str:
    """Return the settings at which a statement was judged: of both conditions, if they differ."""
    texts = dict.fromkeys(settings_text(condition) for condition in judged.conditions)
    if len(texts) == 1:
        return next(iter(texts))
    return "; ".join(f"{condition.arch}: {settings_text(condition)}" for condition in judged.conditions)


def _run_links(conditions: Iterable[Condition]) -> str:
    """Return the folders of the runs as links, grouped by parent; only the names of runs that have no folder."""
    paths = list(dict.fromkeys(run.path for one in conditions for run in (*one.runs, *one.diverged)))
    texts = []
    for parent, members in groupby(paths, key=lambda path: path.parent):
        names = [(path.name.partition("-")[0], path) for path in members]
        links = (name if packed_in(path) else f"[{name}]({path.as_posix()})" for name, path in names)
        texts.append(f"{parent.as_posix()} {', '.join(links)}")
    return "; ".join(texts) or "none"


def subject(judged: StatementVerdict) -> str:
    """Return what a statement is about, such as `lstm minus transformer (train_pairs=2000) on translation embedded`.

    Both conditions are named by what the statement selects; what they share stands once, in brackets.
    """
    first, second = judged.statement.of, judged.statement.minus
    words = _words(first)
    if not second:
        return f"{first['arch']}{_brackets(words)} on {_place(first)}"
    shared = [word for word in words if word in _words(second)]
    own = [[word for word in _words(selector) if word not in shared] for selector in (first, second)]
    names = [" ".join([selector["arch"], *each]) for selector, each in zip((first, second), own, strict=True)]
    if names[0] == names[1]:
        return f"{names[0]}{_brackets(shared)} on {_places(first, second)}"
    if first["arch"] == second["arch"] and own[1]:
        names[1] = " ".join(own[1])
    if _place(first) == _place(second):
        return f"{' minus '.join(names)}{_brackets(shared)} on {_place(first)}"
    return f"{names[0]} on {_place(first)} minus {names[1]} on {_place(second)}{_brackets(shared)}"


def _words(selector: Selector) -> list[str]:
    """Return what a statement selects besides architecture and test set: preset, settings, rows of an instrument."""
    preset = [] if selector["preset"] == "default" else [f"preset {selector['preset']}"]
    chosen = [key for key in selector if key not in CONDITION_KEYS and key != TAKE]
    settings = [f"{short_key(key)}={selector[key]}" for key in chosen if not key.startswith(ROWS)]
    rows = [f"{key.removeprefix(ROWS)} {selector[key]}" for key in chosen if key.startswith(ROWS)]
    if take := {"max": "largest", "min": "smallest"}.get(selector.get(TAKE, "")):
        rows = [f"{take} of {', '.join(rows)}" if rows else take]
    return [*preset, *settings, *rows]


def _brackets(words: Sequence[str]) -> str:
    return f" ({', '.join(words)})" if words else ""


def _place(selector: Selector) -> str:
    """Return the test set, such as `scan length`, and the examples of it."""
    test = [selector["test"]] if selector["test"] != "test" else []
    return " ".join([_data(selector), *test, *_tag(selector)])


def _data(selector: Selector) -> str:
    return " ".join(filter(None, (selector["task"], selector["split"], selector["corpus"])))


def _places(first: Selector, second: Selector) -> str:
    """Return two test sets, such as `counting occurrences, test minus test_51_60`."""
    splits = [_data(selector) for selector in (first, second)]
    if splits[0] != splits[1]:
        return f"{_place(first)} minus {_place(second)}"
    tests = [selector["test"] for selector in (first, second)]
    parts = (_tag(first), _tag(second)) if tests[0] == tests[1] else ([tests[0]], [tests[1]])
    return f"{splits[0]}, {' '.join(parts[0])} minus {' '.join(parts[1])}"


def _tag(selector: Selector) -> list[str]:
    return [selector["tag"], selector["value"]] if selector["tag"] else []


# All claims


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


def reason(verdict: ClaimVerdict, brief: bool = False) -> str:
    """Return the reason for a verdict, and the command that runs the experiments if there are none.

    With `brief`, of one statement its first part, of a theorem also the first sentence of its note.
    """
    claim, reasons = verdict.claim, verdict.reasons
    brief = brief and len(verdict.statements) < 2  # else each part is on other statements, such as those not run
    has_runs = any(statement.conditions for statement in verdict.statements)  # then they only lack a measurement
    missing = verdict.verdict == NOT_RUN and not has_runs and (len(reasons) == 1 or not brief)
    command = f"`{claim.command}`" if claim.command and missing else ""
    text = ": ".join(filter(None, ("; ".join(reasons[:1] if brief else reasons), command)))
    if not brief:
        return text
    correction = claim.note.partition(". ")[0].rstrip(".") if claim.tested_by else ""
    return ". ".join(filter(None, (text, correction)))  # the note may correct the claim


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
        return reason(verdict, brief)
    others = Counter(one.verdict for one in verdict.statements) - Counter(one.verdict for one, _ in shown)
    counts = ", ".join(f"{count} {kind}" for kind, count in others.items())
    return "; ".join([*(text for _, text in shown), *([f"other statements: {counts}"] if counts else [])])


def _brief(judged: StatementVerdict) -> str:
    """Return a statement in short: `lstm on scan length: 13.3 [11.1, 15.4], claimed: 18.2 ± 5`; empty if unmeasured."""
    if judged.statement.over:
        if judged.estimate is None:
            return ""
        return f"{ratio_subject(judged)}: {judged.estimate.interval.mean:.3g}, claimed: {judged.statement.claimed}"
    found = result(judged)
    unit = f" ({judged.statement.metric_label})" if judged.statement.metric != "exact_match" else ""
    return f"{subject(judged)}{unit}: {found}, claimed: {judged.statement.claimed}" if found else ""


def _studies(statements: Sequence[StatementVerdict], linked: bool) -> str:
    """Return the names of the studies whose runs were used, as links to their pages if `linked`."""
    used = (Path(condition.study).name for one in statements for condition in one.conditions)
    names = [*dict.fromkeys(used), *([PERFORMANCE] if any(one.pair for one in statements) else [])]
    return ", ".join(f"[{name}]({name}/README.md)" if linked else name for name in names)
