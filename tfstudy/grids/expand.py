"""Grids: many runs told in one file or one line. Expansion is a pure function of what is told.

A grid is a mapping such as a file of `configs/grids/`:

    about: what it is for
    base: {task: scan, train: {steps: 3000}}           sections of every run's config
    axes:                                              every combination of these values is a run
      data.split: [length, addprim_jump]
      arch: [transformer, lstm, cnn]
      train.learning_rate: {from: 1.0e-4, to: 1.0e-2, count: 3, scale: log}
      data: [{length: 22}, {length: 40}]               values may be sections
    per:                                               more for the runs that agree with `when`
      - when: {arch: lstm}
        base: {train: {learning_rate: 2.0e-3}}
        axes: {model.attention: [additive, general]}
    exclude: [{arch: cnn, data.split: length}]         combinations that are no run
    seeds: 0-4                                         or a number, or a list
    tiers: {quick: {seeds: 0}}                         what --tier quick puts over all this
"""

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tasks
from tasks.base import Task, fingerprint
from tasks.errors import UserError, one_of
from tfstudy.config.files import configs, read_yaml
from tfstudy.config.presets import preset
from tfstudy.config.resolve import SMOKE, merge, overrides, resolve
from tfstudy.config.schema import RunConfig, Tree
from tfstudy.runs.identity import identify
from tfstudy.runs.writer import run_folder

KEYS = ("about", "base", "axes", "per", "exclude", "seeds", "smoke", "tiers")
RANGE = ("from", "to", "step", "count", "scale")
MOST = 1_000_000  # runs of a grid
Point = Mapping[str, Any]  # keys such as data.split, each with its value


class Cell(NamedTuple):
    """One run of a grid."""

    config: RunConfig
    preset: str


def names() -> list[str]:
    """The grids of `configs/grids/`."""
    return sorted(path.stem for path in (configs() / "grids").glob("*.yaml"))


def read(name: str) -> Tree:
    """The grid of that name, or of that file."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = configs() / "grids" / f"{one_of('grid', name, names())}.yaml"
    return shaped(read_yaml(path))


def shaped(grid: Tree) -> Tree:
    """The grid, if its parts are of the kinds that they must be; else `UserError`."""
    for key in grid:
        one_of("a grid's key", str(key), KEYS)
    for key in ("base", "axes", "tiers"):
        _mapping(key, grid.get(key) or {})
    for key in ("per", "exclude"):
        if not isinstance(grid.get(key) or [], list):
            raise UserError(f"'{key}' must be a list, but is '{grid[key]}'")
        for part in grid.get(key) or []:
            _mapping(key, part)
    for part in grid.get("per") or []:
        for key in part:
            one_of("a key of 'per'", str(key), ("when", "base", "axes"))
            _mapping(key, part[key] or {})
    for name, part in (grid.get("tiers") or {}).items():
        _mapping(f"tiers.{name}", part or {})
    return grid


def tier(grid: Tree, name: str) -> Tree:
    """The grid with one of its tiers over it."""
    tiers = grid.get("tiers") or {}
    own = {key: value for key, value in grid.items() if key != "tiers"}
    return shaped(merge(own, tiers[one_of("--tier", name, tiers)] or {})) if name else own


def put_over(grid: Tree, axes: Mapping[str, Sequence[Any]], given_seeds: Any = None) -> Tree:
    """The grid with these axes and seeds in the place of its own."""
    own = {key: value for key, value in (grid.get("axes") or {}).items() if key not in axes}
    per = [
        {**part, "axes": {key: value for key, value in (part.get("axes") or {}).items() if key not in axes}}
        for part in grid.get("per") or []
    ]
    chosen = {} if given_seeds is None else {"seeds": given_seeds}
    return {**grid, "axes": {**own, **axes}, "per": per, **chosen}


def expand(grid: Tree, smoke: bool = False) -> list[Cell]:
    """Its runs, each once, in the order of the axes with seeds innermost; `UserError` with every run's mistakes."""
    cells: dict[str, Cell] = {}
    problems: dict[str, list[str]] = {}
    points = list(_points(shaped(grid)))
    known = dict.fromkeys(["seed", *(key for point in points for key in point)])
    for part in [*(grid.get("exclude") or []), *(part.get("when") or {} for part in grid.get("per") or [])]:
        for key in flat(part):
            one_of("what 'exclude' and 'when' go by", key, known)
    excluded = grid.get("exclude") or []
    for point in points:
        if any(agrees(point, part) for part in excluded):
            continue
        try:
            cell = _cell(point, smoke)
        except UserError as error:
            for line in str(error).splitlines():
                problems.setdefault(line, []).append(_name(point, grid))
            continue
        for seed in seeds(grid["seeds"]) if "seeds" in grid else [cell.config.seed]:
            if any(agrees({**point, "seed": seed}, part) for part in excluded):
                continue
            config = cell.config.model_copy(update={"seed": seed})
            cells[config.model_dump_json()] = Cell(config, cell.preset)
    if problems:
        raise UserError("\n".join(_told(problem, where, len(points)) for problem, where in problems.items()))
    if not cells:
        raise UserError("this grid has no runs: an axis is empty, or all is excluded")
    return list(cells.values())


