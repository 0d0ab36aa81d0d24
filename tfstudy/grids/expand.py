"""From a grid to its runs, and to their folders: all settings, data and models are checked before anything starts."""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy import tasks
from tfstudy.config.resolve import SMOKE
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, flatten, unflatten
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.experiment.api import compose_config
from tfstudy.experiment.code_versions import declared_versions
from tfstudy.grids.spec import alternatives, check_size, parse_seeds, settings_of, validated
from tfstudy.runs.identity import identify
from tfstudy.runs.store import run_folder
from tfstudy.tasks.base import check_examples, fingerprint

if TYPE_CHECKING:
    from tfstudy.experiment.prepare import DataShape

Point = Mapping[str, Any]  # dotted keys such as data.split, each with one value
MOST = {f"train.{key}": value for key, value in SMOKE["train"].items()}  # of smoke runs, whatever their grid says


class GridRun(NamedTuple):
    """One run of a grid."""

    config: RunConfig
    preset: str


def expand(grid: Tree, smoke: bool = False) -> list[GridRun]:
    """Return the runs, each once, in the order of the axes with seeds innermost.

    `UserError` with the config errors of all runs, each with the runs that have it.
    """
    grid = validated(grid)
    points = list(_points(grid))
    _check_selectors(grid)

    def excluded(point: Point) -> bool:
        return any(matches(point, part) for part in grid["exclude"])

    runs: dict[str, GridRun] = {}
    problems: dict[str, list[str]] = {}  # config error to the runs that have it
    for point, seeds in points:
        if excluded(point):
            continue
        given = {key: point[key] for key in MOST if smoke and isinstance(point.get(key), int)}
        tree = unflatten({**point, **{key: min(value, MOST[key]) for key, value in given.items()}})
        preset = str(tree.pop("preset", "default"))
        try:
            if "smoke" in tree:
                raise UserError("'smoke' is no setting of runs: it stands beside 'base', or in a tier")
            if "task" not in tree:
                raise UserError("a grid needs a task: base.task, an axis 'task', or --task")
            config = compose_config(str(tree["task"]), None, preset, tree, smoke=smoke)
        except UserError as error:
            keys = [key for key in point if key in grid["axes"]] or list(point)
            name = " ".join(f"{k}={point[k] if isinstance(point[k], str) else json.dumps(point[k])}" for k in keys)
            for line in str(error).splitlines():
                problems.setdefault(line, []).append(name)
            continue
        for seed in [config.seed] if seeds is None else parse_seeds(seeds):
            if not excluded({**point, "seed": seed}):
                seeded = config.model_copy(update={"seed": seed})
                runs[seeded.model_dump_json()] = GridRun(seeded, preset)
    if problems:
        raise UserError(with_owners(problems, len(points)))
    if not runs:
        raise UserError("the grid has no runs: an axis is empty, or everything is excluded")
    return list(runs.values())


def with_owners(problems: Mapping[str, Sequence[str]], total: int) -> str:
    """Return the lines of all problems, each with who of `total` runs or architectures has it, unless all have it."""
    lines = []
    for problem, (first, *others) in problems.items():
        more = f" and {len(others)} more" if others else ""
        lines.append(problem if 1 + len(others) == total else f"{problem} (with {first}{more})")
    return "\n".join(lines)


class PlannedRun(NamedTuple):
    """A run with its folder, which may not exist yet."""

    config: RunConfig
    preset: str
    path: Path
    parameters: int


def plan(
    runs: Sequence[GridRun], root: Path, study: str, data: dict[str, tuple["DataShape", str]] | None = None
) -> list[PlannedRun]:
    """Return every run with its folder in `root/study`; `UserError` with the errors of all runs.

    Data are built once for all runs that share them, and a model once for all runs that share its shape and data.
    `data` keeps the shapes and fingerprints of data for further calls.
    """
    from tfstudy.experiment.prepare import DataShape, check

    data = {} if data is None else data
    errors: dict[str, str] = {}  # each with the data of the run
    planned = []
    for config, preset in runs:
        key = f"{config.task} {config.data.model_dump_json()}"
        if key not in data and key in errors.values():  # they can't be built
            continue
        try:
            if key not in data:
                task = tasks.build(config.task, config.data)
                check_examples(config.task, task)
                data[key] = DataShape.of(task), fingerprint(task)
            parameters = check(config, data[key][0])
        except UserError as error:
            errors.setdefault(str(error), key)
            continue
        identity = identify(config, data[key][1], declared_versions(config.task, config.arch))
        planned.append(PlannedRun(config, preset, run_folder(root, study, config, identity), parameters))
    if errors:
        raise UserError("\n".join(errors))
    return planned


def matches(point: Point, selector: Point) -> bool:
    """Whether a `when` or `exclude` selects a run, such as `{data.split: length}` or `{arch: [lstm, cnn]}`."""
    return all(point.get(key) in values for key, values in alternatives(selector).items())


def _check_selectors(grid: Tree) -> None:
    """`UserError` for a key that no run has."""
    shared = dict.fromkeys(key for key, _ in settings_of(grid))
    own = [key for part in grid["per"] for key, _ in settings_of(part)]
    keys = dict.fromkeys(["seed", *shared, *own])
    for key in (key for selector in grid["exclude"] for key in flatten(selector)):
        one_of("key", key, keys, "exclude")
    for key in (key for part in grid["per"] for key in flatten(part["when"])):
        one_of("key", key, shared, "when")  # it can't see seeds, nor what other parts set


def _points(grid: Tree) -> Iterator[tuple[Point, Any]]:
    """Every combination of settings, base < the base of `per` < axes < the axes of `per`, and its seeds."""
    base = flatten(grid["base"])
    for combination in _product(grid["axes"]):
        settings: Tree = {}
        seeds, combinations = grid["seeds"], [combination]
        for part in grid["per"]:
            if matches(base | combination, part["when"]):
                settings |= flatten(part["base"])
                seeds = seeds if part["seeds"] is None else part["seeds"]
                combinations = [shared | own for shared in combinations for own in _product(part["axes"])]
        yield from ((base | settings | values, seeds) for values in combinations)


def _product(axes: Mapping[str, list[Any]]) -> list[Tree]:
    """Return every combination of the values of axes, as settings; `UserError` if two axes set the same key."""
    values = [[flatten({key: value}) for value in axis] for key, axis in axes.items()]
    owners: dict[str, str] = {}  # key to the axis that sets it
    for axis, settings in zip(axes, values, strict=True):
        keys = {key for setting in settings for key in setting}
        for key, other in itertools.product(sorted(keys), [*owners]):
            if f"{other}.".startswith(f"{key}.") or f"{key}.".startswith(f"{other}."):  # one may hold the other
                raise UserError(f"axes {quoted(owners[other])} and {quoted(axis)} both set {quoted(max(key, other))}")
        owners |= dict.fromkeys(keys, axis)
    check_size(math.prod(map(len, values)))
    return [dict(itertools.chain(*(setting.items() for setting in one))) for one in itertools.product(*values)]
