"""The specification of a grid: a base configuration, axes to vary, seeds, exclusions and named sizes.

It is a mapping, such as a file of `configs/grids/`:

    about: what the grid is for
    differences: {train.steps: 3,000 instead of 9,000} from the paper that it is named after; `--dry-run` lists them
    base: {task: scan, train: {steps: 3000}}           settings that all runs share
    axes:                                              one run for every combination of these values
      data.split: [length, addprim_jump]
      arch: [transformer, lstm, cnn]
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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfstudy.config.resolve import overrides
from tfstudy.config.trees import Tree, configs, flatten, merge, read_yaml
from tfstudy.errors import UserError, one_of, quoted

KEYS = {  # with the type that each must have
    "about": object, "base": dict, "axes": dict, "per": list, "exclude": list, "seeds": object, "smoke": bool,
    "tiers": dict, "differences": dict,
}  # fmt: skip
PER_KEYS = {"when": dict, "base": dict, "axes": dict, "seeds": object}
KINDS = {dict: "keys with values", list: "a list", bool: "true or false"}
MAX_RUNS = 1_000_000


def grid_names() -> list[str]:
    """Return the names of the grids in `configs/grids/`."""
    return sorted(path.stem for path in (configs() / "grids").glob("*.yaml"))


def read_grid(name: str) -> Tree:
    """Return the grid of `configs/grids/` with this name, or the one in this YAML file."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        where = "the name of a grid file must end in .yaml" if os.path.isfile(name) else ""
        path = configs() / "grids" / f"{one_of('grid', name, grid_names(), where)}.yaml"
    return validated(read_yaml(path))


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


def check_size(count: int) -> None:
    """`UserError` for more runs than a grid may have."""
    if count > MAX_RUNS:
        shown = f"{count:,}" if count < 1e15 else "more than 10^15"
        raise UserError(f"a grid has at most {MAX_RUNS:,} runs, but this one has {shown}")


def _problems(grid: Tree) -> Iterator[str]:
    yield from _wrong(grid, KEYS, "the grid")
    for key in ("per", "exclude"):
        parts = grid.get(key)
        for part in parts if isinstance(parts, list) else []:
            if not isinstance(part, dict):
                yield f"'{key}' must be {KINDS[dict]}, but is {quoted(part)}"
            elif key == "per":
                yield from _wrong(part, PER_KEYS, "per")
    tiers = grid.get("tiers")
    named = {f"tiers.{name}": part for name, part in tiers.items()} if isinstance(tiers, dict) else {}
    yield from _wrong(named, dict.fromkeys(named, dict), "tiers")


def _wrong(section: Tree, allowed: Mapping[str, type], where: str) -> Iterator[str]:
    """The keys that are not allowed, and the values that are not of their type; what is empty is left out."""
    for key, value in section.items():
        try:
            kind = allowed[one_of("key", str(key), allowed, where)]
        except UserError as error:
            yield str(error)
            continue
        if value and not isinstance(value, kind):
            yield f"{quoted(key)} must be {KINDS[kind]}, but is {quoted(value)}"
