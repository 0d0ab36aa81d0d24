"""One run's result: its scores, those of trivial systems, and length thresholds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.text import Text

from tfstudy.analysis.summary import length_threshold
from tfstudy.errors import one_of
from tfstudy.report.render import Cells, Listing
from tfstudy.runs.schema import Lengths, Result, Slice, SplitScores, metric_name

HEADS = {  # of metrics in their order; those that are a task's own come after them
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact_match": "exact match [95 %]",
    "token_accuracy": "token accuracy",
    "oracle_length_exact_match": "exact, oracle length",
    "teacher_forced_accuracy": "teacher-forced",
}


def listing(result: Result, by: str = "", path: Path | None = None, short: bool = False) -> Listing:
    """Return a result: what was measured on each split and of trivial systems; with `by` for each value of this tag.

    If `short`, only the main metrics are returned, and the length thresholds. `path` is the folder of the run, for
    JSON. `UserError` for an unknown tag.
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
    notes = length_lines(result.lengths)
    if not (short or by):
        notes += [*_limits(result), *(f"{name}: {text}" for name, text in result.signatures.items())]
    return Listing([_scores(f"{title} (percent)", result.splits, by, short)], notes, values)


def _scores(title: str, splits: Mapping[str, SplitScores], by: str, short: bool) -> Cells:
    """Return the table of metrics: a row for each split, its trivial systems, or the values of a tag."""
    rows: list[dict[str, str]] = []
    for name, scores in splits.items():
        rows.append({"split": name, "by": "all", **_texts(scores)})
        rows += [{"by": value, **_texts(part)} for value, part in scores.slices.get(by, {}).items()]
        for system, metrics in scores.baselines.items() if not (short or by) else ():
            rows.append({"split": f"{name}: {system}", **_texts(Slice(0, metrics))})
    own = dict.fromkeys(metric for row in rows for metric in row if metric not in ("split", "by", "n", *HEADS))
    keys = ["split", *["by"] * bool(by), "n", *HEADS, *([] if short else own)]
    heads = {metric: metric_name(metric) for metric in own} | HEADS | {"by": by}
    frame = {heads.get(key, key): [row.get(key, "") for row in rows] for key in keys if any(key in row for row in rows)}
    tests = [row.get("split") in splits and splits[row["split"]].role == "test" for row in rows]
    exact = HEADS["exact_match"]
    return Cells(frame, title, ("split", exact), bold={exact: tests}, names=1 + bool(by))


def _texts(scores: Slice) -> dict[str, str]:
    texts = {metric: f"{100 * share:5.1f}" for metric, share in scores.metrics.items()}
    if "exact_match" in texts and scores.exact_match_interval:
        low, high = scores.exact_match_interval
        texts["exact_match"] += f" [{100 * low:.1f}, {100 * high:.1f}]"
    return texts | ({"n": f"{scores.n:,}"} if scores.n else {})


def length_lines(lengths: Lengths) -> list[str]:
    """Return a line with the length thresholds; no line if no lengths were tested."""
    l90, l50 = (length_threshold([lengths], name) for name in ("L90", "L50"))
    text = "the longest length up to which exact match is at least 90 % and 50 %"
    return [f"L90 {l90}, L50 {l50}: {text} (longest tested: {lengths.longest_tested})"] if lengths else []


def _limits(result: Result) -> list[str]:
    """Return lines with the maximum length of outputs and how many reached it, and on how beams differ.

    Records of older code lack the former.
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
    return lines
