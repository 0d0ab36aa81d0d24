"""The evidence on a statement of a claim in words: what was claimed, what was measured, at which settings."""

from collections.abc import Iterable
from itertools import groupby

from tfstudy.analysis.benchmarks import DEFAULTS, QUANTITIES, SETTINGS, SIZES
from tfstudy.analysis.claims import NOT_RUN, StatementVerdict
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.medians import EXACT
from tfstudy.analysis.reproduction import Reproduction
from tfstudy.analysis.settings_text import settings_text
from tfstudy.analysis.significance import UNPAIRED
from tfstudy.analysis.statements import CONDITION_KEYS, ROWS, TAKE, Selector
from tfstudy.config.trees import short_key
from tfstudy.report.markup import p_equals, plural, significant_interval, with_interval

PLACE = ("work", *SIZES)  # what two measurements of a ratio mostly share


def evidence(judged: StatementVerdict) -> str:
    """Return what was claimed, what was measured at which settings, the verdict, and the folders of the runs."""
    if judged.statement.over:
        return _ratio(judged)
    claimed = f"{about(judged)}, claimed: {_claimed(judged)}"
    if judged.verdict == NOT_RUN:
        return f"**{judged.verdict}**: {claimed}: {judged.reason}"
    unused = f"; not used (further from the preset, or fewer seeds): {judged.unused}" if judged.unused else ""
    found = f"; measured: {text}" if (text := measured(judged)) else ""
    text = f"**{judged.verdict}**: {claimed}{found}; {judged.reason}{unused}"
    return f"{text}. Settings: {settings(judged)}. Runs: {run_links(judged.conditions)}"


def about(judged: StatementVerdict) -> str:
    """Return what a statement is about, such as `exact match of lstm on scan length`."""
    return ratio_subject(judged) if judged.statement.over else f"{judged.statement.metric_label} of {subject(judged)}"


def measured(judged: StatementVerdict) -> str:
    """Return the result, `41.2 [35.0, 47.1] (n = 5), p = .034 against 50 (t)`; empty if it could not be measured."""
    if judged.statement.over:
        return _measured_ratio(judged)
    if judged.reproduction:
        return _reproduced(judged.reproduction)
    estimate = judged.estimate
    if estimate is None:
        return ""
    mean, low, high, n, method = estimate.interval
    if not n:
        return "nothing measured"
    sign = "+" if judged.statement.minus else ""
    within_run = " over test examples" * (method == "Wilson")
    family = "" if estimate.family == 1 else f", {plural(estimate.family, 'test')}"
    test = f", {p_equals(estimate.p)} against {estimate.bound:g} ({estimate.test}{family})" if estimate.test else ""
    shown = significant_interval if judged.statement.instrument else with_interval
    return f"{shown(mean, low, high, sign)}{within_run} (n = {_seeds(judged, n)}){test}"


def _seeds(judged: StatementVerdict, n: int) -> str:
    """Return the number of seeds: of both conditions, such as `10 and 5`, where they differ and are not paired."""
    counts = dict.fromkeys(len(condition.runs) for condition in judged.conditions)
    unpaired = judged.estimate is not None and judged.estimate.interval.method in UNPAIRED
    return " and ".join(map(str, counts)) if unpaired and min(counts) == n else str(n)


def _ratio(judged: StatementVerdict) -> str:
    """Return the evidence on a ratio of two measurements, with the machine that they were measured on."""
    subject = f"**{judged.verdict}**: {about(judged)}, claimed: {judged.statement.claimed}"
    if judged.pair is None or judged.estimate is None:
        return f"{subject}: {judged.reason}"
    machine = judged.pair.of.machine
    place = f"{machine.device}, {plural(machine.threads, 'thread')}, torch {machine.versions.get('torch', 'unknown')}"
    return f"{subject}; measured: {measured(judged)}; {judged.reason}. Machine: {place}, {machine.started[:10]}"


def _measured_ratio(judged: StatementVerdict) -> str:
    """Return a ratio, such as `1.76 [1.70, 1.80] (median of n = 15 rounds)`; empty if there is none."""
    if judged.estimate is None:
        return ""
    mean, low, high, n, method = judged.estimate.interval
    repeats = "exact" if method == EXACT else f"[{low:.3g}, {high:.3g}] (median of n = {n} rounds)"
    return f"{mean:.3g} {repeats}"


