"""Two runs side by side: how they differ, and what they measured. Reads run folders only, without torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from tfstudy.config.trees import flatten
from tfstudy.errors import UserError
from tfstudy.report.markup import MINUS, number, signed
from tfstudy.report.text_columns import aligned
from tfstudy.runs.metrics import metric_name
from tfstudy.runs.reader import read_config, read_environments, read_result
from tfstudy.runs.schema import Environment, Result

Difference = tuple[str, str, str]  # what differs, its value in A and in B
MACHINE = ("commit", "platform", "device", "threads", "processors", "preloaded")


def compare(a: Path, b: Path) -> list[Text | str]:
    """Lines on every difference, with the values of A and B, and on the metrics that both runs measured."""
    lines: list[Text | str] = [f"A {a}", f"B {b}"]
    for title, differences in _sections(a, b).items():
        head = Text(f"{title}:" if differences else f"{title}: no difference", style="bold" if differences else "dim")
        lines += ["", head, *(f"  {line}" for line in aligned(differences))]
    return [*lines, "", *_metrics(a, b)]


def values(a: Path, b: Path) -> dict[str, Any]:
    """Return the same as plain values; metrics in percent, empty if one of the runs has no result."""
    try:
        rows = _metric_rows(read_result(a), read_result(b))
    except UserError:
        rows = []
    sections = {title: {key: {"a": x, "b": y} for key, x, y in found} for title, found in _sections(a, b).items()}
    metrics = {name: {"a": round(x, 1), "b": round(y, 1)} for name, x, y in rows}
    return {"a": str(a), "b": str(b), **sections, "metrics": metrics}


def _sections(a: Path, b: Path) -> dict[str, list[Difference]]:
    first, second = ((read_environments(path) or [Environment()])[-1] for path in (a, b))
    versions = [{f"{name} version": n for name, n in entry.code_versions.items()} for entry in (first, second)]
    return {
        "config": _differences(flatten(read_config(a)), flatten(read_config(b))),
        "data": _differences({"content": first.data[:8]}, {"content": second.data[:8]}),
        "code": [*_differences(*versions), *_changed_modules(first.syntax_trees, second.syntax_trees)],
        "environment": _differences(_machine(first), _machine(second)),
    }


def _machine(environment: Environment) -> dict[str, Any]:
    whole = environment.commit or ""
    commit = whole[:8] + "+" * whole.endswith("+")
    return {name: getattr(environment, name) or "-" for name in MACHINE} | {"commit": commit} | environment.versions


def _differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    missing = object()
    keys = [key for key in {**a, **b} if a.get(key, missing) != b.get(key, missing)]
    return [(key, str(a.get(key, "-")), str(b.get(key, "-"))) for key in keys]


def _changed_modules(a: Mapping[str, str], b: Mapping[str, str]) -> list[Difference]:
    """Modules that both runs imported, with different code."""
    return [(name, a[name][:8], b[name][:8]) for name in a if name in b and a[name] != b[name]]


def _metrics(a: Path, b: Path) -> list[str]:
    try:
        first, second = read_result(a), read_result(b)
    except UserError as error:
        return [f"metrics: not compared, because {error}"]
    rows = _metric_rows(first, second)
    if not rows:
        return ["metrics: the runs have none in common"]
    head = ("metrics in percent", "A", "B", f"B {MINUS} A")
    texts = [(name, number(x), number(y), signed(round(y - x, 1) + 0.0)) for name, x, y in rows]
    return [f"  {line}" for line in aligned([head, *texts], right=(1, 2, 3))]


def _metric_rows(first: Result, second: Result) -> list[tuple[str, float, float]]:
    """Return each metric that both runs measured, in percent."""
    rows: list[tuple[str, float, float]] = []
    for split in (name for name in first.splits if name in second.splits):
        others = second.splits[split].metrics
        for metric, share in first.splits[split].metrics.items():
            if metric in others:
                a, b = 100 * share, 100 * others[metric]
                rows.append((f"{split} {metric_name(metric)}", a, b))
    return rows
