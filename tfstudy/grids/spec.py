"""The specification of a grid: a base configuration, axes to vary, seeds, exclusions and named sizes.

It is a mapping, such as a file of `configs/grids/`:

    about: what the grid is for
    base: {task: scan, train: {steps: 3000}}           settings that all runs share
    axes:                                              one run for every combination of these values
      data.split: [length, addprim_jump]
      arch: [transformer, lstm, cnn]
      train.learning_rate: {from: 1.0e-4, to: 1.0e-2, count: 3, scale: log}
      data: [{max_train_length: 5}, {test_length: 50}]   a value may be a section
    per:                                               settings, axes and seeds of the runs that match `when`
      - when: {arch: lstm}
        base: {train: {learning_rate: 2.0e-3}}
        axes: {model.attention: [additive, general]}
        seeds: 0-11
    exclude: [{arch: cnn, data.split: length}]         combinations to leave out
    seeds: 0-4                                         or a number, or a list
    smoke: false                                       true: every run is a quick check, kept out of the results
    tiers: {quick: {seeds: 0}}                         what `--tier quick` changes
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfstudy import tasks
from tfstudy.config.files import configs, read_yaml
from tfstudy.config.resolve import overrides
from tfstudy.config.trees import Tree, flatten, merge
from tfstudy.errors import UserError, one_of, quoted, similar

KEYS = ("about", "base", "axes", "per", "exclude", "seeds", "smoke", "tiers")
PER_KEYS = ("when", "base", "axes", "seeds")
RANGE_KEYS = ("from", "to", "step", "count", "scale")
MAX_RUNS = 1_000_000
SMALLEST, LARGEST = 1e-30, 1e30  # steps and logarithmic ends of an axis; sizes of its numbers


def grid_names() -> list[str]:
    """Return the names of the grids in `configs/grids/`."""
    return sorted(path.stem for path in (configs() / "grids").glob("*.yaml"))


def read_grid(name: str) -> Tree:
    """Return the grid of `configs/grids/` with this name, or the one in this YAML file."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = configs() / "grids" / f"{_known(name)}.yaml"
    return validated(read_yaml(path))


def _known(name: str) -> str:
    """Return the name if it is that of a grid; otherwise raise `UserError`, with a hint for a file or a task."""
    try:
        return one_of("grid", name, grid_names())
    except UserError as error:
        if os.path.isfile(name):
            raise UserError(f"the name of a grid file must end in .yaml, but is {quoted(name)}") from None
        near = similar(name, tasks.names())
        raise UserError(f"{error}; a grid of one task: tfstudy grid --task {near}" if near else str(error)) from None


def load_grid(name: str | None, tier: str = "", axes: Mapping[str, str | None] = {}, set_: Sequence[str] = ()) -> Tree:
    """Return a named grid (without a name, an empty one) at a tier, with the axes and seeds of the command line.

    `axes` maps a key to its values, separated by commas; `set_` holds `KEY=VALUE,...`. Both replace the grid's axes.
    """
    lists = {key: [word.strip() for word in text.split(",")] for key, text in axes.items() if text is not None}
    assigned = parse_axes(set_)
    for key in lists.keys() & assigned.keys():
        option = "--" + key.removeprefix("data.")
        raise UserError(f"{option} and --set {key} contradict each other: give one of them")
    lists |= assigned
    seeds = lists.pop("seed", None)
    return with_axes(with_tier(read_grid(name) if name else {}, tier), lists, seeds)


def validated(grid: Tree) -> Tree:
    """Return the grid; `UserError` with every part that has a wrong name or type."""
    if problems := list(dict.fromkeys(_problems(grid))):
        raise UserError("\n".join(problems))
    return grid


def with_tier(grid: Tree, name: str) -> Tree:
    """Return the grid with the changes of one of its tiers; unchanged without a name."""
    tiers = grid.get("tiers") or {}
    own = {key: value for key, value in grid.items() if key != "tiers"}
    if not name:
        return own
    changes = tiers[one_of("tier", name, tiers)] or {}
    return validated(merge(_without_own_seeds(own) if "seeds" in changes else own, changes))


def _without_own_seeds(grid: Tree) -> Tree:
    """Return the grid without the seeds of parts, so that those of the grid hold for all runs."""
    parts = [{key: value for key, value in part.items() if key != "seeds"} for part in grid.get("per") or []]
    return {**grid, "per": parts}


def with_axes(grid: Tree, axes: Mapping[str, Sequence[Any]], seeds: Any = None) -> Tree:
    """Return the grid with these axes, and these seeds if given, in place of its own."""

    def others(section: Tree) -> Tree:
        return {key: values for key, values in (section.get("axes") or {}).items() if key not in axes}

    per = [{**part, "axes": others(part)} for part in grid.get("per") or []]
    grid = {**grid, "axes": {**others(grid), **axes}, "per": per}
    return grid if seeds is None else {**_without_own_seeds(grid), "seeds": seeds}


def parse_axes(assignments: Sequence[str]) -> dict[str, list[Any]]:
    """Return `["train.learning_rate=1e-3,3e-4"]` as axes; commas within brackets do not separate values."""
    axes: dict[str, list[Any]] = {}
    for text in assignments:
        overrides([text])  # rejects text that is not KEY=VALUE
        key, _, value = text.partition("=")
        if key in axes:
            raise UserError(f"--set {quoted(key)} is given twice; values are separated by commas")
        listed = flatten(overrides([f"{key}=[{value}]"]))[key]
        axes[key] = listed if isinstance(listed, list) and listed else [value]
    return axes


