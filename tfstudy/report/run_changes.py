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
from tfstudy.report.markup import MINUS, listed, number, signed
from tfstudy.report.render import Cells, Listing, Part
from tfstudy.runs.display import metric_name
from tfstudy.runs.environment import belongs_to_project, code_digest, current_name, plugin_digests
from tfstudy.runs.identity import identify, run_hash, settings_of
from tfstudy.runs.schema import Environment, Result
from tfstudy.runs.status import DIVERGED, FAILED, FINISHED, RUNNING, RunStatus, run_status
from tfstudy.runs.store import broken_because, how_to_continue, read_config, read_environments, read_result
from tfstudy.tasks.base import fingerprint

OUTDATED, CURRENT, UNFINISHED, UNKNOWN = "outdated", "up to date", "not finished", "unknown"
STYLES = {OUTDATED: "bold red", CURRENT: "bold green", UNFINISHED: "bold yellow", UNKNOWN: "bold yellow"}
SHOWN = 12  # changed modules that are listed by name
MACHINE = ("commit", "platform", "device", "threads", "processors", "preloaded")
DEFAULT = "its default"  # the value of a setting that a record does not name
Difference = tuple[str, str, str]  # what differs, its value in A and in B


class Verdict(NamedTuple):
    """Whether a run is what its command would give now."""

    verdict: str  # up to date, not finished (its settings, data and versions are the same), outdated or unknown
    reason: str  # of a verdict without changes, and what was not compared
    changes: Sequence[str] = ()
    code: Sequence[str] = ()  # on code that changed without a new version: a sentence, then the names of modules


def changes(path: Path, online: bool = False) -> Listing:
    """Return a run's state, why it is outdated, and code that changed without raising a version."""
    run = run_status(path)
    state, found = _state(path, run), examine(path, run, online)
    reason = f"{'; ' if found.changes else ': '}{found.reason}" if found.reason else ""
    verdict = Text(f"{found.verdict}{reason}{':' if found.changes else ''}")
    verdict.stylize(STYLES[found.verdict], 0, len(found.verdict))
    details = [*(f"  {change}" for change in found.changes), *found.code[:1], *(f"  {one}" for one in found.code[1:])]
    values = {"path": str(path), "state": state} | found._asdict()
    return Listing([str(path), f"  {state}", verdict, *details], (), lambda: values)


def examine(path: Path, run: RunStatus | None, online: bool = False) -> Verdict:
    """Compare a run with what its command would give now.

    Data of the Hugging Face hub, which the config of somebody else may name, are compared only with `online`.
    """
    if broken := broken_because(path):
        return Verdict(UNKNOWN, broken)
    try:
        tree = read_config(path)
        if missing := missing_plugin(path, str(tree.get("task")), str(tree.get("arch"))):
            return Verdict(UNKNOWN, missing)
        config = resolve(tree)
    except UserError as error:
        return Verdict(OUTDATED, "its config is no longer valid", str(error).splitlines())
    environments = read_environments(path)
    if not environments:
        return Verdict(UNKNOWN, "it has no sound record of its code and data")
    entry = environments[-1]
    versions = version_changes(entry.code_versions, declared_versions(config.task, config.arch, config.data.split))
    changes, reasons = [*_settings(path, config, entry), *versions], []
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
    return Verdict(OUTDATED if changes else unchanged, "; ".join(reasons), changes, _code(config, environments))


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


def _settings(path: Path, config: RunConfig, entry: Environment) -> Iterator[str]:
    """Settings of config.yaml that differ from those with which the run started, or whose default changed."""
    settings = entry.settings or identify(config, "", {}).settings  # older records have no settings
    hash_ = path.name.partition("-")[2].partition(".")[0]
    if not run_hash(settings, entry.data, entry.code_versions).startswith(hash_):
        yield "record: its settings, data and versions do not give the hash in the name of its folder"
    recorded, current = flatten(entry.settings), flatten(settings_of(config) | {"seed": config.seed})
    for key in dict.fromkeys([*recorded, *current]) if recorded else ():
        if (then := recorded.get(key, DEFAULT)) != (now := current.get(key, DEFAULT)):
            yield f"config: {key} was {then} when the run started, now it is {now}"


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
    return [
        f"the code of {len(changed)} modules has changed since then without a new version: results may differ by "
        "rounding and the order of random draws only",
        listed(names, SHOWN),
    ]


def difference(a: Path, b: Path) -> Listing:
    """Return every difference of two runs, with the values of A and B, and the metrics that both measured."""
    first, second = ((read_environments(path) or [Environment()])[-1] for path in (a, b))
    versions = [{f"{name} version": n for name, n in entry.code_versions.items()} for entry in (first, second)]
    shared = first.syntax_trees.keys() & second.syntax_trees.keys()  # modules that both runs imported
    modules = [{name: entry.syntax_trees[name][:8] for name in sorted(shared)} for entry in (first, second)]
    found = {
        "config": _differing(flatten(read_config(a)), flatten(read_config(b))),
        "data": _differing({"content": first.data[:8]}, {"content": second.data[:8]}),
        "code": _differing(versions[0] | modules[0], versions[1] | modules[1]),
        "environment": _differing(_machine(first), _machine(second)),
    }
    parts: list[Part] = [f"A {a}", f"B {b}"]
    for title, rows in found.items():
        if rows:
            frame = dict(zip((title, "A", "B"), map(list, zip(*rows, strict=True)), strict=True))
            parts += ["", Cells(frame, left=list(frame), folded=frozenset(frame))]
        else:
            parts += ["", Text(f"{title}: no difference", "dim")]
    try:
        metrics = _metrics(read_result(a), read_result(b))
        frame = {"metrics in percent": [*metrics], "A": [number(x) for x, _ in metrics.values()]}
        frame |= {"B": [number(y) for _, y in metrics.values()]}
        frame |= {f"B {MINUS} A": [signed(round(y - x, 1) + 0.0) for x, y in metrics.values()]}
        parts += ["", Cells(frame) if metrics else "metrics: the runs have none in common"]
    except UserError as error:
        metrics = {}
        parts += ["", f"metrics: not compared, because {error}"]
    sections = {title: {key: {"a": x, "b": y} for key, x, y in rows} for title, rows in found.items()}
    shares = {name: {"a": round(x, 1), "b": round(y, 1)} for name, (x, y) in metrics.items()}
    values: dict[str, Any] = {"a": str(a), "b": str(b), **sections, "metrics": shares}  # none if one has no result
    return Listing(parts, (), lambda: values)


def _metrics(first: Result, second: Result) -> dict[str, tuple[float, float]]:
    """Return each metric that both runs measured, in percent."""
    return {
        f"{split} {metric_name(metric)}": (100 * share, 100 * second.splits[split].metrics[metric])
        for split, scores in first.splits.items()
        for metric, share in scores.metrics.items()
        if split in second.splits and metric in second.splits[split].metrics
    }


def _machine(environment: Environment) -> dict[str, Any]:
    whole = environment.commit or ""
    commit = whole[:8] + "+" * whole.endswith("+")
    return {name: getattr(environment, name) or "-" for name in MACHINE} | {"commit": commit} | environment.versions


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    missing = object()
    keys = [key for key in {**a, **b} if a.get(key, missing) != b.get(key, missing)]
    return [(key, str(a.get(key, "-")), str(b.get(key, "-"))) for key in keys]
