"""One run's result as a table for the terminal, below the published figures for its split scheme."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from tfstudy.analysis.metrics import metric_name
from tfstudy.analysis.published import Figure, best_known, published
from tfstudy.report.terminal import Terminal
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
PUBLISHED = ("network", "metric", "published", "n", "paper", "preset")
WIDTH = 150  # characters, where the output is not a terminal


def show(result: Result, by: str = "") -> None:
    """Print a result, with `by` also for each value of this tag; `UserError` for an unknown tag."""
    if by:
        one_of("tag", by, sorted({tag for scores in result.splits.values() for tag in scores.slices}))
    console = Terminal()
    if not console.is_terminal:
        console = Terminal(width=WIDTH)
    for part in summary(result, by):
        console.print(part, markup=False, highlight=False)


def summary(result: Result, by: str = "") -> list[Table | str]:
    """Return the tables and lines of a result: what papers report, and what it measured."""
    title = f"{result.task} {result.split}, {result.arch}, seed {result.seed}"
    if result.smoke:
        title = f"SMOKE RUN, its numbers mean nothing: {title}"
    if result.status != "finished":
        return [f"{title}: {result.status} ({result.reason})"]
    measured = list(dict.fromkeys(metric for scores in result.splits.values() for metric in scores.metrics))
    parts: list[Table | str] = [_scores(title, result.splits, [name for name in COLUMNS if name in measured], by)]
    if others := [metric for metric in measured if metric not in COLUMNS]:
        parts.append(_other_metrics(result.splits, others))
    if not by:
        parts += [
            *length_lines(result.lengths),
            *baseline_lines(result.splits),
            *limit_lines(result),
            *memory_lines(result),
            *(f"{name}: {text}" for name, text in result.signatures.items()),
        ]
    figures = [] if result.smoke else published_figures(result)
    return [_published_table(result, figures), *parts] if figures else parts


def published_figures(result: Result) -> list[Figure]:
    """Return, of each paper, metric and kind of network, the figure under its own settings, or else the highest.

    The figures of the result's own architecture come last.
    """
    groups: dict[tuple[str, str], list[Figure]] = {}
    for figure in published(result.task, result.split):
        if figure.test in result.splits and figure.method == "plain":
            groups.setdefault((figure.metric, figure.family), []).append(figure)
    chosen = [figure for members in groups.values() for figure in best_known(members)]
    return sorted(chosen, key=lambda figure: figure.family == result.arch)


def length_lines(lengths: Lengths) -> list[str]:
    """Return a line with the length thresholds; no line if no lengths were tested."""
    if not lengths:
        return []
    l90, l50 = (threshold(value, lengths.longest_tested) for value in (lengths.L90, lengths.L50))
    return [
        f"L90 {l90}, L50 {l50}: the longest length up to which exact match is at least 90 % and 50 % "
        f"(longest tested: {lengths.longest_tested})"
    ]


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
    """Return a length threshold as text: `>=` if no longer length was tested, `none` if no length reaches it."""
    return "none" if value is None else f">={value}" if value == longest_tested else str(value)


def _scores(title: str, splits: Mapping[str, SplitScores], metrics: Sequence[str], by: str) -> Table:
    table = Table(title=f"{title} (percent)", title_justify="left")
    table.add_column("split")
    if by:
        table.add_column(by, justify="right")
    table.add_column("examples", justify="right")
    for metric in metrics:
        table.add_column(COLUMNS[metric], justify="right")
        if metric == "exact_match":
            table.add_column("95 % interval", justify="right")
    for name, scores in splits.items():
        table.add_row(name, *(["all"] if by else []), *_cells(scores, metrics))
        for value, slice_ in scores.slices.get(by, {}).items():
            table.add_row("", value, *_cells(slice_, metrics))
    return table


def _cells(scores: Slice, metrics: Sequence[str]) -> list[str]:
    cells = [f"{scores.n:,}"]
    for metric in metrics if scores.n else ():
        cells.append(f"{100 * scores.metrics[metric]:.1f}")
        if metric == "exact_match":
            low, high = scores.exact_match_interval or (float("nan"), float("nan"))
            cells.append(f"{100 * low:.1f} to {100 * high:.1f}")
    return cells


def _other_metrics(splits: Mapping[str, SplitScores], metrics: Sequence[str]) -> Table:
    table = Table(title="metrics of this task (percent)", title_justify="left")
    table.add_column("split")
    for metric in metrics:
        table.add_column(metric.replace("_", " "), justify="right")
    for name, scores in splits.items():
        values = scores.metrics
        table.add_row(name, *(f"{100 * values[metric]:.1f}" if metric in values else "" for metric in metrics))
    return table


def _published_table(result: Result, figures: Sequence[Figure]) -> Table:
    """Return a table of published figures; each names the preset that has its settings, if there is one."""
    title = f"published for {result.task} {result.split} (percent; other settings unless a preset is named)"
    table = Table(title=title, title_justify="left")
    for name in PUBLISHED:
        table.add_column(name, justify="right" if name in ("published", "n") else "left")
    for one in figures:
        n = f"{one.n}" if one.n else ""
        table.add_row(one.arch, metric_name(one.metric), one.text, n, one.citation, one.preset)
    return table
