"""One run's result as a table for the terminal, below the published figures for its split scheme."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from tfstudy.evaluation.lengths import MIN_EXAMPLES
from tfstudy.report.run_figures import published_parts
from tfstudy.report.terminal import Terminal, plain_table
from tfstudy.runs.schema import Lengths, Result, Slice, SplitScores
from tfstudy.tasks.errors import one_of

COLUMNS = {  # metrics in the main table, if they were measured; others have a table of their own
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
    "oracle_length_exact_match": "exact, oracle length",
    "teacher_forced_accuracy": "teacher-forced",
}


def show(result: Result, by: str = "", path: Path | None = None) -> None:
    """Print a result, with `by` also for each value of this tag; `UserError` for an unknown tag.

    With the folder of the run, published figures say how their settings differ from the run's.
    """
    if by:
        one_of("tag", by, sorted({tag for scores in result.splits.values() for tag in scores.slices}))
    console = Terminal()
    for part in summary(result, by, path):
        console.print(part, markup=False, highlight=False)


def summary(result: Result, by: str = "", path: Path | None = None) -> list[Table | Text | str]:
    """Return the tables and lines of a result: what papers report, then what it measured."""
    title = f"{result.task} {result.split}, {result.arch}, seed {result.seed}"
    if result.smoke:
        title = f"SMOKE RUN, its numbers mean nothing: {title}"
    if result.status != "finished":
        return [Text(f"{title}: {result.status} ({result.reason})", style="red")]
    measured = list(dict.fromkeys(metric for scores in result.splits.values() for metric in scores.metrics))
    parts: list[Table | Text | str] = [
        _scores(title, result.splits, [name for name in COLUMNS if name in measured], by)
    ]
    if others := [metric for metric in measured if metric not in COLUMNS]:
        parts += ["", _other_metrics(result.splits, others)]
    if facts := [] if by else _fact_lines(result):
        parts += ["", *(Text(line, style="dim") for line in facts)]
    return parts if result.smoke else [*published_parts(result, path), *parts]


def _fact_lines(result: Result) -> list[str]:
    """Return lines on lengths, trivial systems, limits, memory and the signatures of metrics."""
    return [
        *length_lines(result.lengths),
        *baseline_lines(result.splits),
        *limit_lines(result),
        *memory_lines(result),
        *(f"{name}: {text}" for name, text in result.signatures.items()),
    ]


def length_lines(lengths: Lengths) -> list[str]:
    """Return a line with the length thresholds; no line if no lengths were tested."""
    if not lengths:
        return []
    l90, l50 = (threshold(value, lengths.longest_tested) for value in (lengths.L90, lengths.L50))
    counts = {
        int(length): part["n"] for length, part in lengths.exact_match.items() if length.isdecimal() and "n" in part
    }
    longest, tested = max(counts, default=0), f"longest tested: {lengths.longest_tested}"
    if longest > lengths.longest_tested:
        enough = min(MIN_EXAMPLES, round(max(counts.values())))
        tested = f"longest with at least {enough} examples: {lengths.longest_tested}; {longest} with fewer"
    return [f"L90 {l90}, L50 {l50}: the longest length up to which exact match is at least 90 % and 50 % ({tested})"]


def baseline_lines(splits: Mapping[str, SplitScores]) -> list[str]:
    """Return a line for each trivial system and split: its metrics in percent."""
    return [
        f"{name}, on {split}: "
        + ", ".join(f"{COLUMNS.get(key, key)} {100 * value:.1f}" for key, value in metrics.items())
        for split, scores in splits.items()
        for name, metrics in scores.baselines.items()
    ]


def limit_lines(result: Result) -> list[str]:
    """Return a line with the maximum length of outputs and how many reached it; no line for records without it."""
    limit = result.generation_limit
    if not limit.constant:
        return []
    relative = f"{limit.per_source_token:g} x source length + " if limit.per_source_token else ""
    cut = ", ".join(
        f"{scores.limit_hits:,} of {scores.n:,} on {name} ({100 * scores.limit_hits / scores.n:.1f} %)"
        for name, scores in result.splits.items()
        if scores.limit_hits
    )
    return [f"outputs of at most {relative}{limit.constant} tokens; cut there: {cut or 'none'}"]


def memory_lines(result: Result) -> list[str]:
    """Return a line with the peak memory, if it was recorded."""
    phases = {"training": result.train_peak_mib, "evaluation": result.evaluate_peak_mib}
    peaks = ", ".join(f"{peak:,.0f} MiB in {phase}" for phase, peak in phases.items() if peak)
    return [f"peak memory: {peaks}"] if peaks else []


def threshold(value: int | None, longest_tested: int) -> str:
    """Return a length threshold as text: `>=` if no longer length counts, `none` if no length reaches it."""
    return "none" if value is None else f">={value}" if value == longest_tested else str(value)


def _scores(title: str, splits: Mapping[str, SplitScores], metrics: Sequence[str], by: str) -> Table:
    table = plain_table(f"{title} (percent)")
    table.add_column("split", no_wrap=True)
    if by:
        table.add_column(by, justify="right")
    table.add_column("n", justify="right", no_wrap=True)  # examples
    for metric in metrics:
        exact = metric == "exact_match"
        head = "exact match [95 %]" if exact else COLUMNS[metric].replace("-", "-\n")
        table.add_column(head, justify="left" if exact else "right", no_wrap=exact, vertical="bottom")
    for name, scores in splits.items():
        style = "bold" if scores.role == "test" else ""
        table.add_row(name, *(["all"] if by else []), *_cells(scores, metrics), style=style)
        for value, slice_ in scores.slices.get(by, {}).items():
            table.add_row("", value, *_cells(slice_, metrics))
    return table


def _cells(scores: Slice, metrics: Sequence[str]) -> list[str]:
    cells = [f"{scores.n:,}"]
    for metric in metrics if scores.n else ():
        share = f"{100 * scores.metrics[metric]:5.1f}"
        if metric == "exact_match" and scores.exact_match_interval:
            low, high = scores.exact_match_interval
            share += f" [{100 * low:.1f}, {100 * high:.1f}]"
        cells.append(share)
    return cells


def _other_metrics(splits: Mapping[str, SplitScores], metrics: Sequence[str]) -> Table:
    table = plain_table("metrics of this task (percent)")
    table.add_column("split", overflow="fold")
    for metric in metrics:
        table.add_column(metric.replace("_", " "), justify="right")
    for name, scores in splits.items():
        values = scores.metrics
        table.add_row(name, *(f"{100 * values[metric]:.1f}" if metric in values else "" for metric in metrics))
    return table
