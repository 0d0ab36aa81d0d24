"""What changed: a run against what its command would give now, and two runs against each other. Without torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from tfstudy import tasks
from tfstudy.config.resolve import check_local, resolve
from tfstudy.config.trees import flatten
from tfstudy.errors import UserError
from tfstudy.experiment.code_versions import declared_versions, missing_plugin
from tfstudy.report.markup import MINUS, number
from tfstudy.report.render import Cells, Listing
from tfstudy.runs.find import DIVERGED, FINISHED, run_status
from tfstudy.runs.identity import commit, plugin_digests, settings_of
from tfstudy.runs.schema import Environment, metric_name
from tfstudy.runs.store import Run, how_to_continue, open_run, read_config, read_result
from tfstudy.tasks.base import fingerprint

OUTDATED, CURRENT, UNFINISHED, UNKNOWN = "outdated", "up to date", "not finished", "unknown"
STYLES = {OUTDATED: "bold red", CURRENT: "bold green", UNFINISHED: "bold yellow", UNKNOWN: "bold yellow"}
MACHINE = ("platform", "device", "threads", "processors", "preloaded")
NOTE = "other code of the same version changes results by rounding and the order of random draws only"
Differences = dict[str, tuple[str, str]]  # two values by what differs


def changes(path: Path, online: bool = False) -> Listing:
    """Return a run's state, whether it is what its command would give now, and what changed since it started.

    The verdict is up to date, not finished (its settings, data and versions are the same), outdated or unknown. Data
    of the Hugging Face hub, which the config of somebody else may name, are compared only with `online`.
    """
    opened = open_run(path)
    run = run_status(opened)
    ended, state = run is not None and run.state in (FINISHED, DIVERGED), run.state if run else "not started"
    if run and not ended:
        at = f" at step {run.step} of {run.steps}" * bool(run.steps)
        state += f"{at}{f': {run.reason}' * bool(run.reason)}; {how_to_continue(opened)}"
    verdict, reason, found = _examined(opened, online)
    verdict = UNFINISHED if verdict == CURRENT and not ended else verdict
    line = Text(f"{verdict}: {reason}" if reason else verdict)
    line.stylize(STYLES[verdict], 0, len(verdict))
    values: dict[str, Any] = {"path": str(path), "state": state, "verdict": verdict, "reason": reason}
    values["differences"] = {key: {"then": x, "now": y} for key, (x, y) in found.items()}
    table = [_table(found, ("then", "now"))] if found else []
    return Listing([str(path), f"  {state}", line, *table], [NOTE] * bool(found), lambda: values)


def _examined(opened: Run, online: bool) -> tuple[str, str, Differences]:
    """Return a verdict, its reason, and what changed: its values when the run started, and now."""
    if opened.broken:
        return UNKNOWN, str(opened.broken), {}
    environments = opened.environments
    try:
        tree = read_config(opened.path)
        if missing := missing_plugin(environments, str(tree.get("task")), str(tree.get("arch"))):
            return UNKNOWN, missing, {}
        config = resolve(tree)
    except UserError as error:
        return OUTDATED, f"its config is no longer valid: {error}", {}
    if not environments:
        return UNKNOWN, "it has no sound record of its code and data", {}
    entry, reason, found = environments[-1], "", Differences()
    if entry.settings:  # older records have none
        now = flatten(settings_of(config) | {"seed": config.seed})
        found |= _differing(flatten(entry.settings), now, "its default")
    declared = declared_versions(config.task, config.arch)
    found |= _differing(entry.code_versions, declared, 1, " version")
    try:
        if not online:
            check_local(config)
        found |= _differing({"data": entry.data[:8]}, {"data": fingerprint(tasks.build(config.task, config.data))[:8]})
    except UserError as error:
        reason = f"its data were not compared ({error})"
    if not found:
        reason = "; ".join(filter(None, ["its settings, data and declared versions have not changed", reason]))
    verdict, code = OUTDATED if found else CURRENT, plugin_digests(config.task, config.arch)
    code |= {"commit": _short(commit())}
    for one in environments:  # the processes that worked on the run
        then = one.syntax_trees | {"commit": _short(one.commit)}
        found |= _differing({key: then.get(key) or now for key, now in code.items()}, code)
    return verdict, reason, found


def difference(a: Path, b: Path) -> Listing:
    """Return what differs between two runs, with the values of A and B, and the metrics that both measured."""
    found = _differing(flatten(read_config(a)), flatten(read_config(b))) | _differing(_code(a), _code(b))
    try:
        one, other = _percent(a), _percent(b)
        metrics, why = {name: (one[name], other[name]) for name in one if name in other}, "the runs have none in common"
    except UserError as error:
        metrics, why = {}, f"not compared, because {error}"
    rows = {name: (number(x), number(y), number(round(y - x, 1) + 0.0, "+")) for name, (x, y) in metrics.items()}
    table = _table(rows, ("A", "B", f"B {MINUS} A"), "metrics in percent") if rows else f"metrics: {why}"
    values = {
        "differences": {key: {"a": x, "b": y} for key, (x, y) in found.items()},
        "metrics": {name: {"a": round(x, 1), "b": round(y, 1)} for name, (x, y) in metrics.items()},
    }
    differing = _table(found, ("A", "B")) if found else "no difference"
    return Listing([f"A {a}", f"B {b}", "", differing, "", table], values=lambda: {"a": str(a), "b": str(b), **values})


def _code(path: Path) -> dict[str, Any]:
    """Return the data, versions and machine of a run, as its last process recorded them."""
    last = (open_run(path).environments or [Environment()])[-1]
    machine = {name: getattr(last, name) or "-" for name in MACHINE}
    versions = {f"{name} version": one for name, one in last.code_versions.items()}
    plugins = {key: one for key, one in last.syntax_trees.items() if key.startswith("plug-in")}
    return {"data": last.data[:8]} | versions | {"commit": _short(last.commit)} | machine | last.versions | plugins


def _table(rows: Mapping[str, tuple[str, ...]], heads: tuple[str, ...], first: str = "") -> Cells:
    columns = {head: [row[i] for row in rows.values()] for i, head in enumerate(heads)}
    keys = frozenset([first, *heads])
    return Cells({first: [*rows], **columns}, left=None if first else keys, folded=keys)


def _percent(path: Path) -> dict[str, float]:
    splits = read_result(path).splits.items()
    return {f"{split} {metric_name(name)}": 100 * share for split, one in splits for name, share in one.metrics.items()}


def _short(commit: str | None) -> str:
    return commit[:8] + "+" * commit.endswith("+") if commit else ""


def _differing(a: Mapping[str, Any], b: Mapping[str, Any], missing: object = "-", of: str = "") -> Differences:
    """Return what differs, with the values of A and B; one that is `missing` has this value."""
    values = {key: (a.get(key, missing), b.get(key, missing)) for key in dict.fromkeys([*a, *b])}
    return {key + of: (str(x), str(y)) for key, (x, y) in values.items() if x != y}