def plan(cells: Sequence[Cell], root: Path, study: str) -> list[tuple[Cell, Path]]:
    """Every run with its folder, after its data were made and its model was tried on them; all mistakes at once."""
    from tfstudy.experiment import prepare

    made: dict[str, tuple[Task, str]] = {}  # data are made once for all runs that share them
    checked: dict[str, str] = {}
    planned = []
    for config, name in cells:
        key = f"{config.task} {config.data.model_dump_json()}"
        experiment_key = config.model_copy(update={"seed": 0}).model_dump_json()
        try:
            if key not in made:
                task = tasks.find(config.task)(config.data)
                made[key] = task, fingerprint(task)
            if experiment_key not in checked:
                checked[experiment_key] = ""
                prepare.check(config, made[key][0])
        except UserError as error:
            checked[experiment_key] = str(error)
        if not checked.get(experiment_key):
            identity = identify(config, made[key][1], prepare.versions(config))
            planned.append((Cell(config, name), run_folder(root, study, config, identity)))
    if problems := list(dict.fromkeys(text for text in checked.values() if text)):
        raise UserError("\n".join(problems))
    return planned


def seeds(given: Any) -> list[int]:
    """`3`, `0-4`, `0,2,5-7` or a list as seeds."""
    parts = given if isinstance(given, list) else str(given).split(",")
    out: list[int] = []
    for part in map(str, parts):
        found = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if not found:
            raise UserError(f"seeds must be such as 0-4 or 0,1,5, but are '{given}'")
        first = int(found[1])
        _few(int(found[2] or first) - first)
        out += range(first, int(found[2] or first) + 1)
    if not out:
        raise UserError(f"seeds must be such as 0-4 or 0,1,5, but are '{given}'")
    return list(dict.fromkeys(out))


def values(key: str, given: Any) -> list[Any]:
    """An axis' values: a list as it is, or a range of numbers with both its ends."""
    if isinstance(given, list):
        return given
    if not isinstance(given, dict) or not {"from", "to"} <= given.keys() or given.keys() - set(RANGE):
        raise UserError(f"axis '{key}' must be a list or {{from, to, step or count, scale}}, but is '{given}'")
    low, high, log = given["from"], given["to"], given.get("scale", "linear") == "log"
    one_of(f"scale of axis '{key}'", str(given.get("scale", "linear")), ("linear", "log"))
    numbers = [low, high, given.get("step", 1), given.get("count", 2)]
    if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in numbers):
        raise UserError(f"axis '{key}' must range over numbers (1.0e-3, with a point), but is '{given}'")
    if log and not 0 < low <= high:
        raise UserError(f"axis '{key}' must have 0 < from <= to on a log scale, but is '{given}'")
    if "count" in given:
        count = int(given["count"])
        _few(count)
        if count < 2:
            raise UserError(f"axis '{key}' must have a count of at least 2, but is '{given}'")
        shares = [i / (count - 1) for i in range(count)]
        found = [low * (high / low) ** share if log else low + (high - low) * share for share in shares]
        found = [float(f"{x:.6g}") for x in found]
        return [round(x) for x in found] if all(isinstance(x, int) for x in (low, high)) else found
    step = given.get("step", 1)
    if step <= 0 or log:
        raise UserError(f"axis '{key}' must have a step above 0, or a count on a log scale, but is '{given}'")
    _few(int((high - low) / step))
    found = [low + i * step for i in range(int((high - low) / step + 1e-9) + 1)]
    return found if all(isinstance(x, int) for x in (low, step)) else [float(f"{x:.6g}") for x in found]


