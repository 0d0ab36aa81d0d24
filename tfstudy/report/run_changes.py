"""What changed: a run against what its command would give now, and two runs against each other. Without torch."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from rich.text import Text

from tfstudy import models, tasks
from tfstudy.config.resolve import check_local, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import flatten
from tfstudy.errors import UserError
from tfstudy.experiment.code_versions import declared_versions, missing_plugin, version_changes
from tfstudy.report.markup import MINUS, number, signed
from tfstudy.report.render import Cells, Listing, Part
from tfstudy.runs.display import metric_name
from tfstudy.runs.environment import belongs_to_project, code_digest, current_name, plugin_digests
from tfstudy.runs.identity import identify, run_hash, settings_of
from tfstudy.runs.schema import Environment, Result
from tfstudy.runs.status import DIVERGED, FAILED, FINISHED, RUNNING, RunStatus, run_status
from tfstudy.runs.store import broken_because, how_to_continue, read_config, read_environments, read_result
from tfstudy.tasks.base import fingerprint

OUTDATED, CURRENT, UNFINISHED = "outdated", "up to date", "not finished"
STYLES = {OUTDATED: "bold red", CURRENT: "bold green", UNFINISHED: "bold yellow", "unknown": "bold yellow"}
SHOWN = 12  # changed modules that are listed by name
MACHINE = ("commit", "platform", "device", "threads", "processors", "preloaded")
Difference = tuple[str, str, str]  # what differs, its value in A and in B


class Verdict(NamedTuple):
    """Whether a run is what its command would give now."""

    path: str
    state: str
    verdict: str  # up to date, not finished (its settings, data and versions are the same), outdated or unknown
    reason: str  # of a verdict without changes, and what was not compared
    changes: list[str]
    code: list[str]  # on code that changed without a new version: a sentence, then the names of modules


def changes(path: Path, online: bool = False) -> Listing:
    """Return a run's state, why it is outdated, and code that changed without raising a version."""
    found = examine(path, online)
    reason = f"{'; ' if found.changes else ': '}{found.reason}" if found.reason else ""
    verdict = Text(f"{found.verdict}{reason}{':' if found.changes else ''}")
    verdict.stylize(STYLES[found.verdict], 0, len(found.verdict))
    details = [f"  {change}" for change in found.changes]
    code = [f"{'  ' * bool(number)}{line}" for number, line in enumerate(found.code)]
    return Listing([found.path, f"  {found.state}", verdict, *details, *code], (), found._asdict)


def examine(path: Path, online: bool = False) -> Verdict:
    """Compare a run with what its command would give now.

    Data of the Hugging Face hub, which the config of somebody else may name, are compared only with `online`.
    """
    run = run_status(path)
    state = _state(path, run)
    if broken := broken_because(path):
        return Verdict(str(path), state, "unknown", broken, [], [])
    try:
        tree = read_config(path)
        if missing := missing_plugin(path, str(tree.get("task")), str(tree.get("arch"))):
            return Verdict(str(path), state, "unknown", missing, [], [])
        config = resolve(tree)
    except UserError as error:
        return Verdict(str(path), state, OUTDATED, "its config is no longer valid", str(error).splitlines(), [])
    environments = read_environments(path)
    if not environments:
        reason = "it has no sound record of its code and data"
        return Verdict(str(path), state, "unknown", reason, [], [])
    entry = environments[-1]
    versions = version_changes(entry.code_versions, declared_versions(config.task, config.arch, config.data.split))
    changes, reasons = [*_record(path, config, entry), *_settings(config, entry), *versions], []
    try:
        if not online:
            check_local(config)
        data = fingerprint(tasks.build(config.task, config.data))
        changes += [f"data {entry.data[:8]}, now {data[:8]}"] if data != entry.data else []
    except UserError as error:
        reasons = [f"its data were not compared ({error})"]
    if not changes:
        reasons.insert(0, "its settings, data and declared versions have not changed")
    unchanged = CURRENT if run and run.state in (FINISHED, DIVERGED) else UNFINISHED
    verdict = OUTDATED if changes else unchanged
    return Verdict(str(path), state, verdict, "; ".join(reasons), changes, _code(config, environments))


def _state(path: Path, run: RunStatus | None) -> str:
    if not run:
        return "not started"
    at = f" at step {run.step} of {run.steps}" if run.steps else ""
    states = {
        FINISHED: "finished",
        DIVERGED: "finished: it diverged",
        RUNNING: f"running{at}",
        FAILED: f"failed{at}: {run.reason}; {how_to_continue(path)}",
    }
    return states.get(run.state, f"interrupted{at}; {how_to_continue(path)}")


def _record(path: Path, config: RunConfig, entry: Environment) -> Iterator[str]:
    """Whether the recorded settings, data and versions give the folder's hash."""
    settings = entry.settings or identify(config, "", {}).settings  # older records have no settings
    recorded = path.name.partition("-")[2].partition(".")[0]
    if not run_hash(settings, entry.data, entry.code_versions).startswith(recorded):
        yield "record: its settings, data and versions do not give the hash in the name of its folder"


