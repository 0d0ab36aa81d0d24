"""Two runs beside each other: what they differ in, and what they measured. Reads run folders alone, without torch."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.errors import UserError
from tfstudy.analysis.collection import flat
from tfstudy.runs.reader import read_config, read_environments, read_result

ENVIRONMENT = ("commit", "platform", "device", "threads", "processors")


def compare(a: Path, b: Path) -> list[str]:
    """Lines on what differs, first that of A, then that of B; then the metrics of the splits that both have."""
    lines = [f"A {a}", f"B {b}"]
    configs = [flat(read_config(path)) for path in (a, b)]
    environments = [(read_environments(path) or [{}])[-1] for path in (a, b)]
    code = [{f"version of the {k}": v for k, v in env.get("code_versions", {}).items()} for env in environments]
    trees = [env.get("syntax_trees", {}) for env in environments]
    around = [_around(environment) for environment in environments]
    lines += _section("config", _differences(*configs))
    lines += _section("data", _differences(*({"content": env.get("data", "")[:8]} for env in environments)))
    lines += _section("code", [*_differences(*code), *_both(*trees)])
    lines += _section("environment", _differences(*around))
    return [*lines, "", *_measured(a, b)]


def _around(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Of an entry of `env.json`, what it ran with and on."""
    return {name: environment.get(name) for name in ENVIRONMENT} | dict(environment.get("versions", {}))


def _differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    none = object()
    keys = [key for key in {**a, **b} if a.get(key, none) != b.get(key, none)]
    return [(key, str(a.get(key, "-")), str(b.get(key, "-"))) for key in keys]


def _both(a: Mapping[str, str], b: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Files that both had loaded, in two forms; a file that one alone had loaded says nothing."""
    return [(name, a[name][:8], b[name][:8]) for name in a if name in b and a[name] != b[name]]


def _section(title: str, rows: Sequence[tuple[str, str, str]]) -> list[str]:
    return ["", f"{title}:", *_aligned(rows)] if rows else ["", f"{title}: the same"]


def _aligned(rows: Iterable[Sequence[str]], numbers: bool = False) -> list[str]:
    """Rows as lines with columns, of which those after the first stand to the right if they are numbers."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    align = ["<", *([">"] * (len(widths) - 1) if numbers else ["<"] * (len(widths) - 1))]
    return [
        ("  " + "  ".join(f"{c:{s}{w}}" for c, s, w in zip(row, align, widths, strict=True))).rstrip() for row in rows
    ]


def _measured(a: Path, b: Path) -> list[str]:
    results = []
    for path in (a, b):
        try:
            results.append(read_result(path))
        except UserError as error:
            return [f"metrics: not compared, since {error}"]
    first, second = (result.get("splits", {}) for result in results)
    rows = [("metrics in per cent", "A", "B", "B - A")]
    for split in first:
        for metric, value in first[split].get("metrics", {}).items():
            other = second.get(split, {}).get("metrics", {}).get(metric)
            if other is not None:
                points = f"{100 * (other - value):+.1f}"
                rows.append((f"{split} {metric.replace('_', ' ')}", f"{100 * value:.1f}", f"{100 * other:.1f}", points))
    if len(rows) == 1:
        return ["metrics: none that both have"]
    return [line.removeprefix("  ") for line in _aligned(rows, numbers=True)]
