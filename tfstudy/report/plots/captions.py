"""What plots say in words: labels, the line about the runs under the axes, and alt texts."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill

from tfstudy.analysis.conditions import Condition, trained_steps
from tfstudy.report.markup import count_range
from tfstudy.runs.metrics import metric_name
from tfstudy.runs.schema import Result

MAX_LETTERS = 34  # in a line of a label


def run_caption(conditions: Sequence[Condition]) -> str:
    """Return seeds, steps and model sizes: `5 seeds per condition; 3,000 steps; 0.665M to 0.668M parameters`."""
    runs = [run.result for condition in conditions for run in condition.runs]
    seeds = count_range([len(condition.runs) for condition in conditions if condition.runs], "seed")
    sizes = dict.fromkeys(short_number(size(map(_parameters, runs))) for size in (min, max))
    parts = [
        f"{'One seed' if seeds == '1 seed' else seeds} per condition",
        count_range([trained_steps(condition) for condition in conditions], "step"),
        f"{' to '.join(sizes)} parameters",
    ]
    return "; ".join(parts)


def _parameters(result: Result) -> int:
    return result.parameters


def short_number(size: int) -> str:
    """Return `500`, `16.1k`, `0.67M`."""
    return f"{size / 1e6:.3g}M" if size >= 100_000 else f"{size / 1e3:.3g}k" if size >= 1000 else str(size)


def wrap(label: str, letters: int = MAX_LETTERS) -> str:
    """Return a condition's label in lines of at most this many letters."""
    return fill(label, letters, break_long_words=False, break_on_hyphens=False)


def metric_label(metrics: Mapping[str, str]) -> str:
    """Return the axis label of the tasks' main metrics: `exact match (%)`, `exact match, translation: BLEU (%)`."""
    names = {task: metric_name(metric) for task, metric in metrics.items()}
    if len(set(names.values())) == 1:
        return f"{next(iter(names.values()))} (%)"
    others = [f"{task}: {name}" for task, name in names.items() if name != "exact match"]
    return ", ".join(["exact match", *others] if len(others) < len(names) else others) + " (%)"


def describe(groups: Mapping[str, Sequence[Condition]], text: Callable[[Condition], str]) -> str:
    """Return what an alt text says about each condition; conditions without a text are left out."""
    texts = {name: [(c.label, text(c)) for c in members] for name, members in groups.items()}
    described = {name: [f"{label} {text}" for label, text in pairs if text] for name, pairs in texts.items()}
    return join([f"{name}: {', '.join(parts)}" for name, parts in described.items() if parts])


def join(parts: Sequence[str], max_parts: int = 12) -> str:
    """Join parts of an alt text; those beyond `max_parts` are counted."""
    return "; ".join([*parts[:max_parts], *([f"and {len(parts) - max_parts} more"] if len(parts) > max_parts else [])])