def _settings(config: RunConfig, entry: Environment) -> Iterator[str]:
    """Settings of config.yaml that differ from those with which the run started, or whose default changed."""
    recorded = flatten(entry.settings)
    current = flatten(settings_of(config) | {"seed": config.seed})
    values = flatten(config.model_dump(mode="json"))
    for key in dict.fromkeys([*recorded, *current]) if recorded else ():
        if key not in values:
            yield f"config: {key} no longer exists"
        elif key in recorded and recorded[key] != values[key]:
            yield f"config: {key} was {recorded[key]} when the run started, but is {values[key]} in config.yaml"
        elif key not in current:
            yield f"config: {key} = {values[key]} has become the default"
        elif key not in recorded:
            yield f"config: {key} had its default when the run started; {values[key]} in config.yaml is not the default"


def _code(config: RunConfig, environments: Sequence[Environment]) -> list[str]:
    """Lines on modules whose code differs from that of any process that worked on the run."""
    unused = {f"tfstudy.models.{name}" for name in models.names() if name != config.arch}
    unused |= {f"tfstudy.tasks.{name}" for name in tasks.names() if name != config.task}
    entries = chain.from_iterable(entry.syntax_trees.items() for entry in environments)
    recorded = {(current_name(name), digest) for name, digest in entries}
    current = {name: code_digest(name) for name, _ in recorded if name not in unused and belongs_to_project(name)}
    current |= plugin_digests(config.task, config.arch)
    changed = sorted({name for name, digest in recorded if name in current and current[name] != digest})
    if not changed:
        return []
    names = [name if current[name] else f"{name} (no longer exists)" for name in changed]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [
        f"the code of {len(changed)} modules has changed since then without a new version: results may differ by "
        "rounding and the order of random draws only",
        f"{', '.join(names[:SHOWN])}{more}",
    ]


def differences(a: Path, b: Path) -> dict[str, list[Difference]]:
    """Return how two runs differ: in config, data, code and environment."""
    first, second = ((read_environments(path) or [Environment()])[-1] for path in (a, b))
    versions = [{f"{name} version": n for name, n in entry.code_versions.items()} for entry in (first, second)]
    shared = first.syntax_trees.keys() & second.syntax_trees.keys()  # modules that both runs imported
    modules = [{name: entry.syntax_trees[name][:8] for name in sorted(shared)} for entry in (first, second)]
    return {
        "config": _differing(flatten(read_config(a)), flatten(read_config(b))),
        "data": _differing({"content": first.data[:8]}, {"content": second.data[:8]}),
        "code": [*_differing(*versions), *_differing(*modules)],
        "environment": _differing(_machine(first), _machine(second)),
    }


def common_metrics(first: Result, second: Result) -> list[tuple[str, float, float]]:
    """Return each metric that both runs measured, in percent."""
    return [
        (f"{split} {metric_name(metric)}", 100 * share, 100 * second.splits[split].metrics[metric])
        for split, scores in first.splits.items()
        for metric, share in scores.metrics.items()
        if split in second.splits and metric in second.splits[split].metrics
    ]


def difference(a: Path, b: Path) -> Listing:
    """Return every difference of two runs, with the values of A and B, and the metrics that both measured."""
    found = differences(a, b)
    parts: list[Part] = [f"A {a}", f"B {b}"]
    for title, rows in found.items():
        if rows:
            frame = dict(zip((title, "A", "B"), map(list, zip(*rows, strict=True)), strict=True))
            parts += ["", Cells(frame, left=list(frame), folded=frozenset(frame))]
        else:
            parts += ["", Text(f"{title}: no difference", "dim")]
    metrics: list[tuple[str, float, float]] = []
    try:
        metrics = common_metrics(read_result(a), read_result(b))
        if not metrics:
            parts += ["", "metrics: the runs have none in common"]
    except UserError as error:
        parts += ["", f"metrics: not compared, because {error}"]
    if metrics:
        names, first, second = zip(*metrics, strict=True)
        change = [signed(round(y - x, 1) + 0.0) for _, x, y in metrics]
        texts = {"A": [*map(number, first)], "B": [*map(number, second)], f"B {MINUS} A": change}
        parts += ["", Cells({"metrics in percent": list(names), **texts})]

    def values() -> dict[str, Any]:  # percent; none if one of the runs has no result
        sections = {title: {key: {"a": x, "b": y} for key, x, y in rows} for title, rows in found.items()}
        shares = {name: {"a": round(x, 1), "b": round(y, 1)} for name, x, y in metrics}
        return {"a": str(a), "b": str(b), **sections, "metrics": shares}

    return Listing(parts, (), values)


def _machine(environment: Environment) -> dict[str, Any]:
    whole = environment.commit or ""
    commit = whole[:8] + "+" * whole.endswith("+")
    return {name: getattr(environment, name) or "-" for name in MACHINE} | {"commit": commit} | environment.versions


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    missing = object()
    keys = [key for key in {**a, **b} if a.get(key, missing) != b.get(key, missing)]
    return [(key, str(a.get(key, "-")), str(b.get(key, "-"))) for key in keys]
