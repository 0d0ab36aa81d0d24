"""One run's result as a table for the terminal, below the published figures for its split scheme."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from tfstudy.analysis.frame import RunRecord
from tfstudy.analysis.published import Figure, best_known, has_settings, published, unlike
from tfstudy.analysis.summary import conditions, rows_of
from tfstudy.errors import one_of
from tfstudy.evaluation.breakdown import MIN_EXAMPLES
from tfstudy.report.terminal import Terminal, fitted_table, plain_table
from tfstudy.runs.display import metric_name, percent_of
from tfstudy.runs.schema import Lengths, Result, Slice, SplitScores

COLUMNS = {  # metrics in the main table, if they were measured; others have a table of their own
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
    "oracle_length_exact_match": "exact, oracle length",
    "teacher_forced_accuracy": "teacher-forced",
}
EXACT = "exact match\n[95\u00a0%]"
LEFT_OUT = (
    "teacher_forced_accuracy",
    "oracle_length_exact_match",
    "token_accuracy",
)  # in this order, until the rest fits


def show(result: Result, by: str = "", path: Path | None = None, short: bool = False) -> None:
    """Print a result, with `by` also for each value of this tag; `UserError` for an unknown tag.

    With the folder of the run, published figures say how their settings differ from the run's. If `short`, only the
    table of the main metrics is printed, and the length thresholds.
    """
    if by:
        one_of("tag", by, sorted({tag for scores in result.splits.values() for tag in scores.slices}))
    console = Terminal()
    for part in summary(result, by, path, console.width, short):
        console.print(part)


def summary(
    result: Result, by: str = "", path: Path | None = None, width: int = 80, short: bool = False
) -> list[Table | Text | str]:
    """Return the tables and lines of a result: what papers report, then what it measured.

    Tables have at most `width` characters in a line; what does not fit is left out or stands in another table.
    """
    title = f"{result.task} {result.split}, {result.arch}, seed {result.seed}"
    if result.smoke:
        title = f"SMOKE RUN, its numbers mean nothing: {title}"
    if result.status != "finished":
        return [Text(f"{title}: {result.status} ({result.reason})", style="red")]
    measured = list(dict.fromkeys(metric for scores in result.splits.values() for metric in scores.metrics))
    parts: list[Table | Text | str] = _scores(
        title, result.splits, [name for name in COLUMNS if name in measured], by, width
    )
    if short:
        return [*parts, *(Text(line, style="dim") for line in length_lines(result.lengths))]
    if others := [metric for metric in measured if metric not in COLUMNS]:
        shares = {
            name: [percent_of(scores.metrics.get(metric)) for metric in others]
            for name, scores in result.splits.items()
        }
        names = {"metric of this task (percent)": [metric.replace("_", " ") for metric in others]}
        parts += ["", fitted_table(names | shares, width, left=names)[0]]
    if not by:
        parts += _trivial_systems(result.splits, width)
        signatures = (f"{name}: {text}" for name, text in result.signatures.items())
        facts = [*length_lines(result.lengths), *_limit_and_memory_lines(result), *signatures]
        parts += ["", *(Text(line, style="dim") for line in facts)] if facts else []
    return parts if result.smoke else [*published_parts(result, path), *parts]


def length_lines(lengths: Lengths) -> list[str]:
    """Return a line with the length thresholds; no line if no lengths were tested."""
    if not lengths:
        return []
    l90, l50 = (threshold(value, lengths.longest_tested) for value in (lengths.L90, lengths.L50))
    counts = {int(length): part["n"] for length, part in lengths.exact_match.items()}
    longest, tested = max(counts, default=0), f"longest tested: {lengths.longest_tested}"
    if longest > lengths.longest_tested:
        enough = min(MIN_EXAMPLES, round(max(counts.values())))
        tested = f"longest with at least {enough} examples: {lengths.longest_tested}; {longest} with fewer"
    return [f"L90 {l90}, L50 {l50}: the longest length up to which exact match is at least 90 % and 50 % ({tested})"]


def _limit_and_memory_lines(result: Result) -> list[str]:
    """Return a line with the maximum length of outputs and how many reached it, and one with the peak memory.

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
    phases = {"training": result.train_peak_mib, "evaluation": result.evaluate_peak_mib}
    if peaks := ", ".join(f"{peak:,.0f} MiB in {phase}" for phase, peak in phases.items() if peak):
        lines.append(f"peak memory: {peaks}")
    return lines


