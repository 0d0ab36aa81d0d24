"""What changed: a run against what its command would give now, and two runs against each other. Without torch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from tfstudy import tasks
from tfstudy.config.resolve import check_local, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import flatten
from tfstudy.errors import UserError
from tfstudy.experiment.code_versions import declared_versions, missing_plugin
from tfstudy.report.markup import MINUS, number
from tfstudy.report.render import Cells, Listing, Part
from tfstudy.runs.environment import commit, plugin_digests
from tfstudy.runs.identity import identify, run_hash, settings_of
from tfstudy.runs.schema import Environment, metric_name
from tfstudy.runs.status import DIVERGED, FINISHED, RunStatus, run_status
from tfstudy.runs.store import Run, how_to_continue, open_run, read_config, read_result
from tfstudy.tasks.base import fingerprint

OUTDATED, CURRENT, UNFINISHED, UNKNOWN = "outdated", "up to date", "not finished", "unknown"
STYLES = {OUTDATED: "bold red", CURRENT: "bold green", UNFINISHED: "bold yellow", UNKNOWN: "bold yellow"}
MACHINE = ("commit", "platform", "device", "threads", "processors", "preloaded")
NOTE = "other code of the same version changes results by rounding and the order of random draws only"
Differences = dict[str, tuple[str, str]]  # two values by what differs


def changes(path: Path, online: bool = False) -> Listing:
    """Return a run's state, whether it is what its command would give now, and what changed since it started.

    The verdict is up to date, not finished (its settings, data and versions are the same), outdated or unknown.
    """
    opened = open_run(path)
    run = run_status(opened)
    verdict, reason, found = _examined(opened, run, online)
    state = run.state if run else "not started"
    if run and run.state not in (FINISHED, DIVERGED):
        at = f" at step {run.step} of {run.steps}" * bool(run.steps)
        state += f"{at}{f': {run.reason}' * bool(run.reason)}; {how_to_continue(opened)}"
    line = Text(f"{verdict}: {reason}" if reason else verdict)
    line.stylize(STYLES[verdict], 0, len(verdict))
    values: dict[str, Any] = {"path": str(path), "state": state, "verdict": verdict, "reason": reason}
    values["differences"] = {key: {"then": x, "now": y} for key, (x, y) in found.items()}
    table = _table(found, ("then", "now"))
    return Listing([str(path), f"  {state}", line, *table], [NOTE] * bool(found), lambda: values)


def _examined(opened: Run, run: RunStatus | None, online: bool) -> tuple[str, str, Differences]:
    """Return a verdict, its reason, and what changed: its values when the run started, and now.

    Data of the Hugging Face hub, which the config of somebody else may name, are compared only with `online`.
    """
    if opened.broken:
        return UNKNOWN, str(opened.broken), {}
    path, environments = opened.path, opened.environments
    try:
        tree = read_config(path)
        if missing := missing_plugin(environments, str(tree.get("task")), str(tree.get("arch"))):
            return UNKNOWN, missing, {}
        config = resolve(tree)
    except UserError as error:
        return OUTDATED, f"its config is no longer valid: {error}", {}
    if not environments:
        return UNKNOWN, "it has no sound record of its code and data", {}
    entry, found = environments[-1], Differences()
    hash_ = path.name.partition("-")[2].partition(".")[0]
    settings = entry.settings or identify(config, "", {}).settings  # older records have none
    if hash_ != (recorded := run_hash(settings, entry.data, entry.code_versions)[: len(hash_)]):
        found["hash (of the folder, of its record)"] = hash_, recorded
    if entry.settings:
        now = flatten(settings_of(config) | {"seed": config.seed})
        found |= _differing(flatten(entry.settings), now, "its default")
    declared = declared_versions(config.task, config.arch)
    found |= _differing(entry.code_versions, declared, 1, " version")
    reason = ""
    try:
        if not online:
            check_local(config)
        found |= _differing({"data": entry.data[:8]}, {"data": fingerprint(tasks.build(config.task, config.data))[:8]})
    except UserError as error:
        reason = f"its data were not compared ({error})"
    if not found:
        reason = "; ".join(filter(None, ["its settings, data and declared versions have not changed", reason]))
    unchanged = CURRENT if run and run.state in (FINISHED, DIVERGED) else UNFINISHED
    return OUTDATED if found else unchanged, reason, found | _code(config, environments)


def _code(config: RunConfig, environments: Sequence[Environment]) -> Differences:
    """Return what differs from the code of any process that worked on the run: the commit, and digests of plug-ins."""
    now, found = {"commit": _short(commit())} | plugin_digests(config.task, config.arch), Differences()
    for entry in environments:
        then = {"commit": _short(entry.commit)} | entry.syntax_trees
        found |= _differing({key: then.get(key) or now[key] for key in now}, now)
    return found


def difference(a: Path, b: Path) -> Listing:
    """Return what differs between two runs, with the values of A and B, and the metrics that both measured."""
    first, second = ((open_run(path).environments or [Environment()])[-1] for path in (a, b))
    found = _differing(flatten(read_config(a)), flatten(read_config(b)))
    found |= _differing({"data": first.data[:8]}, {"data": second.data[:8]})
    found |= _differing(first.code_versions, second.code_versions, 1, " version")
    found |= _differing(_machine(first), _machine(second))
    plugins = [{k: v for k, v in one.syntax_trees.items() if k.startswith("plug-in")} for one in (first, second)]
    found |= _differing(plugins[0], plugins[1])
    metrics, why = [], "the runs have none in common"
    try:
        one, other = _percent(a), _percent(b)
        metrics = [(name, share, other[name]) for name, share in one.items() if name in other]
    except UserError as error:
        why = f"not compared, because {error}"
    heads = ("metrics in percent", "A", "B", f"B {MINUS} A")
    rows = [(name, number(x), number(y), number(round(y - x, 1) + 0.0, "+")) for name, x, y in metrics]
    table = Cells(dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True))) if rows else f"metrics: {why}"
    values = {
        "differences": {key: {"a": x, "b": y} for key, (x, y) in found.items()},
        "metrics": {name: {"a": round(x, 1), "b": round(y, 1)} for name, x, y in metrics},
    }
    return Listing(
        [f"A {a}", f"B {b}", "", *(_table(found, ("A", "B")) or ["no difference"]), "", table],
        values=lambda: {"a": str(a), "b": str(b), **values},
    )


def _table(differences: Differences, heads: tuple[str, str]) -> list[Part]:
    columns = dict(zip(heads, map(list, zip(*differences.values(), strict=True)), strict=True)) if differences else {}
    cells = Cells({"": [*differences], **columns}, left=["", *heads], folded=frozenset(["", *heads]))
    return [cells] if differences else []


def _percent(path: Path) -> dict[str, float]:
    splits = read_result(path).splits.items()
    return {f"{split} {metric_name(name)}": 100 * share for split, one in splits for name, share in one.metrics.items()}


def _machine(environment: Environment) -> dict[str, Any]:
    own = {"commit": _short(environment.commit)} | environment.versions
    return {name: getattr(environment, name) or "-" for name in MACHINE} | own


def _short(commit: str | None) -> str:
    return commit[:8] + "+" * commit.endswith("+") if commit else ""


def _differing(a: Mapping[str, Any], b: Mapping[str, Any], missing: object = "-", of: str = "") -> Differences:
    """Return what differs, with the values of A and B; one that is `missing` has this value."""
    values = {key: (a.get(key, missing), b.get(key, missing)) for key in dict.fromkeys([*a, *b])}
    return {key + of: (str(x), str(y)) for key, (x, y) in values.items() if x != y}