def ratio_subject(judged: StatementVerdict) -> str:
    """Return the subject of a ratio: `generation, length 64: target tokens per second of lstm over transformer`."""
    of, over = judged.statement.of, judged.statement.over
    shared = [str(of[key]) if key == "work" else f"{key} {of[key]}" for key in PLACE if of[key] == over[key]]
    shown = [key for key in of.keys() | over.keys() if key.startswith(SETTINGS)]
    names = []
    for selector in (of, over):
        words = [selector["arch"]] + [selector["variant"]] * (selector["variant"] != DEFAULTS["variant"])
        words += [f"{key} {selector[key]}" for key in PLACE if of[key] != over[key]]
        names.append(" ".join([*words, *(f"{key}={selector[key]}" for key in sorted(shown) if key in selector)]))
    first, second = QUANTITIES[of["quantity"]], QUANTITIES[over["quantity"]]
    right = names[1] if first == second else f"{second} of {names[1]}"
    return f"{', '.join(shared)}: {first} of {names[0]} over {right}"


def _reproduced(found: Reproduction) -> str:
    ours, gap = found.ours, found.difference
    if ours is None or gap is None:
        return "nothing measured"
    difference = with_interval(gap.mean, gap.low, gap.high, "+")
    return f"{with_interval(ours.mean, ours.low, ours.high)} (n = {ours.n}), difference {difference}"


def settings(judged: StatementVerdict) -> str:
    """Return the settings at which a statement was judged: of both conditions, if they differ."""
    texts = dict.fromkeys(settings_text(condition) for condition in judged.conditions)
    if len(texts) == 1:
        return next(iter(texts))
    return "; ".join(f"{condition.arch}: {settings_text(condition)}" for condition in judged.conditions)


def _claimed(judged: StatementVerdict) -> str:
    found = judged.reproduction
    if not found:
        return judged.statement.claimed
    seeds = f" (n = {found.figure.n})" if found.figure.n else ""
    return f"{judged.statement.claimed}{seeds} [{found.figure.citation}, {found.figure.place}]"


def run_links(conditions: Iterable[Condition]) -> str:
    """Return the folders of the runs as links, grouped by parent."""
    paths = list(dict.fromkeys(run.path for condition in conditions for run in (*condition.runs, *condition.diverged)))
    texts = []
    for parent, members in groupby(paths, key=lambda path: path.parent):
        links = ", ".join(f"[{path.name.partition('-')[0]}]({path.as_posix()})" for path in members)
        texts.append(f"{parent.as_posix()} {links}")
    return "; ".join(texts) or "none"


def subject(judged: StatementVerdict) -> str:
    """Return what a statement is about, such as `lstm (head 1) minus lstm (head 2) on scan length`."""
    selectors = [selector for selector in (judged.statement.of, judged.statement.minus) if selector]
    splits = [_split(selector) for selector in selectors]
    labels = [condition.label for condition in judged.conditions] or [_network(selector) for selector in selectors]
    labels = [label + _rows(selector) for label, selector in zip(labels, selectors, strict=False)]
    if len(set(splits)) == 1:
        return f"{' minus '.join(labels)} on {splits[0]}"
    return " minus ".join(f"{label} on {split}" for label, split in zip(labels, splits, strict=True))


def _rows(selector: Selector) -> str:
    chosen = {key.removeprefix(ROWS): value for key, value in selector.items() if key.startswith(ROWS) and key != TAKE}
    rows = ", ".join(f"{column} {value}" for column, value in chosen.items())
    take = {"max": "largest", "min": "smallest"}.get(selector.get(TAKE, ""), "")
    words = " of ".join(filter(None, (take, rows)))
    return f" ({words})" if words else ""


def _split(selector: Selector) -> str:
    words = [selector["task"], selector["split"]]
    words += [selector["test"]] if selector["test"] != "test" else []
    return " ".join([*words, f"{selector['tag']} {selector['value']}"] if selector["tag"] else words)


def _network(selector: Selector) -> str:
    settings = [
        f"{short_key(key)}={value}"
        for key, value in selector.items()
        if key not in CONDITION_KEYS and not key.startswith(ROWS)
    ]
    preset = [] if selector["preset"] == "default" else [selector["preset"]]
    return " ".join([selector["arch"], *preset, *settings])
