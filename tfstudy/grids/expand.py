"""From a grid to its runs, and to their folders: all settings, data and models are checked before anything starts."""

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy import tasks
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, as_number, flatten, unflatten
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.experiment.api import compose_config
from tfstudy.experiment.code_versions import declared_versions
from tfstudy.grids.spec import check_size, parse_seeds, validated
from tfstudy.runs.identity import Identity, identify
from tfstudy.runs.store import is_finished, run_folder
from tfstudy.tasks.base import check_examples, fingerprint

if TYPE_CHECKING:
    from tfstudy.experiment.prepare import DataShape

Point = Mapping[str, Any]  # dotted keys such as data.split, each with one value


class GridRun(NamedTuple):
    """One run of a grid."""

    config: RunConfig
    preset: str


def expand(grid: Tree, smoke: bool = False) -> list[GridRun]:
    """Return the runs, each once, in the order of the axes with seeds innermost.

    `UserError` with the config errors of all runs, each with the runs that have it.
    """
    points = list(_points(validated(grid)))
    _check_selectors(grid, [point for point, _ in points])
    excluded = grid.get("exclude") or []
    runs: dict[str, GridRun] = {}
    problems: dict[str, list[str]] = {}  # config error to the runs that have it
    for point, seeds in points:
        if any(matches(point, part) for part in excluded):
            continue
        try:
            run = _run(point, smoke)
        except UserError as error:
            for line in str(error).splitlines():
                problems.setdefault(line, []).append(_name(point, grid))
            continue
        for seed in [run.config.seed] if seeds is None else parse_seeds(seeds):
            if not any(matches({**point, "seed": seed}, part) for part in excluded):
                config = run.config.model_copy(update={"seed": seed})
                runs[config.model_dump_json()] = GridRun(config, run.preset)
    if problems:
        raise UserError("\n".join(_with_runs(problem, names, len(points)) for problem, names in problems.items()))
    if not runs:
        raise UserError("the grid has no runs: an axis is empty, or everything is excluded")
    return list(runs.values())


class PlannedRun(NamedTuple):
    """A run with its folder, which may not exist yet."""

    config: RunConfig
    preset: str
    path: Path
    identity: Identity
    parameters: int

    @property
    def finished(self) -> bool:
        """Whether the run has its result, and it is sound."""
        return is_finished(self.path)


def plan(
    runs: Sequence[GridRun], root: Path, study: str, data: dict[str, tuple["DataShape", str]] | None = None
) -> list[PlannedRun]:
    """Return every run with its folder in `root/study`; `UserError` with the errors of all runs.

    Data are built once for all runs that share them, and a model once for all runs that share its shape and data.
    `data` keeps the shapes and fingerprints of data for further calls.
    """
    from tfstudy.experiment.prepare import DataShape, check

    data = {} if data is None else data
    errors: dict[str, str] = {}  # by config without its seed
    sizes: dict[str, int] = {}  # in parameters, by config without its seed
    planned = []
    for config, preset in runs:
        data_key = f"{config.task} {config.data.model_dump_json()}"
        experiment = config.model_copy(update={"seed": 0}).model_dump_json()
        try:
            if data_key not in data:
                task = tasks.build(config.task, config.data)
                check_examples(config.task, task)
                data[data_key] = DataShape.of(task), fingerprint(task)
            if experiment not in errors and experiment not in sizes:
                sizes[experiment] = check(config, data[data_key][0])
        except UserError as error:
            errors[experiment] = str(error)
        if experiment in sizes:
            versions = declared_versions(config.task, config.arch, config.data.split)
            identity = identify(config, data[data_key][1], versions)
            path = run_folder(root, study, config, identity)
            planned.append(PlannedRun(config, preset, path, identity, sizes[experiment]))
    if errors:
        raise UserError("\n".join(dict.fromkeys(errors.values())))
    return planned


def matches(point: Point, selector: Point) -> bool:
    """Whether a `when` or `exclude` selects a run, such as `{data.split: length}` or `{arch: [lstm, cnn]}`.

    Numbers are compared as numbers, however they are written.
    """
    tree = unflatten(point)

    def value_at(key: str) -> Any:
        node: Any = tree
        for part in key.split("."):
            node = node.get(part) if isinstance(node, dict) else None
        return as_number(node)

    return all(
        value_at(key) in map(as_number, wanted if isinstance(wanted, list) else [wanted])
        for key, wanted in flatten(selector).items()
    )


def _check_selectors(grid: Tree, points: Sequence[Point]) -> None:
    """`UserError` for a key of `exclude` or `when` that no run has."""
    keys = dict.fromkeys(["seed", *(key for point in points for key in point)])
    parts = [*(grid.get("exclude") or []), *(part.get("when") or {} for part in grid.get("per") or [])]
    for selector in parts:
        for key in flatten(selector):
            one_of("key", key, keys, "exclude and when")


def _points(grid: Tree) -> Iterator[tuple[Point, Any]]:
    """Every combination of settings, base < the base of `per` < axes < the axes of `per`, and its seeds."""
    base = flatten(grid.get("base") or {})
    for combination in _product(grid.get("axes") or {}):
        settings: Tree = {}
        seeds = grid.get("seeds")
        combinations = [combination]
        for part in grid.get("per") or []:
            if matches(base | combination, part.get("when") or {}):
                settings |= flatten(part.get("base") or {})
                seeds = part.get("seeds", seeds)
                own = list(_product(part.get("axes") or {}))
                combinations = [shared | values for shared in combinations for values in own]
        yield from ((base | settings | values, seeds) for values in combinations)


def _product(axes: Mapping[str, Any]) -> Iterator[Tree]:
    for key, axis in axes.items():
        if not isinstance(axis, list):
            raise UserError(f"axis {quoted(key)} must be a list, but is {quoted(axis)}")
    values = [[flatten({key: value}) for value in axis] for key, axis in axes.items()]
    _check_disjoint(axes, values)
    check_size(math.prod(map(len, values)))
    for combination in itertools.product(*values):
        yield {key: value for setting in combination for key, value in setting.items()}


def _check_disjoint(axes: Iterable[str], values: Iterable[Sequence[Tree]]) -> None:
    """`UserError` if two axes set the same key, or one a section and the other a key within it."""
    owners: dict[str, str] = {}  # key to the axis that sets it
    for axis, settings in zip(axes, values, strict=True):
        keys = {key for setting in settings for key in setting}
        for key in sorted(keys):
            near = (other for other in owners if f"{other}.".startswith(f"{key}.") or f"{key}.".startswith(f"{other}."))
            if other := next(near, None):
                raise UserError(f"axes {quoted(owners[other])} and {quoted(axis)} both set {quoted(max(key, other))}")
        owners |= dict.fromkeys(keys, axis)


def _run(point: Point, smoke: bool) -> GridRun:
    tree = unflatten(point)
    name = str(tree.pop("preset", "default"))
    if "task" not in tree:
        raise UserError("a grid needs a task: base.task, an axis 'task', or --task")
    return GridRun(compose_config(str(tree["task"]), None, name, tree, smoke=smoke), name)


def _name(point: Point, grid: Tree) -> str:
    keys = [key for key in point if key in (grid.get("axes") or {})] or list(point)
    return " ".join(f"{key}={point[key] if isinstance(point[key], str) else json.dumps(point[key])}" for key in keys)


def _with_runs(problem: str, names: Sequence[str], total: int) -> str:
    if len(names) == total:
        return problem
    return f"{problem} (with {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''})"