def threshold(value: int | None, longest_tested: int) -> str:
    """Return a length threshold as text: `>=` if no longer length counts, `none` if no length reaches it."""
    return "none" if value is None else f">={value}" if value == longest_tested else str(value)


def _scores(
    title: str, splits: Mapping[str, SplitScores], metrics: Sequence[str], by: str, width: int
) -> list[Table | Text | str]:
    """Return the table of the main metrics, and a line with those that were left out to fit the width."""
    rows: list[tuple[str, str, Slice]] = []
    for name, scores in splits.items():
        rows.append((name, "all", scores))
        rows += [("", value, slice_) for value, slice_ in scores.slices.get(by, {}).items()]
    columns = {"split": [name for name, _, _ in rows]}
    if by:
        columns[by if by not in (*columns, "n") else f"tag {by}"] = [value for _, value, _ in rows]
    columns["n"] = [f"{scores.n:,}" for _, _, scores in rows]
    heads = {metric: COLUMNS[metric].replace("-", "-\n") for metric in metrics} | {"exact_match": EXACT}
    columns |= {heads[metric]: [_cell(scores, metric) for _, _, scores in rows] for metric in metrics}
    bold = {number for number, (name, _, _) in enumerate(rows) if name and splits[name].role == "test"}
    optional = [heads[metric] for metric in LEFT_OUT if metric in metrics]
    table, left_out = fitted_table(columns, width, f"{title} (percent)", ("split", EXACT), optional, bold)
    names = ", ".join(head.replace("\n", "") for head in left_out)
    note = f"left out to fit {width} characters: {names}; --format json has all metrics"
    return [table, *([Text(note, style="dim")] if left_out else [])]


def _cell(scores: Slice, metric: str) -> str:
    if not scores.n:
        return ""
    share = f"{100 * scores.metrics[metric]:5.1f}"
    if metric == "exact_match" and scores.exact_match_interval:
        low, high = scores.exact_match_interval
        share += f" [{100 * low:.1f}, {100 * high:.1f}]"
    return share


def _trivial_systems(splits: Mapping[str, SplitScores], width: int) -> list[Table | Text | str]:
    """Return a table with the first two of the main metrics of each trivial system on each split."""
    systems = {name: metrics for scores in splits.values() for name, metrics in scores.baselines.items()}
    if not systems:
        return []
    own = {name: scores.baselines for name, scores in splits.items() if scores.baselines}
    columns = {"split": list(own)}
    for system, metrics in systems.items():
        for metric in [metric for metric in COLUMNS if metric in metrics][:2]:
            cells = [percent_of(baselines.get(system, {}).get(metric)) for baselines in own.values()]
            columns[f"{system}:\n{COLUMNS[metric]}"] = cells
    return ["", fitted_table(columns, width, "trivial systems (percent)", ("split",))[0]]


# Published figures


def published_parts(result: Result, path: Path | None = None) -> list[Table | Text | str]:
    """Return a table of published figures, the run's own architecture last; nothing without figures.

    The table names the preset that has the settings of a figure. With the folder of the run, a line for each paper on
    its architecture says how the settings differ.
    """
    figures = published_figures(result)
    if not figures:
        return []
    table = plain_table(f"published for {result.task} {result.split} (percent)")
    for name in ("network", "metric", "published", "paper", "preset"):
        table.add_column(name, justify="right" if name == "published" else "left")
    for one in figures:
        metric = metric_name(one.metric).removeprefix("exact match, ")
        style = "bold" if one.family == result.arch else ""
        table.add_row(one.arch, metric, one.text, one.citation, one.preset, style=style)
    record = RunRecord(path, result) if path else None
    known = rows_of(conditions([record])) if record and record.config else []  # a config may be unreadable
    notes: dict[str, None] = {}
    for figure in (figure for figure in figures if figure.family == result.arch):
        for condition in [condition for condition in known if condition.test == figure.test][:1]:
            same = has_settings(figure, condition)
            notes[f"{figure.citation}: {'the same settings' if same else unlike(figure, condition)}"] = None
    return [table, *(Text(note, style="dim") for note in notes), ""]


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