def assigned(assignments: Sequence[str]) -> dict[str, Any]:
    """`["train.learning_rate=1e-3,3e-4"]` as axes: values are set apart by commas outside of brackets."""
    out: dict[str, Any] = {}
    for text in assignments:
        key, _, value = text.partition("=")
        overrides([text])  # refuses what is not KEY=VALUE
        listed = overrides([f"{key}=[{value}]"])
        for part in key.split("."):
            listed = listed[part]
        out[key] = listed if isinstance(listed, list) and listed else [value]
    return out


def agrees(point: Point, wanted: Point) -> bool:
    """Whether a run is one of those that `when` or `exclude` tells: `{data.split: length}`, `{arch: [lstm, cnn]}`."""
    tree = nested(point)

    def holds(key: str, value: Any) -> bool:
        here: Any = tree
        for part in key.split("."):
            here = here.get(part) if isinstance(here, dict) else None
        return here in value if isinstance(value, list) else bool(here == value)

    return all(holds(key, value) for key, value in flat(wanted).items())


def nested(point: Point) -> Tree:
    """`{"model.dim": 64}` as `{"model": {"dim": 64}}`."""
    tree: Tree = {}
    for key, value in point.items():
        leaf = value
        for part in reversed(key.split(".")):
            leaf = {part: leaf}
        tree = merge(tree, leaf)
    return tree


def flat(tree: Point, prefix: str = "") -> dict[str, Any]:
    """The inverse of `nested`."""
    out: dict[str, Any] = {}
    for key, value in tree.items():
        out |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {f"{prefix}{key}": value}
    return out


def _points(grid: Tree) -> Iterator[Point]:
    """Every combination: base < the base of `per` < axes < the axes of `per`."""
    base = flat(_mapping("base", grid.get("base") or {}))
    for chosen in _product(_mapping("axes", grid.get("axes") or {})):
        more: dict[str, Any] = {}
        choices = [chosen]
        for part in grid.get("per") or []:
            if agrees(base | chosen, _mapping("when", part.get("when") or {})):
                more |= flat(_mapping("base", part.get("base") or {}))
                axes = _mapping("axes", part.get("axes") or {})
                choices = [choice | own for choice in choices for own in _product(axes)]
        yield from (base | more | choice for choice in choices)


def _product(axes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    lists = [values(key, given) for key, given in axes.items()]
    _few(math.prod(map(len, lists)))
    for chosen in itertools.product(*lists):
        yield {k: v for key, value in zip(axes, chosen, strict=True) for k, v in flat({key: value}).items()}


def _cell(point: Point, smoke: bool) -> Cell:
    tree = nested(point)
    name = str(tree.pop("preset", "default"))
    if "task" not in tree:
        raise UserError("a grid must say its task: base.task, an axis 'task', or --task")
    given = preset(str(tree["task"]), str(tree.setdefault("arch", "transformer")), name)
    return Cell(resolve(merge(given, SMOKE if smoke else {}, tree)), name)


def _name(point: Point, grid: Tree) -> str:
    keys = [key for key in point if key in (grid.get("axes") or {})] or list(point)
    return " ".join(f"{key}={_short(point[key])}" for key in keys)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _told(problem: str, where: Sequence[str], runs: int) -> str:
    return problem if len(where) == runs else f"{problem} (with {where[0]}{_more(len(where) - 1)})"


def _more(count: int) -> str:
    return f" and {count} more" if count else ""


def _few(count: int) -> None:
    if count > MOST:
        raise UserError(f"a grid has at most {MOST:,} runs, but {count:,} are asked for")


def _mapping(name: str, given: Any) -> Tree:
    if not isinstance(given, dict):
        raise UserError(f"'{name}' must be keys with values, but is '{given}'")
    return given
