"""One run's result: its scores, lengths, trivial systems, and the published figures for its split scheme."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.text import Text

from tfstudy.analysis.published import Figure, best_known, published
from tfstudy.analysis.summary import length_threshold
from tfstudy.errors import one_of
from tfstudy.evaluation.breakdown import MIN_EXAMPLES
from tfstudy.report.render import Cells, Listing
from tfstudy.runs.display import metric_name, percent_of
from tfstudy.runs.schema import Lengths, Result, Slice, SplitScores

COLUMNS = {  # metrics in the main table, if they were measured; others have a table of their own
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact_match": "exact match\n[95 %]",
    "token_accuracy": "token accuracy",
    "oracle_length_exact_match": "exact, oracle length",
    "teacher_forced_accuracy": "teacher- forced",
}


def listing(result: Result, by: str = "", path: Path | None = None, short: bool = False) -> Listing:
    """Return a result: published figures, then what was measured, with `by` also for each value of this tag.

    If `short`, only the table of the main metrics is returned, and the length thresholds. `path` is the folder of the
    run, for JSON. `UserError` for an unknown tag.
    """
    if by:
        one_of("tag", by, sorted({tag for scores in result.splits.values() for tag in scores.slices}))

    def values() -> dict[str, Any]:  # as they are recorded
        return ({"path": str(path)} if path else {}) | dict(msgspec.json.decode(msgspec.json.encode(result)))

    title = f"{result.task} {result.split}, {result.arch}, seed {result.seed}"
    if result.smoke:
        title = f"SMOKE RUN, its numbers mean nothing: {title}"
    if result.status != "finished":
        return Listing([Text(f"{title}: {result.status} ({result.reason})", "red")], (), values)
    scores, notes = _scores(f"{title} (percent)", result.splits, by), length_lines(result.lengths)
    if short or by:
        return Listing([scores, *([] if short else _others(result))], notes, values)
    figures = [] if result.smoke else _published(result)
    notes += [*_limit_and_memory(result), *(f"{name}: {text}" for name, text in result.signatures.items())]
    return Listing([*figures, scores, *_others(result), *_trivial_systems(result.splits)], notes, values)


def _scores(title: str, splits: Mapping[str, SplitScores], by: str) -> Cells:
    """Return the table of the main metrics."""
    measured = {metric for scores in splits.values() for metric in scores.metrics}
    rows: list[tuple[str, str, Slice]] = []
    for name, scores in splits.items():
        rows.append((name, "all", scores))
        rows += [("", value, slice_) for value, slice_ in scores.slices.get(by, {}).items()]
    frame = {"split": [name for name, _, _ in rows]}
    frame |= {"by": [value for _, value, _ in rows]} if by else {}
    frame |= {"n": [f"{scores.n:,}" for *_, scores in rows]}
    frame |= {metric: [_cell(own, metric) for *_, own in rows] for metric in COLUMNS if metric in measured}
    tests = [bool(name) and splits[name].role == "test" for name, *_ in rows]
    left = ("split", "exact_match")
    return Cells(frame, {**COLUMNS, "by": by}, title, left, bold={"exact_match": tests}, names=1 + bool(by))


def _cell(scores: Slice, metric: str) -> str:
    if not scores.n:
        return ""
    share = f"{100 * scores.metrics[metric]:5.1f}"
    if metric == "exact_match" and scores.exact_match_interval:
        low, high = scores.exact_match_interval
        share += f" [{100 * low:.1f}, {100 * high:.1f}]"
    return share


def _others(result: Result) -> list[Cells]:
    """Return a table of the metrics that are this task's own, with a column for each split."""
    metrics = dict.fromkeys(metric for scores in result.splits.values() for metric in scores.metrics)
    if not (others := [metric for metric in metrics if metric not in COLUMNS]):
        return []
    frame = {"metric of this task (percent)": [metric.replace("_", " ") for metric in others]}
    frame |= {
        name: [percent_of(scores.metrics.get(metric)) for metric in others] for name, scores in result.splits.items()
    }
    return [Cells(frame, folded=frozenset(frame))]


def _trivial_systems(splits: Mapping[str, SplitScores]) -> list[Cells]:
    """Return a table with the first two of the main metrics of each trivial system on each split."""
    own = {name: scores.baselines for name, scores in splits.items() if scores.baselines}
    frame = {"split": list(own)}
    for system, metrics in {name: one for baselines in own.values() for name, one in baselines.items()}.items():
        for metric in [metric for metric in COLUMNS if metric in metrics][:2]:
            shares = (baselines.get(system, {}).get(metric) for baselines in own.values())
            frame[f"{system}: {metric_name(metric)}"] = list(map(percent_of, shares))
    return [Cells(frame, title="trivial systems (percent)")] if own else []


def length_lines(lengths: Lengths) -> list[str]:
    """Return a line with the length thresholds; no line if no lengths were tested."""
    if not lengths:
        return []
    l90, l50 = (length_threshold([lengths], name) for name in ("L90", "L50"))
    counts = {int(length): part["n"] for length, part in lengths.exact_match.items()}
    longest, tested = max(counts, default=0), f"longest tested: {lengths.longest_tested}"
    if longest > lengths.longest_tested:
        enough = min(MIN_EXAMPLES, round(max(counts.values())))
        tested = f"longest with at least {enough} examples: {lengths.longest_tested}; {longest} with fewer"
    return [f"L90 {l90}, L50 {l50}: the longest length up to which exact match is at least 90 % and 50 % ({tested})"]


def _limit_and_memory(result: Result) -> list[str]:
    """Return lines with the maximum length of outputs and how many reached it, how beams differ, and the peak memory.

    Records of older code lack either.
    """
    lines, limit = [], result.generation_limit
    if limit.constant:
        relative = f"{limit.per_source_token:g} x source length + " if limit.per_source_token else ""
        cut = ", ".join(
            f"{scores.limit_hits:,} of {scores.n:,} on {name} ({100 * scores.limit_hits / scores.n:.1f} %)"
            for name, scores in result.splits.items()
            if scores.limit_hits
        )
        lines.append(f"outputs of at most {relative}{limit.constant} tokens; cut there: {cut or 'none'}")
    if result.decode.method == "beam":
        lines.append(f"oracle length is decoded greedily, all else by beam search of size {result.decode.beam_size}")
    phases = {"training": result.train_peak_mib, "evaluation": result.evaluate_peak_mib}
    if peaks := ", ".join(f"{peak:,.0f} MiB in {phase}" for phase, peak in phases.items() if peak):
        lines.append(f"peak memory: {peaks}")
    return lines


def _published(result: Result) -> list[Cells]:
    """Return a table of published figures, the run's own architecture last; none without figures.

    It has, of each paper, metric and kind of network, the figure under its own settings, or else the highest, and the
    preset that has these settings.
    """
    groups: dict[tuple[str, str], list[Figure]] = {}
    for figure in published(result.task, result.split):
        if figure.test in result.splits and figure.method == "plain":
            groups.setdefault((figure.metric, figure.family), []).append(figure)
    chosen = [figure for members in groups.values() for figure in best_known(members)]
    figures = sorted(chosen, key=lambda figure: figure.family == result.arch)
    frame = {
        "network": [one.arch for one in figures],
        "metric": [metric_name(one.metric).removeprefix("exact match, ") for one in figures],
        "published": [one.text for one in figures],
        "paper": [one.citation for one in figures],
        "preset": [one.preset for one in figures],
    }
    title, own = f"published for {result.task} {result.split} (percent)", [one.family == result.arch for one in figures]
    return [Cells(frame, title=title, bold={"published": own}, folded=frozenset(frame))] if figures else []