def parse_seeds(seeds: Any) -> list[int]:
    """Return the seeds of `3`, `0-4`, `0,2,5-7` or a list of these, each once."""
    parts = seeds if isinstance(seeds, list) else str(seeds).split(",")
    matched = [re.fullmatch(r"\s*(\d{1,19})(?:\s*-\s*(\d{1,19}))?\s*", str(part), re.ASCII) for part in parts]
    ranges = [(int(match[1]), int(match[2] or match[1])) for match in matched if match]
    if not parts or not all(matched) or not all(first <= last < 2**63 for first, last in ranges):
        listed = quoted(",".join(map(str, parts)))
        raise UserError(f"seeds must be numbers below 2^63 and ranges such as 0-4 or 0,1,5, but are {listed}")
    check_size(sum(last - first + 1 for first, last in ranges))
    return list(dict.fromkeys(seed for first, last in ranges for seed in range(first, last + 1)))


def axis_values(key: str, axis: Any) -> list[Any]:
    """Return the values of an axis: a list as it is; a range of numbers with both ends included."""
    if isinstance(axis, list):
        return axis
    if not isinstance(axis, dict) or not {"from", "to"} <= axis.keys() or axis.keys() - set(RANGE_KEYS):
        raise _wrong_axis(key, "be a list or {from, to, step or count, scale}", axis)
    one_of("scale", str(axis.get("scale", "linear")), ("linear", "log"), f"axis '{key}'")
    low, high, log = axis["from"], axis["to"], axis.get("scale") == "log"
    numbers = [low, high, axis.get("step", 1), axis.get("count", 2)]
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
        raise _wrong_axis(key, "range over numbers (such as 1.0e-3, with a point)", axis)
    if not all(abs(number) <= LARGEST for number in numbers):
        raise _wrong_axis(key, f"range over numbers from -{LARGEST:.0e} to {LARGEST:.0e}", axis)
    if low > high:
        raise _wrong_axis(key, "have from <= to", axis)
    if "step" in axis and "count" in axis:
        raise _wrong_axis(key, "have either a step or a count", axis)
    if log and not low >= SMALLEST:
        raise _wrong_axis(key, f"have from >= {SMALLEST:.0e} on a log scale", axis)
    if "count" in axis:
        if axis["count"] != int(axis["count"]) or axis["count"] < 2:
            raise _wrong_axis(key, "have a count of at least 2", axis)
        return _spaced(low, high, int(axis["count"]), log)
    step = axis.get("step", 1)
    if step < SMALLEST or log:
        raise _wrong_axis(key, f"have a step of at least {SMALLEST:.0e}, or a count on a log scale", axis)
    return _stepped(low, high, step)


def _wrong_axis(key: str, rule: str, axis: Any) -> UserError:
    return UserError(f"axis {quoted(key)} must {rule}, but is {quoted(axis)}")


def check_size(count: int) -> None:
    """`UserError` for more runs than a grid may have."""
    if count > MAX_RUNS:
        shown = f"{count:,}" if count < 1e15 else "more than 10^15"
        raise UserError(f"a grid has at most {MAX_RUNS:,} runs, but this one has {shown}")


def _spaced(low: float, high: float, count: int, log: bool) -> list[float]:
    check_size(count)
    shares = [i / (count - 1) for i in range(count)]
    numbers = [low * (high / low) ** share if log else low + (high - low) * share for share in shares]
    rounded = [float(f"{number:.6g}") for number in numbers]
    return [round(number) for number in rounded] if isinstance(low, int) and isinstance(high, int) else rounded


def _stepped(low: float, high: float, step: float) -> list[float]:
    check_size(int((high - low) / step))
    numbers = [low + i * step for i in range(int((high - low) / step + 1e-9) + 1)]
    whole = isinstance(low, int) and isinstance(step, int)
    return numbers if whole else [float(f"{number:.6g}") for number in numbers]


def _problems(grid: Tree) -> Iterator[str]:
    yield from _unknown(grid, KEYS, "the grid")
    for key in ("base", "axes", "tiers"):
        yield from _not_mapping(key, grid.get(key) or {})
    for key in ("per", "exclude"):
        parts = grid.get(key) or []
        if not isinstance(parts, list):
            yield f"'{key}' must be a list, but is {quoted(parts)}"
            continue
        for part in parts:
            yield from _not_mapping(key, part)
            if key == "per" and isinstance(part, dict):
                yield from _unknown(part, PER_KEYS, "per")
                for name, value in part.items():
                    if name != "seeds":
                        yield from _not_mapping(str(name), value or {})
    if not isinstance(grid.get("smoke") or False, bool):
        yield f"'smoke' must be true or false, but is {quoted(grid['smoke'])}"
    tiers = grid.get("tiers")
    for name, part in (tiers if isinstance(tiers, dict) else {}).items():
        yield from _not_mapping(f"tiers.{name}", part or {})


def _unknown(section: Tree, allowed: Sequence[str], where: str) -> Iterator[str]:
    for key in section:
        try:
            one_of("key", str(key), allowed, where)
        except UserError as error:
            yield str(error)


def _not_mapping(name: str, value: Any) -> Iterable[str]:
    return [] if isinstance(value, dict) else [f"{quoted(name)} must be keys with values, but is {quoted(value)}"]
